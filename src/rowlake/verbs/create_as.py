"""CREATE TABLE … AS SELECT and REPLACE TABLE … AS SELECT: schema and rows in one commit.

Comes in: a definition and rows. Goes out: the handle of the table and a `Result`. Until the commit
lands, a table that is to be replaced is as it was, and one that is to be created is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.catalog.formats import add_name, load_table, table_exists
from rowlake.commit.outcome import Phases
from rowlake.errors import CommitConflictError, InvalidStatementError
from rowlake.model.change import Change, Operation
from rowlake.model.metadata_change import Redefine
from rowlake.model.result import Result
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import SparkSource, source_of
from rowlake.storage.files import Storage
from rowlake.verbs.create import create_table, validate_format
from rowlake.verbs.schema_input import schema_of
from rowlake.verbs.write import WriteOptions, committed_result, write_rows

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import TableDefinition


def create_table_as(
    catalog: Any,
    engine: Engine,
    identifier: tuple[str, ...],
    definition: TableDefinition,
    rows: Any,
) -> tuple[TableHandle, Result]:
    """Create a table that holds these rows, or replace one, atomically."""
    phases = Phases()
    known = table_exists(catalog, identifier)
    handle = (
        load_table(catalog, identifier)
        if known
        else create_table(catalog, identifier, definition, staged=True)
    )
    if known:
        validate_format(handle, definition)
    staged = _redefined(handle, definition) if known else handle
    view = staged.view()
    with phases.phase("write"):
        written = write_rows(view, engine, rows, WriteOptions())
    if not written.files.num_rows:
        made = create_table(catalog, identifier, definition, replace=known)
        return made, Result("create", seconds=phases.total, phases=phases.seconds)

    def first(newest: TableHandle) -> Payload | None:
        payload = newest.format.alter(newest, Redefine(definition))
        if _redefined(newest, definition).view().schema != view.schema:
            raise CommitConflictError(
                "REPLACE TABLE", newest.name, "its schema was changed meanwhile"
            )
        return payload

    change = Change(Operation.APPEND, added_data=written.files, moved_marks=written.moved_marks)
    storage = Storage(view.io_properties)
    landed, result = committed_result(
        handle, change, storage, "create", phases, first=first if known else None
    )
    if not known:
        add_name(landed)
    return landed, result


def rows_with_schema(rows: Any, engine: Engine) -> tuple[Any, Any]:
    """Return rows, and the schema that a table of them has; rows that can be read once are held."""
    found = source_of(rows, engine)
    if isinstance(found, SparkSource):
        return found.frame, schema_of(found.frame)
    if isinstance(found, FileSource):
        return rows, found.schema
    held = pa.Table.from_batches(found.batches, found.schema)
    if not held.column_names:
        raise InvalidStatementError(
            "Cannot create a table of rows without columns. Use create_table and give a schema."
        )
    return held, held.schema


def _redefined(handle: TableHandle, definition: TableDefinition) -> TableHandle:
    payload = handle.format.alter(handle, Redefine(definition))
    return handle if payload is None else handle.format.altered(handle, payload)
