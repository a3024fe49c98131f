"""CHECK constraints and high-water marks: changes of a definition that hold for the rows there are.

The rows of one snapshot are looked at, and the change lands on top of that snapshot or not at all;
where another writer was faster, all of it is done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.conditions.pushed import pushed_condition
from rowlake.errors import (
    InvalidStatementError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from rowlake.model.column_rules import identity_of
from rowlake.model.metadata_change import AddConstraint, MoveMark
from rowlake.verbs.read import Request, frame

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import DropConstraint
    from rowlake.model.view import TableView

_SHOWN = 200


def add_check(handle: TableHandle, engine: Engine, name: str, text: str) -> TableHandle:
    """Add a CHECK constraint after all rows were checked; a row that breaks it is named."""

    def run(newest: TableHandle) -> TableHandle:
        view = newest.view()
        _validate_known(view)
        if not pushed_condition(text, view.schema).exact:
            raise UnsupportedFeatureError(
                f"Cannot add the constraint {name} to {view.name}: rowlake could not check rows "
                f"that it writes for ({text}). Nothing was changed."
            )
        rows = _rows(newest, engine, view.snapshot_id)
        broken = rows.where(f"NOT coalesce(({text}), false)").limit(1).collect()
        if broken:
            raise SchemaMismatchError(
                f"Cannot add the constraint {name} CHECK ({text}) to {view.name}: a row does not "
                f"satisfy it: {str(broken[0].asDict())[:_SHOWN]}. Nothing was changed."
            )
        change = AddConstraint(name, text, view.snapshot_id)
        return commit_metadata(newest, "add constraint", change)

    return rerun_on_conflict(handle, run)


def drop_constraint(handle: TableHandle, change: DropConstraint) -> TableHandle:
    """Drop a CHECK constraint."""
    _validate_known(handle.view())
    return commit_metadata(handle, "drop constraint", change)


def sync_identity(handle: TableHandle, engine: Engine, column: str) -> TableHandle:
    """Move the high-water mark of an identity column beyond every value that the table has."""

    def run(newest: TableHandle) -> TableHandle:
        view = newest.view()
        found = view.schema.find((column,))
        identity = None if found is None else identity_of(found)
        if found is None or identity is None:
            raise InvalidStatementError(f"{column} of {view.name} is no identity column.")
        rows = _rows(newest, engine, view.snapshot_id).select(found.name)
        side = "max" if identity.step > 0 else "min"
        reached = rows.agg({found.name: side}).collect()[0][0]
        mark = identity.furthest([] if reached is None else [reached])
        if mark is None or mark == identity.mark:
            return newest
        change = MoveMark(found.name, mark, view.snapshot_id)
        return commit_metadata(newest, "sync identity", change)

    return rerun_on_conflict(handle, run)


def _validate_known(view: TableView) -> None:
    if not view.can.check_constraints:
        raise UnsupportedFeatureError(
            f"Cannot change constraints of {view.name}: tables of its format have none."
        )


def _rows(handle: TableHandle, engine: Engine, snapshot_id: int | None) -> Any:
    return frame(handle, engine, Request(snapshot_id=snapshot_id))
