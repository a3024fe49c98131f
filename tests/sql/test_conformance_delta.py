"""Cases of row-level statements on Delta tables: rows, counts and errors are as the file says.

Cases that are about what Delta tables lack are left out. `ROWLAKE_CONFORMANCE=all` runs every other
case by rewrites and by vectors; else each third one runs, in one of the two ways, and another third
with the next commit.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

import rowlake
from tests.parts.rotation import turn
from tests.sql.case_files import KINDS, load_cases
from tests.sql.delta_tables import MODES, DeltaStage
from tests.sql.tables import named_alike, placed
from tests.sql.texts import arrow_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sql.case_files import Case
    from tests.sql.tables import Stage

VERBS = ("delete", "merge", "update")
IS_ALL = os.environ.get("ROWLAKE_CONFORMANCE") == "all"
SHARE = 1 if IS_ALL else 3
# Partition transforms, column defaults, branches, types that widen, other file formats.
NOT_LAYOUTS = frozenset(
    {
        "bucketed",
        "days",
        "truncated",
        "defaults",
        "branched",
        "evolved",
        "required_fields_orc",
        "required_fields_avro",
    }
)
NOT_STATEMENTS = re.compile(
    r"branch_|\bCALL\b|\bBRANCH\b|\bTAG\b|WRITE ORDERED|format-version|<snapshot"
)
NOT_ON_DELTA = {"schema evolution widens a number": "types are not widened"}


def applies(case: Case) -> bool:
    texts = (*case.statements, *case.views.values())
    return (
        case.verb in VERBS
        and case.mode is None
        and case.name not in NOT_ON_DELTA
        and not NOT_LAYOUTS & set(case.tables.values())
        and not any(NOT_STATEMENTS.search(text) for text in texts)
    )


def chosen() -> Iterator[Any]:
    for number, case in enumerate(filter(applies, load_cases())):
        first = (crc32(case.name.encode()) + turn()) % len(MODES)
        modes = [*MODES][first:] + [*MODES][:first]
        if (number + turn()) % SHARE == 0:
            for mode in modes if IS_ALL else modes[:1]:
                yield pytest.param(case, mode, id=f"{case}-{mode}")


@pytest.fixture(scope="module")
def delta(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> DeltaStage:
    return DeltaStage(stage.lake, tmp_path_factory.mktemp("delta"))


@pytest.mark.parametrize(("case", "mode"), list(chosen()))
def test_statements_on_delta_tables_do_what_their_case_says(
    stage: Stage, delta: DeltaStage, case: Case, mode: str
) -> None:
    space = delta.copy(case, mode)
    *before, last = [placed(statement, space) for statement in case.statements]
    with stage.surroundings(case):
        for statement in before:
            delta.lake.sql(statement)
        if case.error is not None:
            version = delta.lake.table((space, "t")).handle.version
            with pytest.raises(getattr(rowlake, case.error)):
                delta.lake.sql(last).collect()
            assert delta.lake.table((space, "t")).handle.version == version
            return
        returned = delta.lake.sql(last)
        if case.counts is not None:
            expected = {f"num_{kind}_rows": case.counts[kind] for kind in KINDS}
            expected["num_affected_rows"] = sum(case.counts.values())
            assert returned.first().asDict() == expected
        if case.result is not None:
            found = lines_of(arrow_of(returned))
            assert named_alike(found, space, delta.lake.catalog.name) == case.result
        for name, rows in case.rows.items():
            assert lines_of(delta.lake.table((space, name.split(".")[1])).arrow()) == rows
