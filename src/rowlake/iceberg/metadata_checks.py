"""What metadata must hold beyond its JSON schema, checked before anything is done with it.

Comes in: metadata that PyIceberg has parsed, or schemas on their way into a table. Goes out:
nothing, or CorruptTableError (what the spec forbids and would lose rows or fail later in a less
readable way), UnsupportedFeatureError (deeper than can be read), SchemaMismatchError (deeper than
rowlake creates), InvalidStatementError (secrets).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from pyiceberg import types as iceberg
from pyiceberg.table import StagedTable
from pyiceberg.table.update import AddSchemaUpdate, AddSnapshotUpdate, SetPropertiesUpdate

from rowlake.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError
from rowlake.model.properties import validate_no_secrets
from rowlake.model.schema import MAX_NESTING, MAX_NESTING_READ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate

ADVICE = "Restore the file, or register an older metadata file of the table."
MAIN = "main"
MOST_INT = 2**31 - 1
MOST_LONG = 2**63 - 1
MOST_MS = 253_402_300_799_999  # the last of the year 9999
_SHOWN_PARTS = 6


def validate_metadata(metadata: TableMetadata, location: str) -> None:
    """Check parsed metadata; `location` is for messages."""
    cause = (
        _number_out_of_range(metadata)
        or _duplicate(metadata)
        or _wrong_head(metadata)
        or _no_manifests(metadata)
        or ("its location has a null character" if "\0" in metadata.location else None)
    )
    if cause is not None:
        raise CorruptTableError(location, cause, advice=ADVICE)
    for schema in metadata.schemas:
        _validate_schema(schema, location)


def _number_out_of_range(metadata: TableMetadata) -> str | None:
    for name, value, most in _numbers(metadata):
        if value is not None and not -most - 1 <= value <= most:
            return f"{name} is out of range"
    return None


def _numbers(metadata: TableMetadata) -> Iterator[tuple[str, int | None, int]]:
    """Yield the numbers that are read with a fixed width, and the largest that they can be."""
    yield "last-updated-ms", metadata.last_updated_ms, MOST_MS
    yield "last-column-id", metadata.last_column_id, MOST_INT
    yield "last-partition-id", metadata.last_partition_id, MOST_INT
    yield "current-snapshot-id", metadata.current_snapshot_id, MOST_LONG
    for name in ("last_sequence_number", "next_row_id"):  # the next commit counts on from them
        yield name.replace("_", "-"), getattr(metadata, name, None), MOST_LONG // 2
    for one in metadata.snapshots:
        yield "a snapshot-id", one.snapshot_id, MOST_LONG
        yield "a parent-snapshot-id", one.parent_snapshot_id, MOST_LONG
        yield "a sequence-number", one.sequence_number, MOST_LONG
        yield "the timestamp-ms of a snapshot", one.timestamp_ms, MOST_MS
        yield "the schema-id of a snapshot", one.schema_id, MOST_INT
        yield "the first-row-id of a snapshot", one.first_row_id, MOST_LONG
        yield "the added-rows of a snapshot", one.added_rows, MOST_LONG
    for entry in metadata.snapshot_log:
        yield "a snapshot-id of the snapshot log", entry.snapshot_id, MOST_LONG
        yield "a time of the snapshot log", entry.timestamp_ms, MOST_MS
    for logged in metadata.metadata_log:
        yield "a time of the metadata log", logged.timestamp_ms, MOST_MS
    for name, ref in metadata.refs.items():
        yield f"the snapshot-id of {name}", ref.snapshot_id, MOST_LONG
    for schema in metadata.schemas:
        yield "a schema-id", schema.schema_id, MOST_INT
    for field in chain.from_iterable(spec.fields for spec in metadata.partition_specs):
        yield "the id of a partition field", field.field_id, MOST_INT


def _duplicate(metadata: TableMetadata) -> str | None:
    """Return which id means two things."""
    seen: set[int] = set()
    for one in metadata.snapshots:
        if one.snapshot_id in seen:
            return f"there are two snapshots {one.snapshot_id}"
        seen.add(one.snapshot_id)
    kinds: dict[str, list[tuple[int, Any]]] = {
        "schemas": [(schema.schema_id, schema) for schema in metadata.schemas],
        "partition specs": [(spec.spec_id, spec) for spec in metadata.partition_specs],
        "sort orders": [(order.order_id, order) for order in metadata.sort_orders],
    }
    for kind, pairs in kinds.items():
        known: dict[int, Any] = {}
        for number, meant in pairs:
            if known.setdefault(number, meant) != meant:
                return f"there are two {kind} {number}"
    return None


def _wrong_head(metadata: TableMetadata) -> str | None:
    """Return why nobody can tell which rows the table has (Java refuses the same)."""
    current, main = metadata.current_snapshot_id, metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != current:
        return f"its current snapshot is {current}, but main points to {main.snapshot_id}"
    if current is not None and metadata.snapshot_by_id(current) is None:
        return f"its current snapshot {current} is not among its snapshots"
    return None


def _no_manifests(metadata: TableMetadata) -> str | None:
    """Return which snapshot does not say its files: it would count as empty."""
    for one in metadata.snapshots:
        if not one.manifest_list:
            return f"snapshot {one.snapshot_id} has no manifest list"
    return None


def _validate_schema(schema: Schema, location: str) -> None:
    for path, field, depth in _fields(schema):
        found = field.field_type
        if depth > MAX_NESTING_READ:
            raise UnsupportedFeatureError(
                f"Cannot read {location}: column {_text(path)} is nested deeper than "
                f"{MAX_NESTING_READ} levels."
            )
        cause = None
        if isinstance(found, iceberg.FixedType) and not 0 < len_of(found) <= MOST_INT:
            cause = f"column {_text(path)} has the type fixed[{len_of(found)}]"
        if not -MOST_INT <= field.field_id <= MOST_INT:
            cause = f"the id of column {_text(path)} is out of range"
        if cause is not None:
            raise CorruptTableError(location, cause, advice=ADVICE)


def len_of(fixed: iceberg.FixedType) -> int:
    """Return the length of a fixed type, which may be more than Python's `len` can return."""
    return int(fixed.root)


