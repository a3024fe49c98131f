"""add_files, snapshot and migrate: files that exist become data files, without being rewritten.

Comes in: a table (or the name of a new one) and a directory or files. Goes out: the handle after
one append commit and a `Result`. Files are only read: on any failure the table is as it was and
the files stay where they are.

Partition values come from `key=value` folders, so the table needs a spec of identity fields with
just these names, as in Iceberg's own add_files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.catalog import tables as catalog_tables
from rowlake.errors import InvalidStatementError, SchemaMismatchError, shown
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.metadata import view_of
from rowlake.iceberg.name_mapping import NAME_MAPPING, default_mapping, ensure_mapping
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.partition import PartitionBy
from rowlake.model.result import Result
from rowlake.model.schema import Schema
from rowlake.storage.files import Storage
from rowlake.storage.locations import S3, split
from rowlake.verbs.adopt import SCHEMAS, AdoptContext, AdoptTask, adopt_kernel, schema_kernel
from rowlake.verbs.create import Layout, already_there, create_table
from rowlake.verbs.folders import FORMATS, inferred_types, source_files
from rowlake.verbs.outcome import Phases, commit_or_raise
from rowlake.verbs.partition_texts import encoded_partitions
from rowlake.verbs.write import WriteOptions, view_for_write
from rowlake.write.metrics_modes import metrics_modes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import TableHandle
    from rowlake.engine.spark import Engine
    from rowlake.iceberg.refs import Updates
    from rowlake.model.partition import PartitionField, PartitionSpec
    from rowlake.model.view import TableView
    from rowlake.verbs.folders import SourceFile

FOOTER_BYTES = 64 * 1024  # about what reading a footer costs
FILES_PER_TASK = 500
SNAPSHOT_PROPERTIES = {"gc.enabled": "false", "snapshot": "true"}


def add_files(
    handle: TableHandle,
    engine: Engine,
    source: Any,
    options: WriteOptions,
    *,
    partition_filter: Mapping[str, Any] | None = None,
    check_duplicate_files: bool = True,
    file_format: str | None = None,
) -> tuple[TableHandle, Result]:
    """Take files into a table; `partition_filter` picks folders by their values."""
    phases = Phases()
    view = view_for_write(handle, options.branch)
    with phases.phase("list"):
        files = source_files(source, Storage(view.io_properties), _checked_format(file_format))
    return _added(
        handle, view, engine, files, options, phases, partition_filter or {}, check_duplicate_files
    )


def _checked_format(file_format: str | None) -> str | None:
    if file_format is not None and file_format.upper() not in FORMATS:
        raise InvalidStatementError(
            f"There are no {file_format} data files; there are {', '.join(FORMATS)}."
        )
    return None if file_format is None else file_format.upper()


def _added(
    handle: TableHandle,
    view: TableView,
    engine: Engine,
    files: list[SourceFile],
    options: WriteOptions,
    phases: Phases,
    partition_filter: Mapping[str, Any],
    checks_duplicates: bool,
) -> tuple[TableHandle, Result]:
    spec = compatible_spec(view, files)
    files, partitions = _partitioned(view, spec, files, partition_filter)
    storage = Storage(view.io_properties)
    checked = _checked_duplicates(view, files, storage) if checks_duplicates else None
    mapping = view.properties.get(NAME_MAPPING) or default_mapping(handle)
    with phases.phase("read footers"):
        context = _context(view, spec, mapping)
        written = engine_rows(engine, context, files, partitions, spec.spec_id, options)

    def first(newest: TableHandle) -> Updates:
        if checks_duplicates:
            after = view_for_write(newest, options.branch)
            if after.snapshot_id != checked:
                _checked_duplicates(after, files, storage)
        return ensure_mapping(newest)

    change = Change(
        Operation.APPEND,
        added_data=written,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
    )
    with phases.phase("commit"):
        landed, committed = commit_or_raise(
            handle, change, storage, "add_files", keep_files=True, first=first
        )
    return landed, Result(
        operation="add_files",
        snapshot_id=committed.snapshot_id,
        rows_inserted=int(pc.sum(written["record_count"]).as_py() or 0),
        data_files_added=written.num_rows,
        files_considered=len(files),
        retries=committed.retries,
        seconds=phases.total,
        phases=phases.seconds,
    )


def _context(view: TableView, spec: PartitionSpec, mapping: str) -> AdoptContext:
    names: dict[int, set[str]] = {}
    for schema in view.schemas.values():
        for key, path in schema.paths.items():
            names.setdefault(key, set()).add(path[-1])
    return AdoptContext(
        schema=view.schema,
        name_mapping=mapping,
        modes=metrics_modes(view.properties, view.schema, None),
        constant_ids=frozenset(field.source_id for field in spec.fields),
        names={key: frozenset(found) for key, found in names.items()},
        io_properties=view.io_properties,
    )


def engine_rows(
    engine: Engine,
    context: AdoptContext,
    files: Sequence[SourceFile],
    partitions: Sequence[tuple[bytes | None, ...]],
    spec_id: int,
    options: WriteOptions,
) -> pa.Table:
    """Read footers: in the driver for a few files, in Spark tasks for many."""
    tasks = _tasks(context, files, partitions, spec_id)
    found = engine.run(
        adopt_kernel,
        tasks,
        WRITTEN_FILES,
        size_in_bytes=_cost(files),
        label="reading footers",
        progress=options.progress,
    )
    return found.sort_by("location")


def _tasks(
    context: AdoptContext,
    files: Sequence[SourceFile],
    partitions: Sequence[tuple[bytes | None, ...]] = (),
    spec_id: int = 0,
) -> list[AdoptTask]:
    step = min(FILES_PER_TASK, max(1, -(-len(files) // 8)))
    return [
        AdoptTask(
            context,
            tuple(files[start : start + step]),
            tuple(partitions[start : start + step]),
            spec_id,
        )
        for start in range(0, len(files), step)
    ]


def _cost(files: Sequence[SourceFile]) -> int:
    return sum(min(file.size_in_bytes, FOOTER_BYTES) for file in files)


# ---------------------------------------------------------------------- partitions


def compatible_spec(view: TableView, files: Sequence[SourceFile]) -> PartitionSpec:
    """Return the spec of the table whose identity fields are the folders' names."""
    found = {tuple(sorted(key.lower() for key, _ in file.folders)) for file in files}
    if len(found) > 1:
        inferred_types(files)  # says which folders disagree
    names = found.pop()
    newest_first = sorted(view.specs.values(), key=lambda spec: -spec.spec_id)
    for spec in (view.spec, *newest_first):
        is_plain = all(field.transform in ("identity", "void") for field in spec.fields)
        own = tuple(
            sorted(_name(view, field) for field in spec.fields if field.transform != "void")
        )
        if is_plain and own == names:
            return spec
    folders = shown(names) if names else "(none: the files are in no key=value folders)"
    by = shown(_text(view, field) for field in view.spec.fields) or "nothing"
    raise InvalidStatementError(
        f"Cannot add files to {view.name}: it has no partition spec of identity fields {folders}. "
        f"It is partitioned by {by}."
    )


