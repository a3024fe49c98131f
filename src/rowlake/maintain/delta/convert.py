"""CONVERT TO DELTA: a folder of Parquet files becomes a Delta table, in place.

No file is rewritten or moved: the first version of the log lists them, with the statistics of their
footers. On any failure there is no log, and the files are as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.commit.outcome import commit_or_raise
from rowlake.delta.create import staged_table
from rowlake.delta.definition import new_definition
from rowlake.delta.load import folder_of
from rowlake.delta.metadata import Metadata
from rowlake.delta.new_schema import delta_schema
from rowlake.delta.schema import columns_of
from rowlake.errors import InvalidStatementError, shown
from rowlake.ingest.folders import inferred_types, source_files
from rowlake.ingest.partition_match import compatible_spec, partitioned
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.partition import PartitionBy
from rowlake.storage.files import Storage
from rowlake.storage.filesystems import io_properties
from rowlake.verbs.ingest import adopt_context, engine_rows
from rowlake.verbs.ingest_directory import merged_schema
from rowlake.verbs.schema_input import schema_of
from rowlake.verbs.write import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.ingest.folders import SourceFile
    from rowlake.model.handle import TableHandle

VERB = "convert"
PARQUET = "PARQUET"
_STATISTICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "lower_bounds",
    "upper_bounds",
)


def convert_to_delta(
    catalog: Any,
    engine: Engine,
    path: str,
    *,
    partition_by: Any = None,
    properties: Mapping[str, str] | None = None,
    statistics: bool = True,
) -> TableHandle:
    """Make a folder of Parquet files a Delta table; `partition_by` types its `key=value` folders.

    Raises InvalidStatementError where the folders are others than `partition_by` says, or where
    there is a table already.
    """
    folder = folder_of(path)
    storage = Storage(io_properties(catalog.properties))
    files = source_files(folder, storage, PARQUET)
    if files[0].location.rstrip("/") == folder:
        raise InvalidStatementError(f"Cannot convert {path}: it is a file, not a folder.")
    kinds = _partition_types(files, partition_by, path)
    schema = merged_schema(engine, files, storage, kinds)
    definition = TableDefinition(
        schema_of(schema),
        partition_by=tuple(PartitionBy((name,)) for name in kinds),
        properties=dict(properties or {}),
        location=folder,
    )
    defined = new_definition(definition)
    handle = staged_table(catalog, ("delta", folder), folder, defined, needs_empty_folder=False)
    written = _written(handle, engine, files, statistics=statistics)
    change = Change(Operation.APPEND, added_data=written, verb=VERB)
    landed, _ = commit_or_raise(handle, change, storage, VERB, keep_files=True)
    return landed


def _partition_types(files: Sequence[SourceFile], given: Any, path: str) -> dict[str, pa.DataType]:
    """Return the partition columns with their types, which a folder's name does not tell."""
    inferred = inferred_types(files)
    wanted = {} if given is None else _types_of(given, path)
    if {one.lower() for one in inferred} != {one.lower() for one in wanted}:
        raise InvalidStatementError(
            f"Cannot convert {path}: its folders have the partition columns "
            f"{shown(list(inferred)) or '(none)'}, PARTITIONED BY has "
            f"{shown(list(wanted)) or '(none)'}. Name them all, each with its type."
        )
    by_name = {one.lower(): kind for one, kind in wanted.items()}
    return {name: by_name[name.lower()] for name in inferred}


def _types_of(given: Any, path: str) -> dict[str, pa.DataType]:
    described = Metadata("", delta_schema(schema_of(given)))
    return {one.name: one.type for one in columns_of(described, path).schema.arrow}


def _written(
    handle: TableHandle, engine: Engine, files: list[SourceFile], *, statistics: bool
) -> pa.Table:
    view = handle.view()
    spec = compatible_spec(view, files)
    files, partitions = partitioned(view, spec, files, {})
    context = adopt_context(view, spec, handle.format.name_mapping(handle))
    written = engine_rows(engine, context, files, partitions, spec.spec_id, WriteOptions())
    if statistics:
        return written
    for name in _STATISTICS:
        index = WRITTEN_FILES.get_field_index(name)
        field = WRITTEN_FILES.field(index)
        written = written.set_column(index, field, pa.nulls(written.num_rows, field.type))
    return written