def validate_updates(
    updates: Iterable[TableUpdate], known: Mapping[str, str] | None = None
) -> None:
    """Refuse updates that add what could not be read again, or a secret.

    `known` are properties that the table has already.
    """
    for update in updates:
        if isinstance(update, AddSchemaUpdate):
            validate_nesting(update.schema_)
        elif isinstance(update, SetPropertiesUpdate):
            before = known or {}
            validate_no_secrets(
                {key: one for key, one in update.updates.items() if before.get(key) != one}
            )
        elif isinstance(update, AddSnapshotUpdate) and update.snapshot.summary is not None:
            summary = update.snapshot.summary.additional_properties
            validate_no_secrets(summary, of="snapshot property")


def validate_commit(table: Table, updates: Iterable[TableUpdate]) -> None:
    """Refuse what a commit of PyIceberg's table object must not add."""
    validate_updates(updates, None if isinstance(table, StagedTable) else table.metadata.properties)


def validate_nesting(schema: Schema) -> None:
    """Refuse a schema that is nested too deep to be created."""
    for path, _, depth in _fields(schema):
        if depth > MAX_NESTING:
            raise too_deep(path)


def too_deep(path: tuple[str, ...]) -> SchemaMismatchError:
    """Return the error for a column that is nested too deep."""
    return SchemaMismatchError(
        f"Column {_text(path)} is nested deeper than {MAX_NESTING} levels, which not every file "
        "format can hold. Flatten it, or store it as text.",
        column=".".join(path),
    )


def _text(path: tuple[str, ...]) -> str:
    return ".".join(path[:_SHOWN_PARTS]) + (".…" if len(path) > _SHOWN_PARTS else "")


def _fields(schema: Schema) -> Iterator[tuple[tuple[str, ...], iceberg.NestedField, int]]:
    """Yield every field with its path and the number of nested types down to it.

    Stops below the depth that anybody allows: no recursion, whatever others have written.
    """
    pending: list[tuple[tuple[str, ...], iceberg.NestedField, int]]
    pending = [((field.name,), field, 0) for field in schema.fields]
    while pending:
        path, found, above = pending.pop()
        below = _fields_of(found.field_type)
        depth = above + bool(below)
        yield path, found, depth
        if depth <= MAX_NESTING_READ:
            pending.extend(((*path, field.name), field, depth) for field in below)


def _fields_of(found: iceberg.IcebergType) -> tuple[iceberg.NestedField, ...]:
    if isinstance(found, iceberg.StructType):
        return found.fields
    if isinstance(found, iceberg.ListType):
        return (found.element_field,)
    if isinstance(found, iceberg.MapType):
        return found.key_field, found.value_field
    return ()
