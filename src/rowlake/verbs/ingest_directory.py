"""snapshot and migrate: a plain directory becomes a table, its files are not rewritten.

Comes in: a directory and the name of a new table. Goes out: the table, created and filled in one
commit. Columns come from the files and from `key=value` folders. On any failure there is no table,
and the files are as they were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.catalog import tables as catalog_tables
from rowlake.commit.outcome import Phases
from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.ingest.folders import inferred_types, source_files
from rowlake.ingest.footers import SCHEMAS, AdoptContext, schema_kernel
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.partition import PartitionBy
from rowlake.model.schema import Schema
from rowlake.storage.files import Storage
from rowlake.storage.locations import split
from rowlake.verbs.create import already_there, create_table
from rowlake.verbs.ingest import added, checked_format, cost_of, tasks_of
from rowlake.verbs.write import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.ingest.folders import SourceFile
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result

SNAPSHOT_PROPERTIES = {"gc.enabled": "false", "snapshot": "true"}


def snapshot_table(
    catalog: Any,
    engine: Engine,
    source: str,
    identifier: tuple[str, ...],
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    file_format: str | None = None,
) -> tuple[TableHandle, Result]:
    """Create a table over the files of a directory, which stays as it is.

    The new table never deletes them (`gc.enabled` is false).
    """
    layout = TableDefinition(
        None, properties={**(properties or {}), **SNAPSHOT_PROPERTIES}, location=location
    )
    return _over_directory(catalog, engine, source, identifier, layout, file_format, apart=True)


def migrate(
    catalog: Any,
    engine: Engine,
    source: str,
    identifier: tuple[str, ...],
    *,
    properties: Mapping[str, str] | None = None,
    file_format: str | None = None,
) -> tuple[TableHandle, Result]:
    """Make a directory a table, in place: its files become the table's own."""
    layout = TableDefinition(
        None, properties={**(properties or {}), "migrated": "true"}, location=source
    )
    return _over_directory(catalog, engine, source, identifier, layout, file_format, apart=False)


def _over_directory(
    catalog: Any,
    engine: Engine,
    source: str,
    identifier: tuple[str, ...],
    layout: TableDefinition,
    file_format: str | None,
    *,
    apart: bool,
) -> tuple[TableHandle, Result]:
    phases = Phases()
    if catalog_tables.table_exists(catalog, identifier):
        raise already_there(identifier)
    storage = Storage(catalog.properties)
    with phases.phase("list"):
        files = source_files(source, storage, checked_format(file_format))
    parts = split(source)
    folder = parts.prefix + parts.path if parts.is_local else source.rstrip("/")
    if not apart and files[0].location == folder:
        raise InvalidStatementError(f"Cannot migrate {source}: it is a file, not a directory.")
    partition_types = inferred_types(files)
    with phases.phase("read schemas"):
        schema = merged_schema(engine, files, storage, partition_types)
    layout = replace(
        layout,
        schema=schema,
        partition_by=tuple(PartitionBy((name,)) for name in partition_types),
        location=layout.location if apart else folder,
    )
    handle = create_table(catalog, identifier, layout, staged=True)
    if apart:
        _check_apart(handle.location, folder)
    view = handle.view()
    return added(handle, view, engine, files, WriteOptions(), phases, {}, False)


def _check_apart(location: str, source: str) -> None:
    one, other = (split(place).path.rstrip("/") + "/" for place in (location, source))
    if one.startswith(other) or other.startswith(one):
        raise InvalidStatementError(
            f"Cannot make a snapshot table at {location}: it overlaps with the source {source}. "
            "Give another location, or migrate the directory in place."
        )


def merged_schema(
    engine: Engine,
    files: Sequence[SourceFile],
    storage: Storage,
    partition_types: Mapping[str, pa.DataType],
) -> pa.Schema:
    """Return the columns of all files, by name, then those of the folders."""
    context = AdoptContext(Schema(pa.schema([])), None, {}, io_properties=storage.properties)
    found = engine.run(
        schema_kernel,
        tasks_of(context, files),
        SCHEMAS,
        size_in_bytes=cost_of(files),
        label="reading schemas",
    ).sort_by("location")
    columns: dict[str, pa.Field] = {}
    for location, text in zip(*(column.to_pylist() for column in found.columns), strict=True):
        for column in pa.ipc.read_schema(pa.py_buffer(text)):
            known = columns.setdefault(column.name, column)
            columns[column.name] = _unified(known, column, location)
    kept = [column for name, column in columns.items() if name not in partition_types]
    return pa.schema([*kept, *(pa.field(name, kind) for name, kind in partition_types.items())])


def _unified(one: pa.Field, other: pa.Field, location: str) -> pa.Field:
    if one.type.equals(other.type):
        return one
    try:
        return pa.unify_schemas(
            [pa.schema([one]), pa.schema([other])], promote_options="permissive"
        ).field(0)
    except pa.ArrowException as error:
        raise SchemaMismatchError(
            f"Column {one.name} is {other.type} in {location}, but {one.type} in other files.",
            column=one.name,
        ) from error
