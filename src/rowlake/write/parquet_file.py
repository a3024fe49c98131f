"""One Parquet data file being written.

Comes in: batches in the table's schema, one list of them per row group. Goes out: the file, and
what its manifest entry says. Invariants: Parquet columns carry field ids, unless the table's layout
has none; decimals up to 18
digits are integers; uuids have the UUID type; there is a page index.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import children, field_id
from rowlake.write.encodings import Encodings, choose_encodings
from rowlake.write.leaves import leaves_of
from rowlake.write.metrics import Metrics, Tallies, parquet_metrics
from rowlake.write.parquet_nulls import writable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.write.leaves import Leaf
    from rowlake.write.metrics_modes import MetricsMode
    from rowlake.write.properties import BloomFilter, ParquetOptions

BITS_PER_HASH = 8  # of Parquet's split-block Bloom filters
_KNOWN = inspect.signature(pq.ParquetWriter.__init__).parameters


@dataclass(frozen=True)
class FileSummary:
    """What a finished file's manifest entry says of its contents."""

    record_count: int
    file_size_in_bytes: int
    metrics: Metrics
    split_offsets: list[int] | None


class ParquetFormat:
    """Opens the Parquet files of one task: the encodings chosen for the first serve all."""

    def __init__(
        self,
        schema: pa.Schema,
        options: ParquetOptions,
        modes: Mapping[int, MetricsMode],
        *,
        ids: frozenset[int] | None = None,
    ) -> None:
        self.schema, self.options, self.modes = schema, options, modes
        self._written_schema = schema if ids is None else with_ids(schema, ids)
        self.leaves = leaves_of(schema)
        self._encodings: Encodings | None = None

    def open(self, stream: pa.NativeFile, first: list[pa.RecordBatch]) -> ParquetFile:
        """Start a file; `first` is its first row group, which is not written yet."""
        if self._encodings is None:
            sample = max(first, key=len)
            rows = sum(map(len, first))
            self._encodings = choose_encodings(self.leaves, sample, rows, self.options.dictionary)
        rows = sum(map(len, first))
        settings = writer_settings(self.options, self.leaves, self._encodings, rows)
        writer = pq.ParquetWriter(stream, self._written_schema, **settings)
        if self.schema.metadata:  # without Arrow's own schema, pyarrow drops these
            writer.add_key_value_metadata(self.schema.metadata)
        return ParquetFile(self, writer, stream)


class ParquetFile:
    """One file; `close` ends it and says what is in it."""

    def __init__(self, of: ParquetFormat, writer: pq.ParquetWriter, stream: pa.NativeFile) -> None:
        self._format, self._writer, self._stream = of, writer, stream
        self._tallies = Tallies(of.leaves, of.modes)

    @property
    def size_in_bytes(self) -> int:
        """The bytes written so far."""
        return int(self._stream.tell())

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write one row group; the batches have the columns of the stored schema."""
        self._tallies.add([batch.columns for batch in batches])
        table = pa.Table.from_batches(map(writable, batches))
        self._writer.write_table(table, row_group_size=max(len(table), 1))

    def close(self) -> FileSummary:
        """Write the footer and close the stream."""
        self._writer.close()
        size = self.size_in_bytes
        self._stream.close()
        footer = self._writer.writer.metadata
        metrics = parquet_metrics(
            footer, self._format.leaves, self._format.modes, self._tallies.by_id
        )
        return FileSummary(footer.num_rows, size, metrics, split_offsets(footer))


def split_offsets(footer: Any) -> list[int]:
    """Return where each row group starts, ascending."""
    starts = []
    for index in range(footer.num_row_groups):
        first = footer.row_group(index).column(0)
        dictionary = first.dictionary_page_offset
        starts.append(
            min(dictionary, first.data_page_offset) if dictionary else first.data_page_offset
        )
    return sorted(starts)


def writer_settings(
    options: ParquetOptions, leaves: list[Leaf], encodings: Encodings, rows: int
) -> dict[str, Any]:
    """Return the arguments of pyarrow's writer."""
    settings: dict[str, Any] = {
        "compression": options.codec,
        "compression_level": options.level,
        "use_dictionary": list(encodings.dictionary) or False,
        "column_encoding": dict(encodings.others) or None,
        "dictionary_pagesize_limit": options.dictionary_size_in_bytes,
        "data_page_size": options.page_size_in_bytes,
        "data_page_version": options.page_version,
        "write_statistics": _with_statistics(options, leaves),
        "write_page_index": True,
        "store_decimal_as_integer": True,
        "store_schema": False,
        "version": "2.6",
    }
    if "max_rows_per_page" in _KNOWN:
        settings["max_rows_per_page"] = options.page_rows
    if options.bloom:
        settings["bloom_filter_options"] = _bloom_settings(options, leaves, rows)
    return settings


def _with_statistics(options: ParquetOptions, leaves: list[Leaf]) -> bool | list[str]:
    if all(options.statistics.values()):
        return True
    return [leaf.parquet_path for leaf in leaves if options.statistics.get(leaf.name, True)]


def _bloom_settings(
    options: ParquetOptions, leaves: list[Leaf], rows: int
) -> dict[str, dict[str, float]]:
    if "bloom_filter_options" not in _KNOWN:
        raise UnsupportedFeatureError(
            f"Cannot write Bloom filters with pyarrow {pa.__version__}: install a newer one."
        )
    return {
        leaf.parquet_path: _bloom_size(options.bloom[leaf.name], rows, options)
        for leaf in leaves
        if leaf.name in options.bloom and not pa.types.is_boolean(leaf.field.type)
    }


def _bloom_size(wanted: BloomFilter, rows: int, options: ParquetOptions) -> dict[str, float]:
    """Return the distinct values to expect, no more than the allowed size can hold."""
    bits = 8 * options.bloom_max_size_in_bytes
    per_value = -BITS_PER_HASH / math.log(1 - wanted.fpp ** (1 / BITS_PER_HASH))
    most = max(int(bits / per_value), 1)
    return {"ndv": min(wanted.ndv or max(rows, 1), most), "fpp": wanted.fpp}


def with_ids(schema: pa.Schema, ids: frozenset[int]) -> pa.Schema:
    """Return a schema with these field ids alone."""
    return pa.schema([_with_ids(found, ids) for found in schema], metadata=schema.metadata)


def _with_ids(found: pa.Field, ids: frozenset[int]) -> pa.Field:
    below = [_with_ids(child, ids) for child in children(found.type)]
    kind = found.type
    if pa.types.is_struct(kind):
        kind = pa.struct(below)
    elif pa.types.is_map(kind):
        kind = pa.map_(*below)
    elif below:
        kind = pa.list_(below[0])
    metadata = found.metadata if field_id(found) in ids else None
    return pa.field(found.name, kind, found.nullable, metadata)
