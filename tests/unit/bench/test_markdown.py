from bench import markdown, results
from bench.measure import Measurement, Sample
from bench.options import Options
from bench.rounds import Outcome
from bench.targets import Target, judge


def saved(tmp_path, **more):
    samples = [
        Sample(wall, 2.0, facts={"files_per_s": 1000.0}, place="driver") for wall in (1.0, 0.9, 1.2)
    ]
    found = Measurement("c", "s", "rowlake", samples)
    verdict = judge(Target("a promise", "c", "s", metrics=("wall_s",), at_most=2), [found])
    cases = [results.outcome_json(Outcome("c", [found], **more), "A case")]
    return results.save(Options(), cases, [verdict], {"rowlake": {"a": "b"}}, tmp_path)


def test_figures_replace_what_stands_between_the_marks(tmp_path):
    document = tmp_path / "doc.md"
    document.write_text(f"before\n{markdown.BEGIN}\nold\n{markdown.END}\nafter\n")
    markdown.write_document(saved(tmp_path), document)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| a promise | 1.00 s | the figure: 2.00 s | 0.50× (0.45 – 0.60) | met |" in text
    samples = "3: 900 ms – 1.20 s"
    assert f"| s | rowlake | driver | 1.00 s | {samples} | 2.00 s | files_per_s 1,000/s |" in text


def test_disagreement_and_failures_are_said(tmp_path):
    truths = [{"step": "s", "round": 0, "equal": False, "digests": {}}]
    failures = [{"system": "x", "round": "0", "message": "no table", "trace": ""}]
    path = saved(tmp_path, truths=truths, failures=failures)
    text = markdown.figures(markdown.json.loads(path.read_text()))
    assert "did not agree" in text
    assert "x failed: no table" in text


def test_where_a_peer_is_quicker_is_said(tmp_path):
    def case(name, *walls):
        found = [Measurement(name, "s", system, [Sample(wall, 1.0)]) for system, wall in walls]
        return results.outcome_json(Outcome(name, found), f"Case {name}")

    cases = [
        case("a", ("rowlake-lazy", 2.0), ("rowlake-eager", 3.0), ("delta-rs", 1.0)),
        case("b", ("rowlake", 1.0), ("iceberg-java", 2.0), ("pyarrow", 0.1)),
    ]
    unmet = {"outcome": "not met", "ratio": 1.5, "target": {"text": "a promise"}}
    text = markdown.losses_section(cases, [unmet])
    assert "- Not met (1.50×): a promise." in text
    assert "Case a, s: delta-rs takes 1.00 s, rowlake-lazy 2.00 s (2.00×)." in text
    assert "Case a, s: delta-rs takes 1.00 s, rowlake-eager 3.00 s (3.00×)." in text
    assert "Case b" not in text


def test_cpu_time_counts_where_it_is_worse_than_wall_time():
    ours = Measurement("c", "s", "rowlake", [Sample(1.0, 4.0)])
    theirs = Measurement("c", "s", "iceberg-v3", [Sample(2.0, 2.0)])
    case = results.outcome_json(Outcome("c", [ours, theirs]), "Case")
    text = markdown.losses_section([case])
    assert "Case, s: iceberg-v3 takes 2.00 s, rowlake 4.00 s of CPU (2.00×)." in text


def test_undecided_targets_are_said_with_their_range():
    target = {"outcome": "undecided", "ratio": 1.0, "low": 0.8, "high": 1.3}
    text = markdown.losses_section([], [{**target, "target": {"text": "a promise"}}])
    assert "- Undecided (1.00× (0.80 – 1.30)): a promise." in text


def test_plots_are_kept_beside_the_document(tmp_path):
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "write_per_round.svg").write_text("<svg/>")
    document = tmp_path / "doc" / "doc.md"
    document.parent.mkdir()
    document.write_text(f"{markdown.BEGIN}{markdown.END}")
    markdown.write_document(saved(tmp_path), document)
    assert "![write per round](benchmarks/write_per_round.svg)" in document.read_text()
    assert (document.parent / "benchmarks" / "write_per_round.svg").exists()
