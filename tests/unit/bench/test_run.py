import json

import pytest

from bench import __main__ as program
from bench import results
from bench.case import Case, Contestant, Step
from bench.measure import Measurement, Sample
from bench.options import Options
from bench.rounds import Outcome
from bench.session import STAMP, package_settings
from bench.targets import Target, judge


def test_sizes_follow_rows_scale_and_full():
    assert (Options().total_rows, Options().write_rows) == (8_000_000, 2_000_000)
    assert (Options().row_level_rows, Options(full=True).write_rows) == (8_000_000, 8_000_000)
    assert Options(rows=50_000).write_rows == 50_000
    half = Options(rows=8_000_000, scale=0.5)
    assert (half.total_rows, half.buckets) == (4_000_000, 8)
    assert Options(rounds=7).rounds_of(3) == 7
    assert Options(full=True).rounds_of(3) == 10


def test_picked_peers_leave_rowlake_in():
    options = Options(peers=("pyarrow",))
    assert options.wants_peer("rowlake")
    assert options.wants_peer("pyarrow")
    assert not options.wants_peer("iceberg-java")
    one_of_ours = Options(peers=("rowlake-lazy",))
    assert one_of_ours.wants_peer("rowlake-lazy")
    assert not one_of_ours.wants_peer("rowlake-eager")


def test_an_unknown_case_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        program.parse(["no_such_case"])
    assert stopped.value.code == 2
    assert "no_such_case" in capsys.readouterr().err


def test_an_unknown_peer_is_refused(capsys):
    with pytest.raises(SystemExit):
        program.parse(["--peers", "nobody"])
    assert "iceberg-java" in capsys.readouterr().err


def test_results_are_complete_json(tmp_path):
    found = Measurement("c", "s", "rowlake", [Sample(1.0, 2.0, facts={"files": 1.0})] * 3)
    verdict = judge(Target("t", "c", "s", metrics=("wall_s",), at_most=2), [found])
    cases = [results.outcome_json(Outcome("c", [found]), "title")]
    path = results.save(Options(), cases, [verdict], {"rowlake": {}}, tmp_path)
    read = json.loads(path.read_text())
    assert read["cases"][0]["measurements"][0]["median"]["files"] == 1.0
    assert read["targets"][0]["outcome"] == "met"
    assert read["run"]["versions"]["pyarrow"]


def test_a_case_that_cannot_be_set_up_fails_alone(monkeypatch, tmp_path):
    def broken(lab):
        raise RuntimeError("no jar")

    def fine(lab):
        return [Contestant("rowlake", (Step("act", lambda: None),))]

    cases = {case.name: case for case in (Case("a", "a", broken), Case("b", "b", fine))}
    monkeypatch.setattr(program, "CASES", cases)
    monkeypatch.setattr(program, "Lab", lambda options: _lab(options, tmp_path))
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(program, "publish", lambda path, *_: path)
    outcomes, _ = program.run(Options(rounds=1), program.Console(quiet=True))
    assert [failure["message"] for failure in outcomes[0].failures] == ["RuntimeError: no jar"]
    assert len(outcomes[1].measurements) == 1


def _lab(options, tmp_path):
    from bench.lab import Lab

    return Lab(options, tmp_path / "cache")


def test_resolved_packages_are_used_as_jars(tmp_path):
    assert "spark.jars.packages" in package_settings(tmp_path, ["g:a:1"])
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").touch()
    (tmp_path / STAMP).write_text("g:a:1")
    assert package_settings(tmp_path, ["g:a:1"]) == {"spark.jars": str(tmp_path / "jars" / "a.jar")}
    assert "spark.jars.packages" in package_settings(tmp_path, ["g:a:2"])


def test_two_runs_at_once_are_refused(tmp_path):
    lab = _lab(Options(), tmp_path)
    with pytest.raises(SystemExit, match="another benchmark run"):
        _lab(Options(), tmp_path)
    lab.close()
    _lab(Options(), tmp_path).close()


def test_a_late_run_of_everything_takes_fewer_rounds_but_never_less_than_three(tmp_path):
    lab = _lab(Options(), tmp_path)
    assert (lab.keep_time(), lab.rounds_of(5), lab.is_over) == (None, 5, False)
    lab.started -= 16 * 60
    assert (lab.keep_time(), lab.rounds_of(5), lab.is_over) == (3, 3, False)
    lab.started -= 10 * 60
    assert (lab.rounds_of(5), lab.is_over) == (3, True)
    lab.close()
    picked = _lab(Options(cases=("case2",)), tmp_path)
    picked.started -= 60 * 60
    assert (picked.keep_time(), picked.rounds_of(5), picked.is_over) == (None, 5, False)
    picked.close()


def toy(monkeypatch, tmp_path, *cases):
    monkeypatch.setattr(program, "CASES", {case.name: case for case in cases})
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(program, "publish", lambda path, *_: path)


def acts(*_):
    return [Contestant("rowlake", (Step("act", lambda: None),))]


def test_cases_without_time_are_named_as_left_out(monkeypatch, tmp_path):
    toy(monkeypatch, tmp_path, Case("a", "a", acts))

    def late(options):
        lab = _lab(options, tmp_path)
        lab.started -= 60 * 60
        return lab

    monkeypatch.setattr(program, "Lab", late)
    outcomes, _ = program.run(Options(), program.Console(quiet=True))
    assert (outcomes[0].measurements, len(outcomes[0].notes)) == ([], 1)


def test_cases_of_the_cluster_run_again_under_a_name_of_their_own(monkeypatch, tmp_path):
    toy(monkeypatch, tmp_path, Case("a", "a", acts, on_cluster=True), Case("b", "b", acts))
    monkeypatch.setattr(program, "Lab", lambda options: _lab(options, tmp_path))
    outcomes, path = program.run(Options(rounds=1), program.Console(quiet=True))
    assert [outcome.case for outcome in outcomes] == ["a", "b", "a on a cluster"]
    assert outcomes[2].measurements[0].case == "a on a cluster"
    masters = [case["master"] for case in json.loads(path.read_text())["cases"]]
    assert masters == ["local[2]", "local[2]", "local-cluster[2,1,3072]"]
    outcomes, _ = program.run(Options(rounds=1, cluster=False), program.Console(quiet=True))
    assert len(outcomes) == 2
