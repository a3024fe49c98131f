"""The entries of one manifest: decoded columns to the layout of files, inherited values filled in.

Comes in: the rows of a manifest as its writer typed and named them, and its row of the manifest
list. Goes out: a table of `files_schema` columns. Columns are found by field id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError
from rowlake.iceberg.manifest_schema import DATA_FILE_ID, FIELD_IDS, PARTITION_ID
from rowlake.model.files import Content, Status
from rowlake.model.schema import children, field_id
from rowlake.model.values import decode

if TYPE_CHECKING:
    from rowlake.codecs.avro_decode import Header

UNKNOWN_COUNT = -1
REQUIRED = ("status", "location", "file_format", "record_count", "file_size_in_bytes")
_KINDS = {0: (Content.DATA,), 1: (Content.POSITION_DELETES, Content.EQUALITY_DELETES)}


@dataclass(frozen=True)
class Manifest:
    """One row of a manifest list, as far as reading the manifest needs it.

    A null `sequence_number` means not committed yet: nothing is inherited.
    """

    location: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int | None
    added_snapshot_id: int
    first_row_id: int | None
    added_files_count: int | None
    existing_files_count: int | None
    deleted_files_count: int | None

    @property
    def expected_entries(self) -> int | None:
        """How many entries there must be, None where a v1 list does not say."""
        counts = (self.added_files_count, self.existing_files_count, self.deleted_files_count)
        return None if None in counts else sum(counts)  # type: ignore[arg-type]


class Entries:
    """The decoded columns of one manifest, by field id."""

    def __init__(self, raw: pa.Table, header: Header, manifest: Manifest) -> None:
        self.manifest = manifest
        self.count = raw.num_rows
        self.columns: dict[int, pa.Array] = {}
        self.partition_fields: dict[int | None, str] = {}
        self._collect({name: one_array(raw[name]) for name in raw.column_names}, header.schema)

    def _collect(self, values: dict[str, pa.Array], record: dict[str, Any]) -> None:
        for written in record["fields"]:
            identifier, name = written.get("field-id"), written["name"]
            if identifier == DATA_FILE_ID and name in values:
                self._collect(struct_columns(values[name]), written["type"])
            elif identifier == PARTITION_ID:
                below = written["type"]["fields"]
                self.partition_fields = {part.get("field-id"): part["name"] for part in below}
            if name in values and identifier is not None:
                self.columns[identifier] = values[name]

    def table(self, layout: pa.Schema, partition: pa.StructType) -> pa.Table:
        """Return the columns of a layout."""
        for name in REQUIRED:
            if FIELD_IDS[name] not in self.columns:
                raise CorruptTableError(self.manifest.location, f"it has no column {name}")
        self.validate()
        made = {part.name: self.column(part, partition) for part in layout}
        if self.manifest.content and "referenced_data_file" in made and "file_format" in made:
            self.validate_vectors(made["file_format"], made["referenced_data_file"])
        return pa.table([made[name] for name in layout.names], schema=layout)

    def validate(self) -> None:
        """Refuse entries that the spec has no meaning for, whatever columns are asked for.

        Sizes are not looked at: they are hints.
        """
        for name in REQUIRED:
            if self.columns[FIELD_IDS[name]].null_count:
                raise self.corrupt(f"an entry has no {name}")
        if not self.is_among("status", tuple(Status)):
            raise self.corrupt("an entry has an unknown status")
        if not self.is_among("content", _KINDS[self.manifest.content], absent=Content.DATA):
            held = "delete" if self.manifest.content else "data"
            raise self.corrupt(f"an entry of this manifest of {held} files is none")
        # Imports of Avro files by older Iceberg left the count open; row ids need to know it.
        is_open = self.manifest.first_row_id is None
        self.validate_at_least(UNKNOWN_COUNT if is_open else 0, "record_count")
        self.validate_at_least(0, "data_sequence_number")

    def validate_vectors(self, formats: pa.Array, referenced: pa.Array) -> None:
        """Refuse vectors of no data file (spec, Deletion Vectors): rows would come back."""
        if pc.any(pc.and_(pc.equal(formats, "PUFFIN"), referenced.is_null())).as_py():
            raise self.corrupt("a deletion vector does not say its data file")

    def is_among(self, name: str, known: tuple[int, ...], *, absent: int | None = None) -> bool:
        """Return whether every entry has one of these numbers; `absent` is what null means."""
        values = self.stored(pa.field(name, pa.int64()))
        if values.null_count and absent not in known:
            return False
        least, most = pc.min_max(values).values()
        return not least.is_valid or min(known) <= least.as_py() <= most.as_py() <= max(known)

    def validate_at_least(self, limit: int, name: str) -> None:
        """Refuse a number below a limit."""
        least = pc.min(self.stored(pa.field(name, pa.int64()))).as_py()
        if least is not None and least < limit:
            raise self.corrupt(f"an entry has the {name} {least}")

    def corrupt(self, cause: str) -> CorruptTableError:
        """Return the error that names this manifest."""
        return CorruptTableError(self.manifest.location, cause)

    def column(self, part: pa.Field, partition: pa.StructType) -> pa.Array:
        """Return one column, inherited values filled in."""
        if part.name == "partition":
            return self.partition(partition)
        if part.name == "spec_id":
            return _constant(self.manifest.partition_spec_id, self.count, part.type)
        values = self.stored(part)
        if part.name == "content":
            return pc.coalesce(values, pa.scalar(0, part.type)) if values.null_count else values
        if part.name == "file_format":
            return pc.ascii_upper(values)
        if part.name == "snapshot_id" and values.null_count:
            return pc.coalesce(values, pa.scalar(self.manifest.added_snapshot_id, part.type))
        if part.name in ("data_sequence_number", "file_sequence_number"):
            return self.with_sequence_number(values, is_needed=part.name.startswith("data"))
        if part.name == "first_row_id":
            return self.with_row_ids(values)
        return values

    def stored(self, part: pa.Field) -> pa.Array:
        """Return a column as it is in the file, in the layout's type; nulls where it is not."""
        values = self.columns.get(FIELD_IDS[part.name])
        if values is None:
            return pa.nulls(self.count, part.type)
        try:
            return as_type(values, part.type)
        except pa.ArrowException as error:
            raise CorruptTableError(
                self.manifest.location, f"{part.name} cannot be read as {part.type} ({error})"
            ) from error

    def with_sequence_number(self, values: pa.Array, *, is_needed: bool) -> pa.Array:
        """Fill sequence numbers in (spec, Sequence Number Inheritance).

        ADDED entries inherit the manifest's; in tables of v1 every number is 0. Without the one
        that `is_needed`, nobody could tell which deletes apply to an EXISTING file.
        """
        number = self.manifest.sequence_number
        if number is None or not values.null_count:
            return values
        inherited = pa.scalar(number, pa.int64())
        filled = pc.coalesce(values, inherited)
        if number == 0:
            return filled
        status = self.columns[FIELD_IDS["status"]]
        found = pc.if_else(pc.equal(status, int(Status.ADDED)), filled, values)
        if is_needed and found.null_count:
            existing = pc.equal(status, int(Status.EXISTING))
            if pc.any(pc.and_(existing, found.is_null())).as_py():
                raise self.corrupt("an existing entry has no sequence number")
        return found

    def with_row_ids(self, values: pa.Array) -> pa.Array:
        """Fill first row ids in (spec, First Row ID Inheritance).

        Live data files without one get the manifest's plus the rows of those before them. A
        committed manifest that has none assigns none, and what its entries say does not count.
        """
        if self.manifest.sequence_number is None:
            return values
        start = self.manifest.first_row_id
        if start is None or self.manifest.content != 0:
            return pa.nulls(self.count, pa.int64())
        status = self.columns[FIELD_IDS["status"]].to_numpy(zero_copy_only=False)
        unset = values.is_null().to_numpy(zero_copy_only=False) & (status != Status.DELETED)
        if not unset.any():
            return values
        rows = self.columns[FIELD_IDS["record_count"]].to_numpy(zero_copy_only=False)
        taken = np.where(unset, rows, 0)
        assigned = pa.array(start + np.cumsum(taken) - taken, pa.int64())
        return pc.if_else(pa.array(unset), assigned, values)

    def partition(self, to: pa.StructType) -> pa.StructArray:
        """Return partition values as the spec types them, found by partition field id."""
        fields = children(to)
        stored = self.columns.get(PARTITION_ID)
        if not fields:
            return _empty_structs(self.count, to)
        below = {} if stored is None else struct_columns(stored)
        columns = []
        for part in fields:
            name = self.partition_fields.get(field_id(part), part.name)
            values = below.get(name)
            columns.append(
                pa.nulls(self.count, part.type)
                if values is None
                else self.partition_values(values, part)
            )
        return pa.StructArray.from_arrays(columns, fields=fields)

    def partition_values(self, values: pa.Array, part: pa.Field) -> pa.Array:
        """Return one field's values in the type of the spec."""
        try:
            return as_type(values, part.type)
        except pa.ArrowException as error:
            raise CorruptTableError(
                self.manifest.location,
                f"partition field {part.name} cannot be read as {part.type} ({error})",
            ) from error