def _name(view: TableView, field: PartitionField) -> str:
    known = view.schema.by_id.get(field.source_id)
    return str(known.name if known is not None else field.name).lower()


def _text(view: TableView, field: PartitionField) -> str:
    return (
        field.name if field.transform == "identity" else f"{field.transform}({_name(view, field)})"
    )


def _partitioned(
    view: TableView,
    spec: PartitionSpec,
    files: list[SourceFile],
    partition_filter: Mapping[str, Any],
) -> tuple[list[SourceFile], list[tuple[bytes | None, ...]]]:
    """Return the files that the filter picks, with their encoded partitions."""
    names = [_name(view, field) for field in spec.fields]
    unknown = [key for key in partition_filter if key.lower() not in names]
    if unknown:
        raise InvalidStatementError(
            f"Cannot add files to {view.name} by the partition filter: {shown(unknown)} is no "
            f"partition column; there is {shown(names) or 'none'}."
        )
    if not spec.fields:
        return files, [()] * len(files)
    texts = [{key.lower(): text for key, text in file.folders} for file in files]
    columns = [[row.get(name) for row in texts] for name in names]
    partitions = encoded_partitions(view, spec, columns, [file.location for file in files])
    if not partition_filter:
        return files, partitions
    wanted = {key.lower(): None if v is None else str(v) for key, v in partition_filter.items()}
    sample = encoded_partitions(
        view, spec, [[wanted.get(name)] for name in names], ["the partition filter"], checked=False
    )[0]
    places = [place for place, name in enumerate(names) if name in wanted]
    kept = [
        index
        for index, key in enumerate(partitions)
        if all(key[place] == sample[place] for place in places)
    ]
    if not kept:
        raise InvalidStatementError(
            f"Cannot add files to {view.name}: no folder matches the partition filter "
            f"{dict(partition_filter)}."
        )
    return [files[index] for index in kept], [partitions[index] for index in kept]


