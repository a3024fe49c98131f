"""Footers of files that are taken into a table as they are.

Comes in: files and the table's schema; runs in driver threads or in Spark tasks, so PyIceberg is
not imported here. Goes out: `WRITTEN_FILES` rows, or an error that names the file: unreadable,
without a column in common, with a type that the table cannot read, with another table's field ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import CorruptTableError, SchemaMismatchError, shown
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.schema import FIELD_ID, INITIAL_DEFAULT, children, field_id
from rowlake.model.values import decode, encode
from rowlake.scan.open import opened
from rowlake.scan.project import Columns
from rowlake.scan.shape import leaf_count, with_children
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage
from rowlake.write.leaves import leaves_of
from rowlake.write.metrics import Metrics, parquet_metrics
from rowlake.write.metrics_modes import NONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.ingest.folders import SourceFile
    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping
    from rowlake.scan.source import DataFileSource
    from rowlake.write.leaves import Leaf
    from rowlake.write.metrics_modes import MetricsMode

SCHEMAS = pa.schema([pa.field("location", pa.string()), pa.field("schema", pa.binary())])


@dataclass(frozen=True)
class AdoptContext:
    """What all tasks share; `names` has every name that a field id ever had in the table."""

    schema: Schema
    name_mapping: NameMapping | None
    modes: Mapping[int, MetricsMode]
    constant_ids: frozenset[int] = frozenset()
    names: Mapping[int, frozenset[str]] = field(default_factory=dict)
    io_properties: Mapping[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr


@dataclass(frozen=True)
class AdoptTask:
    """Some files, with their spec and encoded partitions."""

    context: AdoptContext
    files: tuple[SourceFile, ...]
    partitions: tuple[tuple[bytes | None, ...], ...] = ()
    spec_id: int = 0


def adopt_kernel(task: AdoptTask) -> Iterator[pa.RecordBatch]:
    """Yield the files of a task as data files of the table."""
    storage = Storage(task.context.io_properties)
    rows = [
        _row(file, task.context, storage)
        | {"spec_id": task.spec_id, "partition": list(task.partitions[place])}
        for place, file in enumerate(task.files)
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=WRITTEN_FILES)


def schema_kernel(task: AdoptTask) -> Iterator[pa.RecordBatch]:
    """Yield the different schemas of a task's files, each with the first file that has it."""
    storage, found = Storage(task.context.io_properties), dict[bytes, str]()
    for file in task.files:
        with _open(file, task.context, storage) as source:
            text = plain_schema(source).serialize().to_pybytes()
        found.setdefault(text, file.location)
    rows = [{"location": place, "schema": text} for text, place in found.items()]
    yield pa.RecordBatch.from_pylist(rows, schema=SCHEMAS)


def _open(file: SourceFile, context: AdoptContext, storage: Storage) -> Any:
    return opened(file.location, file.file_format, storage, context.schema, context.name_mapping)


def _row(file: SourceFile, context: AdoptContext, storage: Storage) -> dict[str, Any]:
    try:
        with _open(file, context, storage) as source:
            _check_columns(source, context)
            metrics = _metrics(source, context)
            rows = sum(unit.num_rows for unit in source.units)
            offsets = sorted(unit.offset for unit in source.units)
    except CorruptTableError as error:
        raise CorruptTableError(
            error.location,
            error.cause,
            advice="Leave the file out, or repair it; nothing was added.",
        ) from error
    _check_nulls(file, context, metrics)
    return {
        "content": int(Content.DATA),
        "location": file.location,
        "file_format": file.file_format,
        "record_count": rows,
        "file_size_in_bytes": file.size_in_bytes,
        "column_sizes": metrics.column_sizes or None,
        "value_counts": metrics.value_counts or None,
        "null_value_counts": metrics.null_value_counts or None,
        "lower_bounds": metrics.lower_bounds or None,
        "upper_bounds": metrics.upper_bounds or None,
        "split_offsets": (offsets or None) if file.file_format != "AVRO" else None,
    }


# ---------------------------------------------------------------------- checks


def _check_columns(source: DataFileSource, context: AdoptContext) -> None:
    found = source.schema
    if not found.inferred:
        _check_ids(source, context)
    ids = {field_id(column) for column in found.arrow} - {None}
    table = {field_id(column): column for column in context.schema.arrow}
    if not ids & set(table) and set(table) - context.constant_ids:
        raise SchemaMismatchError(
            f"Cannot add {source.location}: it has no column of the table; it has "
            f"{shown(found.arrow.names)}."
        )
    for key, column in table.items():
        is_given = key in ids or key in context.constant_ids
        if not is_given and not column.nullable and INITIAL_DEFAULT not in (column.metadata or {}):
            raise SchemaMismatchError(
                f"Cannot add {source.location}: it lacks the required column {column.name}.",
                column=column.name,
            )
    constants = dict.fromkeys(context.constant_ids)
    targets = tuple(table[key] for key in table if key in ids and key not in constants)
    every = frozenset(range(sum(map(leaf_count, found.arrow))))
    try:
        Columns(source.location, found, targets, {}).bind(every)
    except (CorruptTableError, ValueError) as error:
        cause = error.cause if isinstance(error, CorruptTableError) else str(error)
        raise SchemaMismatchError(f"Cannot add {source.location}: {cause}.") from error


