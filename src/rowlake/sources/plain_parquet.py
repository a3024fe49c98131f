"""Plain Parquet files as a source: tasks read them, and their rows never become Spark's.

Comes in: a path, or a DataFrame that only reads Parquet files. Goes out: a `FileSource`, or None
where Spark should read: what is laid out in folders (Spark makes columns of their names), of
several schemas, in types that Spark and Arrow take differently (96-bit timestamps, unsigned
numbers, …), or written with the calendar of Spark 2. Footers are all that is read here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import FIELD_ID
from rowlake.plan.tasks import SPLIT_BYTES, pack, task_count
from rowlake.scan.plain import PlainPiece, PlainTask, plain_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.engine.relations import RelationColumn

# Spark opens many files by many tasks; here the driver reads every footer.
MAX_FILES = 1_000
SMALL_BYTES = 32 * 1024 * 1024
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SPARK_VERSION = b"org.apache.spark.version"
_PLAIN_TYPES = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date32,
    pa.types.is_decimal128,
)


@dataclass(frozen=True)
class FileSource:
    """Rows of Parquet files: `names` in the files, of the columns of `schema`.

    `make_frame` gives the same rows as a DataFrame, for what only Spark can do.
    """

    schema: pa.Schema
    names: tuple[str, ...]
    pieces: tuple[PlainPiece, ...]
    make_frame: Callable[[], Any]

    @cached_property
    def frame(self) -> Any:
        """The rows as a lazy DataFrame."""
        return self.make_frame()

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all row groups."""
        return sum(piece.size_in_bytes for piece in self.pieces)

    def select(self, columns: Sequence[tuple[str, str]]) -> FileSource:
        """Return some columns, each under another name: (name, column)."""
        places = [self.schema.get_field_index(name) for _, name in columns]
        fields = [
            self.schema.field(place).with_name(name)
            for place, (name, _) in zip(places, columns, strict=True)
        ]
        names = tuple(self.names[place] for place in places)
        return replace(self, schema=pa.schema(fields), names=names)

    def tasks(self, slots: int) -> list[PlainTask]:
        """Return tasks of about equal weight for an engine that runs `slots` at a time."""
        weights = np.array([piece.size_in_bytes for piece in self.pieces], float)
        count = task_count(float(weights.sum()), SPLIT_BYTES, slots)
        return [
            PlainTask(_joined([self.pieces[at] for at in places]), self.names, self.schema)
            for places in pack(weights, count)
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, here and now."""
        for task in self.tasks(1):
            yield from plain_rows(task)


def _joined(pieces: list[PlainPiece]) -> tuple[PlainPiece, ...]:
    """Return neighbours of one file as one piece: it is opened once."""
    found: list[PlainPiece] = []
    for piece in pieces:
        if found and found[-1].location == piece.location:
            groups = (*found[-1].row_groups, *piece.row_groups)
            size = found[-1].size_in_bytes + piece.size_in_bytes
            found[-1] = PlainPiece(piece.location, groups, size)
        else:
            found.append(piece)
    return tuple(found)


def source_at(path: str | Path, make_frame: Callable[[], Any]) -> FileSource | None:
    """Return a Parquet file of this machine, or a flat folder of such; None for all else."""
    files = [] if "://" in str(path) else _files(Path(path))
    footers = _footers([str(each) for each in files])
    if not footers:
        return None
    names = footers[0].schema_arrow.names
    schema = _plain_schema(footers[0], names)
    return None if schema is None else _source(footers, schema, tuple(names), make_frame)


def nanosecond_rows(path: str | Path) -> pa.RecordBatchReader | None:
    """Return rows of files with times in nanoseconds, which Spark does not read; else None."""
    files = [] if "://" in str(path) else _files(Path(path))
    footers = _footers([str(each) for each in files])
    if not footers or not any(_is_nanoseconds(field.type) for field in footers[0].schema_arrow):
        return None
    found = dataset.dataset([footer.location for footer in footers], format="parquet")
    return found.scanner().to_reader()


def _is_nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def source_of_columns(
    locations: Sequence[str], columns: Sequence[RelationColumn], make_frame: Callable[[], Any]
) -> FileSource | None:
    """Return these columns of some files; None where the files hold them in other types."""
    # Imports pyspark: a DataFrame is there.
    from rowlake.engine.types import spark_schema

    footers = _footers(locations)
    names = [column.source for column in columns]
    schema = _plain_schema(footers[0], names) if footers else None
    if not footers or schema is None:
        return None
    try:
        shown = [field.dataType.simpleString() for field in spark_schema(schema).fields]
    except UnsupportedFeatureError:
        return None
    if shown != [column.type_text for column in columns]:
        return None
    if any(_other_id(each, column) for each in footers for column in columns):
        return None
    fields = [field.with_name(one.name) for field, one in zip(schema, columns, strict=True)]
    return _source(footers, pa.schema(fields), tuple(names), make_frame)


def _other_id(footer: Footer, column: RelationColumn) -> bool:
    if column.field_id is None:
        return False
    found = (footer.schema_arrow.field(column.source).metadata or {}).get(FIELD_ID)
    return found is None or int(found) != column.field_id


def _source(
    footers: list[Footer], schema: pa.Schema, names: tuple[str, ...], make_frame: Callable[[], Any]
) -> FileSource | None:
    plain = [field.type for field in schema]
    for footer in footers:
        own = _plain_schema(footer, names)
        if own is None or [field.type for field in own] != plain:
            return None
    pieces = tuple(piece for footer in footers for piece in footer.pieces())
    bare = pa.schema([pa.field(field.name, field.type) for field in schema])
    return FileSource(bare, names, pieces, make_frame)


# --- footers


@dataclass(frozen=True)
class Footer:
    """What a file says of itself."""

    location: str
    schema_arrow: pa.Schema
    metadata: pq.FileMetaData

    def pieces(self) -> Iterator[PlainPiece]:
        """Yield each row group that has rows as a piece."""
        for number in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(number)
            columns = (group.column(place) for place in range(group.num_columns))
            size = sum(column.total_compressed_size for column in columns)
            if group.num_rows:
                yield PlainPiece(self.location, (number,), size)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() in ("", ".parquet") else []
    if not path.is_dir():
        return []
    found = sorted(each for each in path.iterdir() if not each.name.startswith(("_", ".")))
    is_flat = all(each.is_file() and each.suffix.lower() == ".parquet" for each in found)
    return found if is_flat else []


def _footers(locations: Sequence[str]) -> list[Footer]:
    """Return the footers of files; none where Spark should say what is wrong, or read them."""
    if not locations or len(locations) > MAX_FILES:
        return []
    try:
        if len(locations) == 1:
            found = [_footer(locations[0])]
        else:
            with ThreadPoolExecutor() as pool:
                found = list(pool.map(_footer, locations))
    except (pa.ArrowException, OSError):
        return []
    return found if not any(map(_is_special, found)) else []


def _footer(location: str) -> Footer:
    with pq.ParquetFile(location, arrow_extensions_enabled=False) as file:
        return Footer(location, file.schema_arrow, file.metadata)


def _is_special(footer: Footer) -> bool:
    """Return whether a file's times are of another calendar, or in 96 bits."""
    said = footer.metadata.metadata or {}
    version = said.get(_SPARK_VERSION, b"4").split(b".")[0]
    if any(key in said for key in _LEGACY) or not version.isdigit() or int(version) < 3:
        return True
    columns = footer.metadata.schema
    return any(columns.column(place).physical_type == "INT96" for place in range(len(columns)))


def _plain_schema(footer: Footer, names: Sequence[str]) -> pa.Schema | None:
    """Return columns of a file as they come out; None where Spark might take one otherwise."""
    held = footer.schema_arrow
    lowered = [name.lower() for name in held.names]
    if len(set(lowered)) < len(lowered) or len(set(names)) < len(names):
        return None
    fields = []
    for name in names:
        kind = _plain_type(held.field(name).type) if name in held.names else None
        if kind is None or "." in name:
            return None
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which a column is read as Spark has it; None where there is none."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return pa.string() if types.is_large_string(kind) else pa.binary()
    if types.is_timestamp(kind):
        return None if kind.unit == "ns" else pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_struct(kind):
        below = [(child.name, _plain_type(child.type)) for child in kind]
        return None if any(one is None for _, one in below) else pa.struct(below)
    if types.is_list(kind):
        element = _plain_type(kind.value_type)
        return None if element is None else pa.list_(element)
    if types.is_map(kind):
        key, item = _plain_type(kind.key_type), _plain_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    return kind if any(is_plain(kind) for is_plain in _PLAIN_TYPES) else None
