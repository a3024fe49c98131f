"""One ORC data file being written.

Comes in: batches in the stored schema. Goes out: the file, with Iceberg's ids and types as ORC
attributes (spec, Appendix A), and what its manifest entry says. pyarrow reports neither column
sizes nor stripe offsets, so entries lack both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import orc

from rowlake.model.schema import children, field_id
from rowlake.write.arrow_metrics import ArrowMetrics
from rowlake.write.orc_nulls import writable
from rowlake.write.parquet_file import FileSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.write.metrics_modes import MetricsMode
    from rowlake.write.properties import OrcOptions

SAMPLE_ROWS = 32 * 1024


class OrcFormat:
    """Opens the ORC files of one task."""

    def __init__(
        self, schema: pa.Schema, options: OrcOptions, modes: Mapping[int, MetricsMode]
    ) -> None:
        self.schema, self.options, self.modes = schema, options, modes
        self.orc_schema = pa.schema([_orc_field(found) for found in schema])
        self._ratio: float | None = None

    def open(self, stream: pa.NativeFile, first: list[pa.RecordBatch]) -> OrcFile:
        """Start a file; `first` is what it will hold first, which is not written yet."""
        return OrcFile(self, stream, self._compression(max(first, key=len)))

    def _compression(self, batch: pa.RecordBatch) -> float:
        """Return bytes in a file per byte in memory, by trial: stripes are flushed too rarely."""
        if self._ratio is None:
            sample, sink = batch.slice(0, SAMPLE_ROWS), pa.BufferOutputStream()
            with orc.ORCWriter(sink, **self.settings()) as writer:
                writer.write(self.table([sample]))
            self._ratio = sink.getvalue().size / max(sample.nbytes, 1)
        return self._ratio

    def settings(self) -> dict[str, object]:
        """Return the arguments of pyarrow's writer."""
        options = self.options
        names = {name: place for place, name in enumerate(self.schema.names)}
        bloom = [names[name] for name in options.bloom_columns if name in names]
        return {
            "compression": options.codec,
            "compression_strategy": options.strategy,
            "stripe_size": options.stripe_size_in_bytes,
            "batch_size": options.batch_size,
            "bloom_filter_columns": bloom or None,
            "bloom_filter_fpp": options.bloom_fpp,
        }

    def table(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Return the batches in the types that ORC has."""
        table = pa.Table.from_batches(batches)
        columns = [
            writable(_as_orc(column, to.type))
            for column, to in zip(table.columns, self.orc_schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.orc_schema)


class OrcFile:
    """One file; `close` ends it and says what is in it."""

    def __init__(self, of: OrcFormat, stream: pa.NativeFile, ratio: float) -> None:
        self._format, self._stream, self._ratio = of, stream, ratio
        self._writer = orc.ORCWriter(stream, **of.settings())
        self._metrics = ArrowMetrics(of.schema, of.modes, containers=True)
        self._in_memory = 0

    @property
    def size_in_bytes(self) -> int:
        """About how many bytes the file has, with an estimate for rows waiting for their stripe."""
        return max(int(self._stream.tell()), int(self._in_memory * self._ratio))

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches; ORC makes stripes of them as it sees fit."""
        for batch in batches:
            self._metrics.add(batch)
            self._in_memory += batch.nbytes
        self._writer.write(self._format.table(batches))

    def close(self) -> FileSummary:
        """Write the footer and close the stream."""
        self._writer.close()
        size = int(self._stream.tell())
        self._stream.close()
        return FileSummary(self._metrics.record_count, size, self._metrics.result(), None)


def _orc_field(found: pa.Field) -> pa.Field:
    attributes = {
        "iceberg.id": str(field_id(found)),
        "iceberg.required": "false" if found.nullable else "true",
        **_type_attributes(found.type),
    }
    return pa.field(found.name, _orc_type(found.type), found.nullable, attributes)


def _type_attributes(found: pa.DataType) -> dict[str, str]:
    types = pa.types
    if types.is_time64(found) or types.is_int64(found):
        return {"iceberg.long-type": "TIME" if types.is_time64(found) else "LONG"}
    if types.is_timestamp(found):
        return {"iceberg.timestamp-unit": "NANOS" if found.unit == "ns" else "MICROS"}
    if isinstance(found, pa.UuidType):
        return {"iceberg.binary-type": "UUID"}
    if types.is_fixed_size_binary(found):
        return {"iceberg.binary-type": "FIXED", "iceberg.length": str(found.byte_width)}
    return {"iceberg.binary-type": "BINARY"} if types.is_binary(found) else {}


def _orc_type(found: pa.DataType) -> pa.DataType:
    below = [_orc_field(child) for child in children(found)]
    if pa.types.is_struct(found):
        return pa.struct(below)
    if pa.types.is_map(found):
        return pa.map_(*below)
    if below:
        return pa.list_(below[0])
    if pa.types.is_time64(found):
        return pa.int64()
    is_bytes = isinstance(found, pa.UuidType) or pa.types.is_fixed_size_binary(found)
    return pa.binary() if is_bytes else found


def _as_orc(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(to):
        return column
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    return column.cast(to)
