import json
from html.parser import HTMLParser

from bench import html, results
from bench.measure import Measurement, Sample
from bench.options import Options
from bench.rounds import Outcome
from bench.targets import Target, judge

SVG = '<?xml version="1.0"?><svg><defs><path id="p"/></defs><use href="#p"/></svg>'


def page(tmp_path, **more):
    found = Measurement("c", "s", "rowlake", [Sample(1.0, 2.0, facts={"files_added": 3.0})] * 3)
    peer = Measurement("c", "s", "<peer>", [Sample(4.0, 2.0)])
    verdict = judge(Target("a promise", "c", "s", metrics=("wall_s",), at_most=2), [found])
    cases = [results.outcome_json(Outcome("c", [found, peer], **more), "A case")]
    path = results.save(Options(), cases, [verdict], {"rowlake": {"a": "b & c"}}, tmp_path)
    plots = tmp_path / "plots"
    plots.mkdir()
    for name in ("one", "two"):
        (plots / f"{name}.svg").write_text(SVG)
    target = tmp_path / "report.html"
    html.write_report(path, plots, {"one": "One", "two": "Two"}, target)
    return target.read_text()


class Ids(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids = []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]


def test_the_report_needs_nothing_but_itself(tmp_path):
    text = page(tmp_path)
    assert "<svg>" in text
    assert "src=" not in text
    assert "http" not in text


def test_plots_do_not_share_ids(tmp_path):
    parser = Ids()
    parser.feed(page(tmp_path))
    assert sorted(parser.ids) == ["one-p", "two-p"]


def test_ratios_targets_and_configurations_are_shown(tmp_path):
    text = page(tmp_path)
    assert "<td class=n>4.00</td>" in text
    assert "<td class=n>3: 1.00 s – 1.00 s</td>" in text
    assert "<td class=met>met</td>" in text
    assert "b &amp; c" in text
    assert "&lt;peer&gt;" in text


def test_disagreement_failures_and_notes_are_said(tmp_path):
    truths = [{"step": "s", "round": 0, "equal": False, "digests": {}}]
    failures = [{"system": "x", "round": "0", "message": "no table", "trace": ""}]
    notes = [{"system": "y", "round": "0", "message": "too many keys"}]
    text = page(tmp_path, truths=truths, failures=failures, notes=notes)
    for words in ("did not agree", "x failed: no table", "y: too many keys"):
        assert words in text


def test_results_hold_the_sizes_of_the_run(tmp_path):
    page(tmp_path)
    saved = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert saved["run"]["options"]["write_rows"] == 2_000_000
