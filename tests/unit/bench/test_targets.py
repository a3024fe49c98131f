import pytest

from bench.cases import CASES
from bench.editors import EDITORS
from bench.measure import Measurement, Sample
from bench.peers import PEERS
from bench.promises import TARGETS
from bench.targets import Target, judge


def measured(system, *walls, cpu=1.0, **facts):
    walls = walls if len(walls) > 1 else walls * 3
    return Measurement("c", "s", system, [Sample(wall, cpu, facts=facts) for wall in walls])


def relative(limit, **more):
    return Target("t", "c", "s", against=("x", "y"), at_most=limit, **more)


def test_a_relative_target_compares_with_the_best_peer():
    found = [measured("rowlake", 1.0), measured("x", 4.0), measured("y", 2.0)]
    verdict = judge(relative(0.5, metrics=("wall_s",)), found)
    assert (verdict.outcome, verdict.peer, verdict.ratio) == ("met", "y", 0.5)


def test_every_metric_must_hold_and_the_worst_is_reported():
    found = [measured("rowlake", 1.0, cpu=3.0), measured("x", 2.0, cpu=1.0)]
    verdict = judge(relative(1.1), found)
    assert (verdict.outcome, verdict.metric, verdict.ratio) == ("not met", "cpu_s", 3.0)


def test_a_fixed_target_compares_with_its_figure():
    target = Target("t", "c", "s", metrics=("rate_per_s",), at_least=100)
    assert judge(target, [measured("rowlake", 1.0, rate_per_s=250)]).ratio == 2.5
    assert judge(target, [measured("rowlake", 1.0, rate_per_s=50)]).outcome == "not met"


def test_what_was_not_measured_is_not_met_nor_unmet():
    assert judge(relative(1.0), []).outcome == "not measured"
    assert judge(relative(1.0), [measured("rowlake", 1.0)]).outcome == "not measured"


def test_every_target_names_a_case_and_known_peers():
    for target in TARGETS:
        assert target.case in CASES
        assert set(target.against) <= {*PEERS, *EDITORS}
        assert (target.at_most is None) != (target.at_least is None)


def test_a_step_may_be_compared_with_another_of_the_same_system():
    found = [measured("rowlake", 3.0), Measurement("c", "clean", "rowlake", [Sample(2.0, 1.0)] * 3)]
    target = Target(
        "t", "c", "s", metrics=("wall_s",), against=("rowlake",), against_step="clean", at_most=1.3
    )
    assert judge(target, found).ratio == 1.5


def test_peers_that_were_not_measured_are_named():
    verdict = judge(
        relative(1.0, metrics=("wall_s",)), [measured("rowlake", 1.0), measured("x", 2.0)]
    )
    assert (verdict.outcome, verdict.missing) == ("met", ("y",))


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        ((1.0, 1.1, 1.2), (2.6, 2.7, 2.8), "met"),
        ((1.0, 1.1, 1.5), (2.6, 2.7, 2.8), "undecided"),
        ((1.0, 1.1, 1.2), (2.0, 2.7, 2.8), "undecided"),
        ((2.0, 2.1, 2.2), (2.6, 2.7, 2.8), "not met"),
    ],
)
def test_a_target_that_the_spread_straddles_is_undecided(ours, theirs, outcome):
    target = relative(0.5, metrics=("wall_s",))
    verdict = judge(target, [measured("rowlake", *ours), measured("x", *theirs)])
    assert verdict.outcome == outcome
    assert verdict.low <= verdict.ratio <= verdict.high
    assert verdict.samples == (3, 3)


def test_times_of_fewer_than_three_samples_decide_nothing_but_counts_do():
    two = [measured("rowlake", 1.0, 1.0), measured("x", 9.0)]
    assert judge(relative(0.5, metrics=("wall_s",)), two).outcome == "undecided"
    one = Measurement("c", "s", "rowlake", [Sample(1.0, 1.0, facts={"files": 3.0})])
    assert judge(Target("t", "c", "s", metrics=("files",), at_most=3), [one]).outcome == "met"


def test_of_many_samples_one_outlier_on_each_side_is_no_part_of_the_spread():
    target = relative(0.5, metrics=("wall_s",))
    ours = measured("rowlake", 1.0, 1.0, 1.1, 1.1, 9.0)
    assert judge(target, [ours, measured("x", 2.5)]).outcome == "met"


def test_a_fixed_figure_that_the_samples_straddle_is_undecided():
    target = Target("t", "c", "s", metrics=("wall_s",), at_most=1.0)
    assert judge(target, [measured("rowlake", 0.9, 0.95, 1.05)]).outcome == "undecided"