def _check_ids(source: DataFileSource, context: AdoptContext) -> None:
    """Refuse field ids that mean other columns here: the file is another table's."""
    by_name = {column.name: field_id(column) for column in context.schema.arrow}
    for column in source.schema.arrow:
        known = context.names.get(field_id(column) or 0, frozenset())
        is_strange = (known and column.name not in known) or (not known and column.name in by_name)
        if is_strange:
            meant = f"column {shown(sorted(known))}" if known else "no column"
            raise SchemaMismatchError(
                f"Cannot add {source.location}: its column {column.name} has the field id "
                f"{field_id(column)}, which is {meant} of this table. The file was written for "
                "another table; append its rows instead.",
                column=column.name,
            )


def _check_nulls(file: SourceFile, context: AdoptContext, metrics: Metrics) -> None:
    nulls = dict(metrics.null_value_counts)
    for column in context.schema.arrow:
        key = field_id(column) or 0
        if not column.nullable and nulls.get(key) and key not in context.constant_ids:
            raise SchemaMismatchError(
                f"Cannot add {file.location}: the required column {column.name} has "
                f"{nulls[key]} nulls in it.",
                column=column.name,
            )


# ---------------------------------------------------------------------- metrics


def _metrics(source: DataFileSource, context: AdoptContext) -> Metrics:
    footer = getattr(source, "metadata", None)
    if footer is None:  # pyarrow shows no statistics of ORC, and Avro has none
        return Metrics()
    leaves = leaves_of(source.schema.arrow)
    if len(leaves) != footer.num_columns:
        return Metrics()
    known = context.schema.by_id
    modes = {leaf.field_id: context.modes.get(leaf.field_id, NONE) for leaf in leaves}
    groups = range(footer.num_row_groups)
    for place, leaf in enumerate(leaves):
        target = known.get(leaf.field_id)
        kinds = {footer.row_group(group).column(place).physical_type for group in groups}
        if target is None or leaf.field_id in context.constant_ids:
            modes[leaf.field_id] = NONE
        elif not _has_bounds(leaf, target, kinds):
            modes[leaf.field_id] = replace(modes[leaf.field_id], bounds=False)
    return _fitted(parquet_metrics(footer, leaves, modes, {}), leaves, known)


_WIDER = {
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
}


def _has_bounds(leaf: Leaf, target: pa.Field, physical: set[str]) -> bool:
    """Return whether the footer's bounds mean the same in the table's type."""
    kind = leaf.field.type
    if pa.types.is_decimal(kind):
        is_integer = physical <= {"INT32", "INT64"}
        return bool(kind.equals(target.type) and is_integer == (kind.precision <= 18))
    if pa.types.is_timestamp(kind):
        return bool(pa.types.is_timestamp(target.type) and physical == {"INT64"})
    return kind.equals(target.type) or (kind, target.type) in _WIDER


def _fitted(metrics: Metrics, leaves: list[Leaf], known: Mapping[int, pa.Field]) -> Metrics:
    """Return the metrics in the table's types, without what a footer cannot tell (NaN)."""
    types = {leaf.field_id: leaf.field.type for leaf in leaves}
    metrics.nan_value_counts = []
    for bounds, rounds_up in ((metrics.lower_bounds, False), (metrics.upper_bounds, True)):
        fitted = [
            (key, _as_type(bound, types[key], known[key].type, rounds_up=rounds_up))
            for key, bound in bounds
        ]
        bounds[:] = [(key, bound) for key, bound in fitted if bound is not None]
    return metrics


def _as_type(
    bound: bytes, kind: pa.DataType, target: pa.DataType, *, rounds_up: bool
) -> bytes | None:
    if pa.types.is_floating(kind):
        value = decode(pa.array([bound], pa.binary()), kind)[0].as_py()
        if value != value:
            return None
        zero = 0.0 if rounds_up else -0.0
        value = zero if value == 0 else value
        return bytes(encode(pa.array([value], target))[0].as_py())
    if kind.equals(target):
        return bound
    if pa.types.is_timestamp(kind):
        return _instant(int.from_bytes(bound, "little", signed=True), kind, target, rounds_up)
    value = int.from_bytes(bound, "little", signed=True)
    return bytes(encode(pa.array([value], target))[0].as_py())


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _instant(value: int, kind: pa.DataType, target: pa.DataType, rounds_up: bool) -> bytes | None:
    scaled = value * _PER_SECOND[target.unit]
    per = _PER_SECOND[kind.unit]
    whole = -(-scaled // per) if rounds_up else scaled // per
    return whole.to_bytes(8, "little", signed=True) if abs(whole) < 2**63 else None


# ---------------------------------------------------------------------- schemas


def plain_schema(source: DataFileSource) -> pa.Schema:
    """Return a file's schema as a new table would have it: all optional, INT96 with a zone."""
    footer = getattr(source, "metadata", None)
    physical = None
    if footer is not None:
        columns = footer.schema
        physical = [columns.column(place).physical_type for place in range(footer.num_columns)]
    counter = iter(physical or ())
    keeps = not source.schema.inferred
    return pa.schema([_plain_field(column, counter, keeps) for column in source.schema.arrow])


def _plain_field(column: pa.Field, physical: Iterator[str], keeps_id: bool) -> pa.Field:
    below = [_plain_field(child, physical, keeps_id) for child in children(column.type)]
    kind = column.type
    if below:
        if pa.types.is_map(kind):
            below[0] = below[0].with_nullable(False)
        kind = with_children(kind, below)
    elif next(physical, None) == "INT96":
        kind = pa.timestamp("us", "UTC")  # Spark's and Hive's instants
    identity = (column.metadata or {}).get(FIELD_ID) if keeps_id else None
    return pa.field(column.name, kind, metadata={FIELD_ID: identity} if identity else None)
