"""Avro container files to Arrow, in plain Python.

Comes in: the bytes of a file, and which fields are wanted, by field id. Goes out: an Arrow table
with the writer's names. Some ten thousand rows per second, but at once, and of files that other
readers refuse: names that Avro forbids (some writers do not escape them), and `fixed` partition
values as Iceberg Java writes them, with a length in front that the schema does not have.

Invariant: a damaged file raises CorruptTableError, it never yields fewer or other rows.
"""

from __future__ import annotations

import json
import lzma
import struct
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.avro_bounds import (
    Malformed,
    decompress,
    plain_limit,
    plain_size,
    validate_schema,
)
from rowlake.codecs.avro_container import MAGIC, SYNC_BYTES, block_at, parse_header
from rowlake.codecs.avro_types import arrow_type, has_plain_fixed, pruned
from rowlake.codecs.avro_values import value_reader
from rowlake.errors import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_ROWS_AT_ONCE = 4096


class AvroLayout:
    """A schema with what it takes to decode rows of it; the manifests of a table share one."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._readers: dict[bool, Any] = {}
        self._types: dict[frozenset[int] | None, pa.StructType] = {}

    @cached_property
    def has_plain_fixed(self) -> bool:
        """Whether there is a `fixed` that is neither a decimal nor a uuid."""
        return has_plain_fixed(self.schema)

    def reader(self, *, prefixed: bool) -> Any:
        """Return what reads a row; `prefixed`: plain `fixed` values have a length in front."""
        if prefixed not in self._readers:
            self._readers[prefixed] = value_reader(self.schema, prefixed=prefixed)
        return self._readers[prefixed]

    def arrow_type(self, keep: Collection[int] | None) -> pa.StructType:
        """Return the type of rows with the wanted fields."""
        wanted = None if keep is None else frozenset(keep)
        if wanted not in self._types:
            self._types[wanted] = arrow_type(pruned(self.schema, wanted))
        return self._types[wanted]


@dataclass(frozen=True)
class Header:
    """What a container file says of itself; its blocks start at `end`."""

    metadata: Mapping[str, str]
    layout: AvroLayout
    codec: str
    sync: bytes
    end: int

    @property
    def schema(self) -> dict[str, Any]:
        """The record's schema; headers of the same schema share it."""
        return self.layout.schema

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields of the record."""
        found: list[dict[str, Any]] = self.schema["fields"]
        return found


def read_header(data: bytes, location: str) -> Header:
    """Return the header of a container file; `data` may be just its beginning."""
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptTableError(location, "it is not an Avro file")
    try:
        said = parse_header(data)
        layout = _layout(said.schema)
    except Malformed as error:
        raise CorruptTableError(location, f"its Avro header is damaged ({error})") from error
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise CorruptTableError(location, "its Avro header is damaged") from error
    if "fields" not in layout.schema:
        raise CorruptTableError(location, "its Avro header is damaged")
    text = {key: value.decode(errors="replace") for key, value in said.metadata.items()}
    return Header(text, layout, said.codec, said.sync, said.end)


@lru_cache(maxsize=128)
def _layout(text: bytes) -> AvroLayout:
    schema = json.loads(text)
    validate_schema(schema)
    layout = AvroLayout(schema)
    layout.reader(prefixed=False)
    layout.arrow_type(None)
    return layout


def decode_python(
    data: bytes, header: Header, location: str, keep: Collection[int] | None = None
) -> pa.Table:
    """Decode a file in Python; `keep` has the ids of wanted fields (None: all)."""
    layout = header.layout
    tried = (True, False) if layout.has_plain_fixed else (False,)
    for prefixed in tried:
        read = layout.reader(prefixed=prefixed)
        rows = (
            row
            for count, raw in _plain_blocks(data, header, location)
            for row in _rows(raw, count, read)
        )
        try:
            return _to_table(rows, layout.arrow_type(keep))
        except CorruptTableError:
            raise
        except (ValueError, IndexError, OverflowError, struct.error, pa.ArrowException) as error:
            failure = error
    raise CorruptTableError(location, f"its rows do not follow its schema ({failure})")


def _to_table(rows: Iterator[Any], of: pa.StructType) -> pa.Table:
    """Return rows as a table; Python has few of them at a time, being much larger there."""
    schema = pa.schema(list(of))
    tables = [schema.empty_table()]
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        tables.append(pa.table(pa.array(some, of).flatten(), schema=schema))
    return tables[1] if len(tables) == 2 else pa.concat_tables(tables)


def _rows(raw: bytes, count: int, read: Any) -> Iterator[Any]:
    at = 0
    if count > len(raw):
        raise Malformed(f"{count:,} rows do not fit {len(raw):,} bytes")
    for _ in range(count):
        row, at = read(raw, at)
        yield row
    if at != len(raw):
        raise Malformed(f"{len(raw) - at} bytes are left over")


@dataclass(frozen=True)
class Extent:
    """What the blocks of a file hold, by their own word and by unpacking them."""

    rows: int
    plain_bytes: int


def extent_of(data: bytes, header: Header, location: str) -> Extent:
    """Return how much the blocks of a file hold; each must end as it should.

    Raises CorruptTableError where it is more than a file of this size can mean. Nothing is kept
    in memory.
    """
    limit = plain_limit(len(data))
    rows = plain_bytes = 0
    for count, at, end in _blocks(data, header, location):
        with _unpacking(location):
            size = plain_size(data[at:end], header.codec, limit - plain_bytes)
        if count > size:
            raise CorruptTableError(location, f"{count:,} rows do not fit {size:,} bytes")
        rows, plain_bytes = rows + count, plain_bytes + size
    return Extent(rows, plain_bytes)


def _plain_blocks(data: bytes, header: Header, location: str) -> Iterator[tuple[int, bytes]]:
    """Yield each block's row count and its plain bytes."""
    left = plain_limit(len(data))
    for count, at, end in _blocks(data, header, location):
        with _unpacking(location):
            raw = decompress(data[at:end], header.codec, left)
        left -= len(raw)
        yield count, raw


def _blocks(data: bytes, header: Header, location: str) -> Iterator[tuple[int, int, int]]:
    """Yield each block's row count and where its bytes start and end."""
    at = header.end
    while at < len(data):
        try:
            count, at, end = block_at(data, at)
        except IndexError as error:
            raise CorruptTableError(location, "it ends within a block") from error
        except Malformed as error:
            raise CorruptTableError(location, f"a block is damaged ({error})") from error
        if end + SYNC_BYTES > len(data):
            raise CorruptTableError(location, "it ends within a block")
        if data[end : end + SYNC_BYTES] != header.sync:
            raise CorruptTableError(location, "a block does not end with the sync marker")
        yield count, at, end
        at = end + SYNC_BYTES


@contextmanager
def _unpacking(location: str) -> Iterator[None]:
    try:
        yield
    except (zlib.error, OSError, ValueError, IndexError, EOFError, lzma.LZMAError) as error:
        raise CorruptTableError(location, f"a block cannot be decompressed ({error})") from error
