"""The case files themselves: enough of them, complete, and no claim twice."""

from __future__ import annotations

from collections import Counter

import rowlake
from tests.sql.case_files import FOLDER, load_cases, load_layouts, read_cases, text_of_case


def test_there_are_enough_statements_of_every_kind():
    counts = Counter(case.verb for case in load_cases())
    kinds = {"delete", "update", "merge", "tables", "queries", "procedures"}
    assert set(counts) == kinds
    assert min(counts[verb] for verb in ("delete", "update", "merge")) >= 50
    assert counts.total() >= 150


def test_no_claim_is_made_twice():
    names = Counter(case.name for case in load_cases())
    assert [name for name, count in names.items() if count > 1] == []


def test_every_case_says_what_must_come_of_it():
    for case in load_cases():
        if case.error is None and case.verb in ("tables", "queries", "procedures"):
            assert case.rows or case.result, case.name
        elif case.error is None:
            assert case.counts is not None, case.name
            assert all(case.rows.values()) and "db.t" in case.rows, case.name
        else:
            assert hasattr(rowlake, case.error), case.name
            assert not case.rows, case.name


def test_every_layout_is_used_and_known():
    used = {layout for case in load_cases() for layout in case.tables.values()}
    assert used == set(load_layouts())


def test_files_are_written_as_refill_writes_them():
    for file in (FOLDER / "cases").glob("*.sql"):
        assert file.read_text() == "\n".join(map(text_of_case, read_cases(file))), file.name
