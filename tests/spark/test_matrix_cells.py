"""Cells of the matrix with UPDATE, MERGE and DELETE evaluated by Spark: they end as recorded.

The matrix evaluates them in Python, as thousands of cells must be quick; what Spark stages and what
is bound again after a conflict is run here, beside one landing of each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from tests.matrix import record
from tests.matrix.cells import Cell, verdict_of
from tests.matrix.statements import ADDED, pair
from tests.matrix.tables import Scene, rows_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.table import Table
    from tests.matrix.statements import How

COMPACTED = "rewrite_data_files"
LANDINGS = {
    "append of the same key": "planned",
    "DELETE of other rows": "written",
    "UPDATE of the same rows": "written",
    "MERGE of other rows": "produced",
    "blind upsert of the same rows": "written",
    f"{COMPACTED} + ADD COLUMN": "written",
    f"{COMPACTED} + expire_snapshots": "planned",
    "RENAME COLUMN": "planned",
    "widen a column": "produced",
    "rollback": "written",
    "DROP TABLE + CREATE TABLE": "planned",
}
VARIANTS = [("v2", "copy-on-write", "serializable"), ("v3", "auto", "snapshot")]


def update(table: Table, key: int, how: How) -> Any:
    """Run `UPDATE SET v = v + 100 WHERE id = key`, with a condition for Spark alone."""
    return table.update({"v": f"v + {ADDED}"}, f"id = {key} AND abs(id) = {key}", **how.given)


def merge(table: Table, key: int, how: How) -> Any:
    """Run a MERGE that updates one row and inserts another, with expressions of both sides."""
    insert = {"id": "s.id", "p": "s.p", "v": "s.v"}
    source = table.lake.engine.from_arrow(rows_in(pair(key))).select("id", "p", "v")
    built = table.merge(source, on="t.id = s.id", **how.given)
    built = built.when_matched_update({"v": "t.v - t.v + s.v"}, condition="abs(t.id) = s.id")
    return built.when_not_matched_insert(insert).execute()


def delete(table: Table, key: int, how: How) -> Any:
    """Run a DELETE whose condition Spark evaluates."""
    return table.delete(f"id = {key} AND abs(id) = {key}", **how.given)


RUNS = {"UPDATE": update, "MERGE": merge, "DELETE": delete}


@pytest.fixture(scope="module")
def scenes(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scene]]:
    made = {}
    for kind, _, _ in VARIANTS:
        folder = tmp_path_factory.mktemp(kind)
        lake = rowlake.connect(str(folder / "lake"), spark=spark)
        made[kind] = Scene.made(folder, kind, lake)
    yield made
    for scene in made.values():
        scene.lake.close()


@pytest.mark.parametrize("statement", RUNS)
@pytest.mark.parametrize("kind", [kind for kind, _, _ in VARIANTS])
def test_statements_that_spark_evaluates_end_as_recorded(scenes, statement, kind) -> None:
    recorded = record.load()
    _, mode, isolation = next(one for one in VARIANTS if one[0] == kind)
    cells = [
        Cell(statement, landing, phase, kind, mode, isolation)
        for landing, phase in LANDINGS.items()
    ]
    found = {cell: verdict_of(cell, scenes[kind], RUNS[statement]) for cell in cells}
    assert found == {cell: recorded[cell] for cell in cells}