def struct_columns(rows: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of a struct array by name."""
    return {rows.type.field(at).name: part for at, part in enumerate(rows.flatten())}


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only where it is in several."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def _constant(value: int, count: int, of: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, of), count)


def _empty_structs(count: int, of: pa.StructType) -> pa.StructArray:
    return pa.Array.from_buffers(of, count, [None], children=[])


def as_type(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Return decoded Avro values as the Arrow type that rowlake uses for them."""
    if values.type == to:
        return values
    if pa.types.is_null(to):
        return pa.nulls(len(values))
    if pa.types.is_map(to):
        return _as_map(values, to)
    if pa.types.is_decimal(to) and not pa.types.is_decimal(values.type):
        return decode(values.cast(pa.binary()), to)
    if pa.types.is_timestamp(to) and pa.types.is_timestamp(values.type):
        # Both of Iceberg's timestamps are stored alike; which it is, the spec's type says.
        return values.view(pa.timestamp(values.type.unit, to.tz)).cast(to)
    return values.cast(to)


def _as_map(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Return a list of key-value records as a map, nothing copied but narrow types."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), to)
    pairs = values.values
    keys, items = pairs.flatten()
    entries = pa.StructArray.from_arrays(
        [as_type(keys, to.key_type), as_type(items, to.item_type)],
        fields=[to.key_field, to.item_field],
    )
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(
        to, len(values), buffers, values.null_count, values.offset, children=[entries]
    )