# ---------------------------------------------------------------------- duplicates


def _checked_duplicates(
    view: TableView, files: Sequence[SourceFile], storage: Storage
) -> int | None:
    """Refuse files that are in the table already; return the snapshot that was looked at."""
    if view.snapshot is None or view.snapshot.manifest_list is None:
        return view.snapshot_id
    manifests = read_manifest_list(view.snapshot.manifest_list, storage)
    data = manifests.filter(pc.equal(manifests["content"], 0))
    spellings = {spelling: f.location for f in files for spelling in _spellings(f.location)}
    wanted = pa.array(list(spellings), pa.string())
    twice: set[str] = set()
    for entries in read_manifests(data, view, storage, columns=["location"]).values():
        known = entries["location"].filter(pc.is_in(entries["location"], wanted))
        twice.update(spellings[location] for location in known.to_pylist())
    if twice:
        raise InvalidStatementError(
            f"Cannot add files to {view.name}: {len(twice)} are in the table already: "
            f"{shown(sorted(twice))}. With check_duplicate_files=False their rows count twice."
        )
    return view.snapshot_id


def _spellings(location: str) -> list[str]:
    """Return the ways in which writers spell one location."""
    parts = split(location)
    if parts.is_local:
        return [prefix + parts.path for prefix in ("", "file:", "file://")]
    if parts.scheme in S3:
        rest = location.partition("://")[2]
        return [f"{scheme}://{rest}" for scheme in sorted(S3)]
    return [location]


# ---------------------------------------------------------------------- new tables


def snapshot_table(
    catalog: Catalog,
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
    layout = Layout(
        None, properties={**(properties or {}), **SNAPSHOT_PROPERTIES}, location=location
    )
    return _over_directory(catalog, engine, source, identifier, layout, file_format, apart=True)


def migrate(
    catalog: Catalog,
    engine: Engine,
    source: str,
    identifier: tuple[str, ...],
    *,
    properties: Mapping[str, str] | None = None,
    file_format: str | None = None,
) -> tuple[TableHandle, Result]:
    """Make a directory a table, in place: its files become the table's own."""
    layout = Layout(None, properties={**(properties or {}), "migrated": "true"}, location=source)
    return _over_directory(catalog, engine, source, identifier, layout, file_format, apart=False)


def _over_directory(
    catalog: Catalog,
    engine: Engine,
    source: str,
    identifier: tuple[str, ...],
    layout: Layout,
    file_format: str | None,
    *,
    apart: bool,
) -> tuple[TableHandle, Result]:
    phases = Phases()
    if catalog_tables.table_exists(catalog, identifier):
        raise already_there(identifier)
    storage = Storage(catalog.properties)
    with phases.phase("list"):
        files = source_files(source, storage, _checked_format(file_format))
    parts = split(source)
    folder = parts.prefix + parts.path if parts.is_local else source.rstrip("/")
    if not apart and files[0].location == folder:
        raise InvalidStatementError(f"Cannot migrate {source}: it is a file, not a directory.")
    partition_types = inferred_types(files)
    with phases.phase("read schemas"):
        schema = _merged_schema(engine, files, storage, partition_types)
    layout = replace(
        layout,
        schema=schema,
        partition_by=tuple(PartitionBy((name,)) for name in partition_types),
        location=layout.location if apart else folder,
    )
    handle = create_table(catalog, identifier, layout, staged=True)
    if apart:
        _check_apart(handle.metadata.location, folder)
    view = view_of(handle)
    return _added(handle, view, engine, files, WriteOptions(), phases, {}, False)


def _check_apart(location: str, source: str) -> None:
    one, other = (split(place).path.rstrip("/") + "/" for place in (location, source))
    if one.startswith(other) or other.startswith(one):
        raise InvalidStatementError(
            f"Cannot make a snapshot table at {location}: it overlaps with the source {source}. "
            "Give another location, or migrate the directory in place."
        )


def _merged_schema(
    engine: Engine,
    files: Sequence[SourceFile],
    storage: Storage,
    partition_types: Mapping[str, pa.DataType],
) -> pa.Schema:
    """Return the columns of all files, by name, then those of the folders."""
    context = AdoptContext(Schema(pa.schema([])), None, {}, io_properties=storage.properties)
    found = engine.run(
        schema_kernel,
        _tasks(context, files),
        SCHEMAS,
        size_in_bytes=_cost(files),
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
