"""Every case in every mode: rows, counts and errors are as the file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rowlake
from tests.sql.case_files import KINDS, load_cases
from tests.sql.tables import MODES, placed
from tests.sql.texts import lines_of

if TYPE_CHECKING:
    from tests.sql.case_files import Case
    from tests.sql.tables import Mode, Stage

CASES = load_cases()
CASES = [case for case in CASES if case.verb == "delete"]  # until UPDATE and MERGE are there


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_statements_do_what_their_case_says(stage: Stage, case: Case, mode: Mode):
    space = stage.copy(case, mode)
    with stage.surroundings(case):
        if case.error is None:
            check_rows(stage, case, space)
        else:
            check_error(stage, case, space)


def check_rows(stage: Stage, case: Case, space: str) -> None:
    for statement in case.statements:
        returned = stage.lake.sql(placed(statement, space))
    if case.counts is not None:
        expected = {f"num_{kind}_rows": case.counts[kind] for kind in KINDS}
        expected["num_affected_rows"] = sum(case.counts.values())
        assert returned.first().asDict() == expected
    for name, expected_rows in case.rows.items():
        assert rows_in(stage, name, space) == expected_rows


def check_error(stage: Stage, case: Case, space: str) -> None:
    *before, last = case.statements
    for statement in before:
        stage.lake.sql(placed(statement, space))
    head = stage.lake.table((space, "t")).handle.metadata_location
    with pytest.raises(rowlake.RowlakeError) as raised:
        stage.lake.sql(placed(last, space))
    assert isinstance(raised.value, getattr(rowlake, str(case.error)))
    assert stage.lake.table((space, "t")).handle.metadata_location == head


def rows_in(stage: Stage, name: str, space: str) -> list[str]:
    """Return the rows of `db.t` or of a branch, `db.t.branch_b`."""
    _, table, *branch = name.split(".")
    ref = branch[0].removeprefix("branch_") if branch else None
    return lines_of(stage.lake.table((space, table)).arrow(ref=ref))
