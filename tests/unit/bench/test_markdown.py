from bench import markdown, results
from bench.measure import Measurement, Sample
from bench.options import Options
from bench.rounds import Outcome
from bench.targets import Target, judge


def saved(tmp_path, **more):
    found = Measurement("c", "s", "rowlake", [Sample(1.0, 2.0, facts={"files_per_s": 1000.0})])
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
    assert "| a promise | 1.00 s | the figure: 2.00 s | 0.50× | met |" in text
    assert "| s | rowlake | 1.00 s | 2.00 s | files_per_s 1,000/s |" in text


def test_disagreement_and_failures_are_said(tmp_path):
    truths = [{"step": "s", "round": 0, "equal": False, "digests": {}}]
    failures = [{"system": "x", "round": "0", "message": "no table", "trace": ""}]
    path = saved(tmp_path, truths=truths, failures=failures)
    text = markdown.figures(markdown.json.loads(path.read_text()))
    assert "did not agree" in text
    assert "x failed: no table" in text
