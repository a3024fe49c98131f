"""The files that one task writes: their names, their streams, their rows in `WRITTEN_FILES`.

Invariant: every file opened is known here until the task is done, so that a failed task can
remove all of its files; names are new at each attempt, so that a retried or speculated task
never touches another attempt's files.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.key_hash import family_of
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.transform import hive_path, partition_path
from rowlake.secrets import cause_without_secrets
from rowlake.storage.failures import storage_failure
from rowlake.storage.files import Storage
from rowlake.write.avro_file import AvroFormat
from rowlake.write.context import is_stored, stored_schema
from rowlake.write.key_index import IndexBuilder
from rowlake.write.orc_file import OrcFormat
from rowlake.write.parquet_file import FileSummary, ParquetFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.errors import StorageError
    from rowlake.write.avro_file import AvroFile
    from rowlake.write.context import WriteContext
    from rowlake.write.orc_file import OrcFile
    from rowlake.write.parquet_file import ParquetFile
    from rowlake.write.partitions import Key

EXTENSIONS = {"PARQUET": "parquet", "ORC": "orc", "AVRO": "avro"}


@dataclass(frozen=True)
class _Retyped:
    """An array under another type of the same layout, without a copy.

    `Array.view` would refuse a null struct of a required field, whose place holds no value.
    """

    column: pa.Array
    to: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        return self.to.__arrow_c_schema__(), self.column.__arrow_c_array__()[1]


class TaskFiles:
    """Opens files, keeps their records, and removes them all if the task fails."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        self.storage = Storage(context.io_properties)
        stored = stored_schema(context.schema, context.layout)
        self.schema = stored.with_metadata(_file_metadata(context))
        self._places = [
            place
            for place, found in enumerate(context.schema.arrow)
            if is_stored(found, context.layout)
        ]
        self._format = _format_of(context, self.schema)
        self._attempt = uuid.uuid4().hex[:16]
        self._opened: list[str] = []
        self._streams: dict[str, pa.NativeFile] = {}
        self._rows: list[dict[str, Any]] = []
        self._indexes: list[str] = []
        self._index_places = _index_places(context, self.schema, self._places)

    def open(self, key: Key, first: list[pa.RecordBatch]) -> OpenFile:
        """Start a file of a partition; `first` is its first row group, written by the caller."""
        location = self._new_location(key)
        self._opened.append(location)
        stream = self.storage.open_output(location)
        self._streams[location] = stream
        return OpenFile(self, location, key, self._format.open(stream, first), self._builder())

    def _builder(self) -> Indexing | None:
        index = self.context.index
        if index is None or not self._index_places:
            return None
        return Indexing(IndexBuilder(index), self._index_places)

    def add_index(self, indexing: Indexing, location: str, summary: FileSummary) -> None:
        """Write the index of a finished file."""
        written = indexing.builder.write(
            location, summary.file_size_in_bytes, summary.record_count, self.storage
        )
        self._indexes += [] if written is None else [written]

    def _new_location(self, key: Key) -> str:
        context = self.context
        number = len(self._opened) + 1
        kind = "-deletes" if context.content is Content.EQUALITY_DELETES else ""
        name = (
            f"{context.layout.name_prefix}{context.task_number:05d}-{self._attempt}-{context.operation_id}-{number:05d}"
            f"{kind}.{EXTENSIONS[context.file_format]}"
        )
        path_of = hive_path if context.layout.has_hive_folders else partition_path
        folder = path_of(context.spec, context.schema, key) if context.spec.fields else ""
        return context.locations.place(folder, name)

    def stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the table's schema as files hold it."""
        columns = [
            self._stored_column(batch.column(place), to.type)
            for place, to in zip(self._places, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _stored_column(self, column: pa.Array, to: pa.DataType) -> pa.Array:
        if column.type.equals(to):
            return column
        # A cast matches the fields of structs by name, and these have other names in files.
        if self.context.layout.stored_names:
            return pa.array(_Retyped(column, to))
        return column.cast(to)

    def trial_size(self, batch: pa.RecordBatch) -> int:
        """Return how many bytes a file of these rows alone would take; nothing is written."""
        sink = pa.BufferOutputStream()
        trial = _format_of(self.context, self.schema).open(sink, [batch])
        trial.write([batch])
        return trial.close().file_size_in_bytes

    def add(self, location: str, key: Key, summary: FileSummary) -> None:
        """Record a finished file."""
        del self._streams[location]
        context, metrics = self.context, summary.metrics
        self._rows.append(
            {
                "content": int(context.content),
                "location": location,
                "file_format": context.file_format,
                "spec_id": context.spec.spec_id,
                "partition": list(key),
                "record_count": summary.record_count,
                "file_size_in_bytes": summary.file_size_in_bytes,
                "column_sizes": metrics.column_sizes or None,
                "value_counts": metrics.value_counts,
                "null_value_counts": metrics.null_value_counts,
                "nan_value_counts": metrics.nan_value_counts,
                "lower_bounds": metrics.lower_bounds,
                "upper_bounds": metrics.upper_bounds,
                "split_offsets": summary.split_offsets,
                "equality_ids": list(context.equality_ids) or None,
                "sort_order_id": context.sort_order_id,
            }
        )

    def written(self) -> pa.RecordBatch:
        """Return the finished files, as `WRITTEN_FILES`."""
        return pa.RecordBatch.from_pylist(self._rows, schema=WRITTEN_FILES)

    def remove_all(self, error: BaseException) -> None:
        """Remove every file of this attempt; files left behind are noted on the error."""
        for stream in self._streams.values():
            with suppress(OSError, pa.ArrowException):  # the file goes away anyway
                stream.close()
        left = self.storage.delete([*self._opened, *self._indexes])
        if left and hasattr(error, "add_note"):
            error.add_note(f"Files left behind that no snapshot refers to: {', '.join(left)}")


def _file_metadata(context: WriteContext) -> dict[bytes, bytes] | None:
    """Return what Iceberg Java says of delete files in their own metadata."""
    if context.content is not Content.EQUALITY_DELETES:
        return None
    ids = ",".join(str(each) for each in context.equality_ids)
    return {b"delete-type": b"equality", b"delete-field-ids": ids.encode()}


@dataclass(frozen=True)
class Indexing:
    """The index of a file being written, and where its key columns are in batches."""

    builder: IndexBuilder
    places: tuple[int, ...]

    def add(self, batches: list[pa.RecordBatch]) -> None:
        """Take rows that are written."""
        for batch in batches:
            self.builder.add([batch.column(place) for place in self.places])


def _index_places(context: WriteContext, stored: pa.Schema, places: list[int]) -> tuple[int, ...]:
    """Return where files hold the keys of the index; nowhere unless they hold all of them."""
    if context.index is None or context.content is not Content.DATA:
        return ()
    names = context.schema.arrow.names
    found = [places.index(at) for at in map(names.index, context.index.names) if at in places]
    families = tuple(family_of(stored.field(at).type) for at in found)
    return tuple(found) if families == context.index.families else ()


class OpenFile:
    """One file being written; storage failures come out as `StorageError`."""

    def __init__(
        self,
        files: TaskFiles,
        location: str,
        key: Key,
        body: ParquetFile | OrcFile | AvroFile,
        indexing: Indexing | None = None,
    ) -> None:
        self._files, self._location, self._key, self._body = files, location, key, body
        self._indexing = indexing

    @property
    def size_in_bytes(self) -> int:
        """The bytes written so far."""
        return self._body.size_in_bytes

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write one row group (stripe, block)."""
        try:
            self._body.write(batches)
        except OSError as error:
            raise self._failure(error) from cause_without_secrets(error, self._secrets)
        if self._indexing is not None:
            self._indexing.add(batches)

    def close(self) -> None:
        """Finish the file and record it."""
        try:
            summary = self._body.close()
        except OSError as error:
            raise self._failure(error) from cause_without_secrets(error, self._secrets)
        if self._indexing is not None:
            self._files.add_index(self._indexing, self._location, summary)
        self._files.add(self._location, self._key, summary)

    @property
    def _secrets(self) -> Mapping[str, str]:
        return self._files.context.io_properties

    def _failure(self, error: OSError) -> StorageError:
        return storage_failure(self._location, error, self._secrets)


def _format_of(context: WriteContext, schema: pa.Schema) -> ParquetFormat | OrcFormat | AvroFormat:
    if context.file_format == "ORC":
        return OrcFormat(schema, context.orc, context.metrics)
    if context.file_format == "AVRO":
        return AvroFormat(schema, context.avro_codec, context.metrics)
    return ParquetFormat(schema, context.parquet, context.metrics, ids=context.layout.ids)
