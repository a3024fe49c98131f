import time

from bench.case import Case, Contestant, Step
from bench.measure import Reported, Sample
from bench.rounds import SLOW_S, Skipped, run_rounds
from rowlake.errors import UnsupportedFeatureError


def case(warmups=1):
    return Case("toy", "a toy", lambda _: [], warmups=warmups)


def recorder(log, name, truth=None):
    def run():
        log.append(name)
        return truth

    return Contestant(name, (Step("act", run, lambda answer: answer),))


def test_systems_take_turns_and_the_start_rotates():
    log = []
    run_rounds(case(warmups=0), [recorder(log, "a"), recorder(log, "b")], 3)
    assert log == ["a", "b", "b", "a", "a", "b"]


def test_warm_up_rounds_are_run_and_not_kept():
    log = []
    outcome = run_rounds(case(warmups=2), [recorder(log, "a")], 3)
    assert len(log) == 5
    assert len(outcome.of("act", "a").samples) == 3


def test_a_system_that_fails_is_out_and_the_others_go_on():
    def broken():
        raise ValueError("no table")

    log, failures = [], []
    contestants = [Contestant("bad", (Step("act", broken),)), recorder(log, "good")]
    outcome = run_rounds(
        case(), contestants, 2, on_failure=lambda name, text: failures.append((name, text))
    )
    assert failures == [("bad", "ValueError: no table")]
    assert [failure["system"] for failure in outcome.failures] == ["bad"]
    assert len(outcome.of("act", "good").samples) == 2


def test_different_truths_are_a_disagreement():
    log = []
    same = run_rounds(case(), [recorder(log, "a", 1), recorder(log, "b", 1)], 1)
    assert same.disagreements == []
    wrong = run_rounds(case(warmups=0), [recorder(log, "a", 1), recorder(log, "b", 2)], 1)
    assert [found["step"] for found in wrong.disagreements] == ["act"]


def test_prepare_and_finish_surround_every_turn_even_when_it_fails():
    log = []

    def broken():
        raise ValueError

    contestant = Contestant(
        "a",
        (Step("act", broken),),
        prepare=lambda number: log.append(f"prepare {number}"),
        finish=lambda: log.append("finish"),
        close=lambda: log.append("close"),
    )
    run_rounds(case(warmups=0), [contestant], 1)
    assert log == ["prepare 0", "finish", "close"]


def test_what_a_system_cannot_do_is_a_note_and_no_failure():
    def skipped():
        raise Skipped("too many keys")

    def unsupported():
        raise UnsupportedFeatureError("no MERGE")

    contestants = [
        Contestant("a", (Step("x", skipped),)),
        Contestant("b", (Step("x", unsupported),)),
    ]
    outcome = run_rounds(case(), contestants, 1)
    assert outcome.failures == []
    assert {note["message"] for note in outcome.notes} == {"too many keys", "not yet: no MERGE"}


def test_facts_are_asked_after_the_step():
    log = []

    def facts():
        log.append("facts")
        return {"files_added": 2.0}

    step = Step("act", lambda: log.append("act"), facts=facts)
    outcome = run_rounds(case(warmups=0), [Contestant("a", (step,))], 1)
    assert log == ["act", "facts"]
    assert outcome.of("act", "a").samples[0].facts == {"files_added": 2.0}


def test_a_slow_system_may_take_fewer_rounds():
    log = []
    slow = Contestant("slow", (Step("act", lambda: log.append("slow")),), max_rounds=1)
    outcome = run_rounds(case(warmups=0), [slow, recorder([], "quick")], 3)
    assert len(outcome.of("act", "slow").samples) == 1
    assert len(outcome.of("act", "quick").samples) == 3


def test_a_peer_that_has_taken_long_stops_after_three_samples_and_ours_does_not():
    def costly(system):
        return Contestant(system, (Step("act", lambda: Reported(Sample(SLOW_S, 1.0))),))

    outcome = run_rounds(case(warmups=0), [costly("delta"), costly("rowlake-lazy")], 5)
    assert len(outcome.of("act", "delta").samples) == 3
    assert len(outcome.of("act", "rowlake-lazy").samples) == 5


def test_every_sample_says_where_it_ran():
    state = {"spark_tasks": 0.0}

    def in_tasks():
        state["spark_tasks"] += 4

    steps = (
        Step("driver", lambda: None),
        Step("tasks", in_tasks),
        Step("process", lambda: Reported(Sample(1.0, 1.0, place="own process"))),
    )
    found = run_rounds(case(0), [Contestant("a", steps)], 1, counters=lambda: dict(state))
    places = {one.step: one.place for one in found.measurements}
    assert places == {"driver": "driver", "tasks": "Spark tasks", "process": "own process"}


def test_short_steps_are_repeated_and_the_mean_is_kept():
    calls = []
    steps = (Step("loops", lambda: calls.append(1), loops=True), Step("once", lambda: None))
    found = run_rounds(case(0), [Contestant("a", steps)], 1)
    (sample,) = found.of("loops", "a").samples
    assert sample.repetitions == len(calls) > 10
    assert found.of("once", "a").samples[0].repetitions == 1


def test_a_step_of_several_acts_is_charged_for_one():
    state = {"spark_jobs": 0.0}

    def five():
        state["spark_jobs"] += 5
        time.sleep(0.1)

    step = Step("act", five, times=5)
    found = run_rounds(case(0), [Contestant("a", (step,))], 1, counters=lambda: dict(state))
    (sample,) = found.of("act", "a").samples
    assert 0.02 <= sample.wall_s < 0.1
    assert sample.facts["spark_jobs"] == 1


def test_counters_are_facts_of_the_step_that_moved_them():
    state = {"tasks": 5.0}

    def work():
        state["tasks"] += 3

    contestant = Contestant("a", (Step("act", work), Step("rest", lambda: None)))
    outcome = run_rounds(case(warmups=0), [contestant], 1, counters=lambda: dict(state))
    assert outcome.of("act", "a").samples[0].facts == {"tasks": 3.0}
    assert outcome.of("rest", "a").samples[0].facts == {"tasks": 0.0}


def test_a_system_in_a_fresh_process_skips_the_warm_up():
    log = []
    fresh = Contestant("fresh", (Step("act", lambda: log.append(1)),), needs_warmup=False)
    run_rounds(case(warmups=2), [fresh], 1)
    assert log == [1]


def test_a_system_that_cannot_be_closed_keeps_its_figures():
    def broken():
        raise OSError("the JVM is gone")

    contestant = Contestant("a", (Step("act", lambda: None),), close=broken)
    assert len(run_rounds(case(warmups=0), [contestant], 2).of("act", "a").samples) == 2
