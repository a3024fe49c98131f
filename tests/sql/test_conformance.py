"""Every case in every mode: rows, counts and errors are as the file says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

import rowlake
from tests.parts.rotation import turn
from tests.sql.case_files import KINDS, load_cases
from tests.sql.tables import MODES, modes_of, named_alike
from tests.sql.texts import arrow_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sql.case_files import Case
    from tests.sql.tables import Mode, Stage


# All modes of all cases take minutes; without this variable each case runs in one mode, which
# differs from case to case and from commit to commit.
MODES_OF_A_CASE = len(MODES) if os.environ.get("ROWLAKE_CONFORMANCE") == "all" else 1


def chosen() -> Iterator[Any]:
    """Yield cases with their modes, the modes of one case beside each other."""
    for case in load_cases():
        first = crc32(case.name.encode()) + turn()
        for mode in modes_of(case, MODES, first, MODES_OF_A_CASE):
            yield pytest.param(case, mode, id=f"{case}-{mode}")


@pytest.mark.parametrize(("case", "mode"), list(chosen()))
def test_statements_do_what_their_case_says(stage: Stage, case: Case, mode: Mode):
    space = stage.copy(case, mode)
    with stage.surroundings(case):
        if case.error is None:
            check_rows(stage, case, space)
        else:
            check_error(stage, case, space)


def check_rows(stage: Stage, case: Case, space: str) -> None:
    for statement in stage.statements(case, space):
        returned = stage.lake.sql(statement)
    if case.counts is not None:
        expected = {f"num_{kind}_rows": case.counts[kind] for kind in KINDS}
        expected["num_affected_rows"] = sum(case.counts.values())
        assert returned.first().asDict() == expected
    if case.result is not None:
        found = lines_of(arrow_of(returned))
        assert named_alike(found, space, stage.lake.catalog.name) == case.result
    for name, expected_rows in case.rows.items():
        assert rows_in(stage, name, space) == expected_rows


def check_error(stage: Stage, case: Case, space: str) -> None:
    *before, last = stage.statements(case, space)
    for statement in before:
        stage.lake.sql(statement)
    head = stage.lake.table((space, "t")).handle.metadata_location
    with pytest.raises(getattr(rowlake, str(case.error))):
        stage.lake.sql(last).collect()
    assert stage.lake.table((space, "t")).handle.metadata_location == head


def rows_in(stage: Stage, name: str, space: str) -> list[str]:
    """Return the rows of `db.t` or of a branch, `db.t.branch_b`."""
    _, table, *branch = name.split(".")
    ref = branch[0].removeprefix("branch_") if branch else None
    return lines_of(stage.lake.table((space, table)).arrow(ref=ref))
