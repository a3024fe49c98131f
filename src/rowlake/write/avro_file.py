"""One Avro data file being written.

Comes in: batches in the stored schema. Goes out: a container file with Iceberg's field ids in
its schema, and what its manifest entry says. Columns are encoded whole, not row by row.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_container import container_header, framed
from rowlake.codecs.avro_encode import encode_blocks, encode_rows
from rowlake.model.schema import children
from rowlake.write.arrow_metrics import ArrowMetrics
from rowlake.write.avro_schema import avro_schema
from rowlake.write.parquet_file import FileSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.write.metrics_modes import MetricsMode

NULL_BRANCH, VALUE_BRANCH = b"\x00", b"\x02"
BLOCK_BYTES = 256 * 1024
ROWS_AT_ONCE = 64 * 1024


class AvroFormat:
    """Opens the Avro files of one task."""

    def __init__(self, schema: pa.Schema, codec: str, modes: Mapping[int, MetricsMode]) -> None:
        self.schema, self.codec, self.modes = schema, codec, modes
        self.avro = avro_schema(schema)
        self.fields = avro_schema(schema, expanded=True)["fields"]

    def open(self, stream: pa.NativeFile, first: list[pa.RecordBatch]) -> AvroFile:  # noqa: ARG002
        """Start a file."""
        return AvroFile(self, stream)


class AvroFile:
    """One file; `close` ends it and says what is in it."""

    def __init__(self, of: AvroFormat, stream: pa.NativeFile) -> None:
        self._format, self._stream = of, stream
        self._metrics = ArrowMetrics(of.schema, of.modes)
        header, self._sync = container_header({"avro.schema": json.dumps(of.avro)}, of.codec)
        stream.write(header)

    @property
    def size_in_bytes(self) -> int:
        """The bytes written so far."""
        return int(self._stream.tell())

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches as blocks."""
        for batch in batches:
            self._metrics.add(batch)
            for start in range(0, len(batch), ROWS_AT_ONCE):
                self._write_part(batch.slice(start, ROWS_AT_ONCE))

    def _write_part(self, part: pa.RecordBatch) -> None:
        columns = [
            _column_bytes(_plain(column), field)
            for column, field in zip(part.columns, self._format.fields, strict=True)
        ]
        rows = _joined(columns)
        for block in encode_blocks(rows, 0, self._format.codec, BLOCK_BYTES):
            self._stream.write(framed(block, self._sync))

    def close(self) -> FileSummary:
        """Close the stream."""
        size = self.size_in_bytes
        self._stream.close()
        return FileSummary(self._metrics.record_count, size, self._metrics.result(), None)


def _column_bytes(values: pa.Array, field: Mapping[str, Any]) -> pa.BinaryArray:
    """Return what a column adds to each row.

    Structs are taken apart here: the rows below a null struct add nothing, whatever is required.
    """
    if not pa.types.is_struct(values.type):
        return encode_rows([field], {field["field-id"]: values}, len(values))
    is_option = isinstance(field["type"], list)
    record = field["type"][1] if is_option else field["type"]
    present = values.filter(values.is_valid()) if values.null_count else values
    parts = [
        _column_bytes(child, below)
        for child, below in zip(present.flatten(), record["fields"], strict=True)
    ]
    encoded = _joined(parts)
    if not is_option:
        return encoded
    branch = pa.repeat(pa.scalar(VALUE_BRANCH, pa.binary()), len(encoded))
    return _spread(_joined([branch, encoded]), values)


def _spread(encoded: pa.BinaryArray, values: pa.Array) -> pa.BinaryArray:
    """Return the bytes of the values that are there, at their rows, and of null at the others."""
    if not values.null_count:
        return encoded
    valid = np.asarray(values.is_valid())
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return encoded.take(places).fill_null(NULL_BRANCH)


def _joined(parts: list[pa.BinaryArray]) -> pa.BinaryArray:
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _plain(column: pa.Array) -> pa.Array:
    """Return a column with uuids as their bytes, at any depth."""
    to = _plain_type(column.type)
    if isinstance(column, pa.ExtensionArray):
        return column.storage
    return column if column.type.equals(to) else column.cast(to)


def _plain_type(found: pa.DataType) -> pa.DataType:
    if isinstance(found, pa.BaseExtensionType):
        return found.storage_type
    below = [child.with_type(_plain_type(child.type)) for child in children(found)]
    if pa.types.is_struct(found):
        return pa.struct(below)
    if pa.types.is_map(found):
        return pa.map_(*below)
    return pa.list_(below[0]) if below else found
