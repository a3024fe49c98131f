"""What users hand in as rows -> Arrow batches in the driver, or a Spark DataFrame.

Comes in: a Spark DataFrame, a pyarrow Table / RecordBatch / RecordBatchReader, a pandas or polars
frame, a list of dicts, a path to Parquet, CSV or JSON. Goes out: `ArrowSource`, `FileSource` (plain
Parquet files, which tasks read themselves) or `SparkSource`. Types are told apart by what they
offer, so that neither pandas nor polars nor pyspark is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.secrets import cause_without_secrets, without_secrets
from rowlake.sources.fit import fitted_batches, fitted_frame, needs_zone, wanted_fields
from rowlake.sources.plain_parquet import (
    SMALL_BYTES,
    FileSource,
    nanosecond_rows,
    source_at,
    source_of_columns,
)
from rowlake.sources.text_files import read_texts

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine

READERS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


@dataclass(frozen=True)
class ArrowSource:
    """Rows that the driver holds or streams."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class SparkSource:
    """Rows that Spark holds."""

    frame: Any


@dataclass(frozen=True)
class SourcePath:
    """A path to rows, where a plain text would be SQL."""

    path: str

    def __str__(self) -> str:
        return self.path


Source: TypeAlias = ArrowSource | FileSource | SparkSource


def names_of(source: Source) -> list[str]:
    """Return the names of a source's columns."""
    return list(source.frame.columns if isinstance(source, SparkSource) else source.schema.names)


def read_if_small(source: Source) -> Source:
    """Return the rows of files as the driver reads them, where they are few; else the source."""
    if isinstance(source, FileSource) and source.size_in_bytes <= SMALL_BYTES:
        return ArrowSource(source.schema, source.batches())
    return source


def source_of(
    rows: Any, engine: Engine, like: pa.Schema | None = None, *, only_loose: bool = False
) -> Source:
    """Return what users handed in as a source, its columns in the types of `like`.

    See `rowlake.sources.fit` for the rule, and for `only_loose`.
    """
    found = _source_of(rows, engine, like)
    if like is None:
        return found
    if isinstance(found, FileSource) and not only_loose and needs_zone(found.schema, like):
        # Tasks that read the files themselves do not know the session's zone.
        small = read_if_small(found)
        found = SparkSource(found.frame) if small is found else small
    if isinstance(found, SparkSource):
        return SparkSource(fitted_frame(found.frame, like, engine, only_loose=only_loose))
    if isinstance(found, FileSource):
        return found
    return ArrowSource(
        *fitted_batches(found.schema, found.batches, like, engine.zone, only_loose=only_loose)
    )


def _source_of(rows: Any, engine: Engine, like: pa.Schema | None) -> Source:
    if isinstance(rows, pa.Table):
        return ArrowSource(rows.schema, iter(rows.to_batches()))
    if isinstance(rows, pa.RecordBatch):
        return ArrowSource(rows.schema, iter([rows]))
    if isinstance(rows, pa.RecordBatchReader):
        return ArrowSource(rows.schema, iter(rows))
    if isinstance(rows, (str, Path, SourcePath)):
        return _from_path(str(rows), engine, like)
    if isinstance(rows, Sequence):
        return _from_dicts(rows, like)
    if hasattr(rows, "mapInArrow"):
        return _from_frame(rows)
    if hasattr(rows, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(rows)
        return ArrowSource(reader.schema, iter(reader))
    if hasattr(rows, "to_arrow"):
        return _source_of(rows.to_arrow(), engine, like)
    if hasattr(rows, "iloc"):
        return _source_of(pa.Table.from_pandas(rows, preserve_index=False), engine, like)
    raise InvalidStatementError(
        f"Cannot read rows from a {type(rows).__name__}. Give a Spark DataFrame, a pyarrow table "
        "or reader, a pandas or polars frame, a list of dicts, or a path to Parquet, CSV or JSON."
    )


def rereadable(rows: Any) -> Any:
    """Return a source that can be read more than once: a stream is read into memory."""
    if isinstance(rows, (pa.Table, pa.RecordBatch)) or hasattr(rows, "mapInArrow"):
        return rows
    if isinstance(rows, pa.RecordBatchReader) or hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows).read_all()
    return rows


def _from_dicts(rows: Sequence[Any], like: pa.Schema | None) -> Source:
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidStatementError("A list of rows must hold dicts: [{'id': 1}, …].")
    if not rows and like is not None:
        return ArrowSource(like, iter(()))
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_column([row.get(name) for row in rows], _type_for(name, like)) for name in names]
    table = pa.table(columns, names=names)
    return ArrowSource(table.schema, iter(table.to_batches()))


def _column(values: list[Any], hint: pa.DataType | None) -> pa.Array:
    """Return values in the table's type where they fit it, else in the type that they show."""
    if hint is not None and pa.types.is_temporal(hint):
        hint = None  # pyarrow cuts times to dates, and takes times without a zone for UTC
    try:
        return pa.array(values, hint)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as unfit:
        if hint is None:
            raise InvalidStatementError(f"Cannot read the rows: {unfit}") from unfit
        return _column(values, None)


def _type_for(name: str, like: pa.Schema | None) -> pa.DataType | None:
    matches = [field for field in like or [] if field.name.lower() == name.lower()]
    return matches[0].type if len(matches) == 1 else None


def _from_frame(frame: Any) -> Source:
    # Imports pyspark: a DataFrame is there.
    from rowlake.engine.relations import parquet_relation

    relation = parquet_relation(frame)
    if relation is None:
        return SparkSource(frame)
    found = source_of_columns(relation.locations, relation.columns, lambda: frame)
    return SparkSource(frame) if found is None else found


def _from_path(path: str, engine: Engine, like: pa.Schema | None) -> Source:
    suffix = Path(path.rstrip("/")).suffix.lower()
    kind = READERS.get(suffix, "parquet")
    texts = read_texts(path, kind, like) if like is not None else None
    if texts is not None:
        return ArrowSource(texts.schema, iter(texts.to_batches()))
    found = source_at(path, lambda: _read(path, kind, engine)) if kind == "parquet" else None
    if found is None and kind == "parquet":
        nanoseconds = nanosecond_rows(path)
        if nanoseconds is not None:
            return ArrowSource(nanoseconds.schema, iter(nanoseconds))
    if found is not None and engine.is_one_machine:
        return found
    if found is not None and found.size_in_bytes <= SMALL_BYTES:
        # Other machines may not have the file.
        return ArrowSource(found.schema, found.batches())
    return _from_frame(_read(path, kind, engine, like))


def _read(path: str, kind: str, engine: Engine, like: pa.Schema | None = None) -> Any:
    reader = engine.spark.read
    if kind == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    try:
        frame = reader.format(kind).load(path)
        if kind != "csv" or like is None:
            return frame
        return engine.as_texts(frame, wanted_fields(frame.columns, like), path)
    except Exception as error:  # noqa: BLE001 - raised again, whatever it is
        text = without_secrets(f"Cannot read rows from {path}: {error}")
        raise InvalidStatementError(text) from cause_without_secrets(error)
