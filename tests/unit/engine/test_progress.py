from __future__ import annotations

import threading

from rowlake.engine.progress import Reporter, reporting, watching


def test_nothing_is_told_where_nobody_listens():
    with reporting("x", False) as reporter:
        assert type(reporter) is Reporter
        reporter.update(1, 2)


def test_no_bar_without_a_terminal(monkeypatch, capsys):
    with reporting("x", True) as reporter:
        reporter.update(1, 2)
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with reporting("scanning ns.t", True) as reporter:
        reporter.update(0, 0)
        reporter.update(1, 2)
    assert "scanning ns.t" in capsys.readouterr().err


def test_watching_asks_until_the_work_is_done(monkeypatch):
    monkeypatch.setattr("rowlake.engine.progress.POLL_SECONDS", 0.01)
    heard, states, asked = [], iter([(0, 2), (1, 2), (1, 2), (2, 2)]), threading.Event()

    def count_tasks() -> tuple[int, int]:
        for found in states:
            return found
        asked.set()
        return (2, 2)

    with (
        reporting("x", heard.append) as reporter,
        watching(count_tasks, reporter),
    ):
        assert asked.wait(60)
    assert [(p.done, p.total) for p in heard] == [(0, 2), (1, 2), (2, 2)]
