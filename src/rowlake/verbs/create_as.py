"""CREATE TABLE … AS SELECT and REPLACE TABLE … AS SELECT: schema and rows in one commit.

Comes in: a layout and rows. Goes out: the handle of the table and a `Result`. Until the commit
lands, a table that is to be replaced is as it was, and one that is to be created is not there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.catalog import tables as catalog_tables
from rowlake.catalog.metadata import apply_updates
from rowlake.errors import CommitConflictError
from rowlake.model.change import Change, Operation
from rowlake.model.result import Result
from rowlake.storage.files import Storage
from rowlake.verbs.create import create_table, replacing_updates
from rowlake.verbs.outcome import Phases
from rowlake.verbs.write import WriteOptions, committed_result, write_rows

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.engine.spark import Engine
    from rowlake.iceberg.refs import Updates
    from rowlake.model.handle import TableHandle
    from rowlake.verbs.create import Layout


def create_table_as(
    catalog: Catalog,
    engine: Engine,
    identifier: tuple[str, ...],
    layout: Layout,
    rows: Any,
) -> tuple[TableHandle, Result]:
    """Create a table that holds these rows, or replace one, atomically."""
    phases = Phases()
    known = catalog_tables.table_exists(catalog, identifier)
    handle = (
        catalog_tables.load_table(catalog, identifier)
        if known
        else create_table(catalog, identifier, layout, staged=True)
    )
    staged = _replaced(handle, layout) if known else handle
    view = staged.view()
    with phases.phase("write"):
        written = write_rows(view, engine, rows, WriteOptions())
    if not written.num_rows:
        made = create_table(catalog, identifier, layout, replace=known)
        return made, Result("create", seconds=phases.total, phases=phases.seconds)

    def first(newest: TableHandle) -> Updates:
        updates, requirements = replacing_updates(newest, layout)
        changed = apply_updates(newest.metadata, newest.metadata_location, updates)
        if changed.schema().fields != staged.metadata.schema().fields:
            raise CommitConflictError(
                "REPLACE TABLE", newest.name, "its schema was changed meanwhile"
            )
        return updates, requirements

    change = Change(Operation.APPEND, added_data=written)
    storage = Storage(view.io_properties)
    return committed_result(
        handle, change, storage, "create", phases, first=first if known else None
    )


def _replaced(handle: TableHandle, layout: Layout) -> TableHandle:
    updates, _ = replacing_updates(handle, layout)
    changed = apply_updates(handle.metadata, handle.metadata_location, updates)
    return replace(handle, metadata=changed)
