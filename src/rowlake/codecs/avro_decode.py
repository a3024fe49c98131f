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
    MOST_ITEMS,
    Malformed,
    decompress,
    plain_limit,
    plain_size,
    validate_schema,
)
from rowlake.codecs.avro_encode import MAGIC, SYNC_BYTES
from rowlake.errors import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_LONG_BITS = 70  # ten bytes of seven bits
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
            self._readers[prefixed] = _Readers(prefixed).of(self.schema)
        return self._readers[prefixed]

    def arrow_type(self, keep: Collection[int] | None) -> pa.StructType:
        """Return the type of rows with the wanted fields."""
        wanted = None if keep is None else frozenset(keep)
        if wanted not in self._types:
            self._types[wanted] = _Types().of(pruned(self.schema, wanted))
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
        pairs, end = _metadata(data, len(MAGIC))
        layout = _layout(pairs["avro.schema"])
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
    if "fields" not in layout.schema or len(data) < end + SYNC_BYTES:
        raise CorruptTableError(location, "its Avro header is damaged")
    text = {key: value.decode(errors="replace") for key, value in pairs.items()}
    codec = text.get("avro.codec", "null")
    return Header(text, layout, codec, data[end : end + SYNC_BYTES], end + SYNC_BYTES)


@lru_cache(maxsize=128)
def _layout(text: bytes) -> AvroLayout:
    schema = json.loads(text)
    validate_schema(schema)
    layout = AvroLayout(schema)
    layout.reader(prefixed=False)
    layout.arrow_type(None)
    return layout


def _metadata(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    pairs: dict[str, bytes] = {}
    count, at = _long(data, at)
    while count:
        if count < 0:  # a block with its size in bytes after the count
            count = -count
            _, at = _long(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            pairs[key.decode()], at = _bytes(data, at)
        count, at = _long(data, at)
    return pairs, at


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


def pruned(record: dict[str, Any], keep: Collection[int] | None) -> dict[str, Any]:
    """Return a record schema without the fields that are not wanted, nor hold wanted ones."""
    if keep is None:
        return record
    fields = []
    for field in record["fields"]:
        below = field["type"]
        if field.get("field-id") in keep:
            fields.append(field)
        elif isinstance(below, dict) and below["type"] == "record":
            inner = pruned(below, keep)
            if inner["fields"]:
                fields.append({**field, "type": inner})
    return {**record, "fields": fields}


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
            count, at = _long(data, at)
            size, at = _long(data, at)
        except IndexError as error:
            raise CorruptTableError(location, "it ends within a block") from error
        except Malformed as error:
            raise CorruptTableError(location, f"a block is damaged ({error})") from error
        end = at + size
        if count < 0 or size < 0 or end + SYNC_BYTES > len(data):
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


def has_plain_fixed(avro: Any) -> bool:
    """Return whether a schema has a `fixed` that is neither a decimal nor a uuid."""
    if isinstance(avro, list):
        return any(has_plain_fixed(branch) for branch in avro)
    if not isinstance(avro, dict):
        return False
    if avro.get("type") == "fixed":
        return "logicalType" not in avro
    below = [field["type"] for field in avro.get("fields", [])] + [avro.get("items")]
    return any(has_plain_fixed(part) for part in below)


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > _LONG_BITS:
            raise Malformed("a number has more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise Malformed(f"a value of {size} bytes does not fit")
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[str, int]:
    value, at = _bytes(data, at)
    return value.decode(), at


def _null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise Malformed("a boolean is neither 0 nor 1")
    return data[at] == 1, at + 1


def _float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


_PRIMITIVE_READERS = {
    "null": _null,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


class _Readers:
    """Builds the reader of a schema; `prefixed`: plain `fixed` values have a length in front."""

    def __init__(self, prefixed: bool) -> None:
        self.prefixed = prefixed
        self.named: dict[str, Any] = {}

    def of(self, avro: Any) -> Any:
        if isinstance(avro, list):
            return _union([self.of(branch) for branch in avro])
        if isinstance(avro, str):
            found = _PRIMITIVE_READERS.get(avro) or self.named.get(avro)
            if found is None:
                raise Malformed(f"type {avro} is not known")
            return found
        kind = avro["type"]
        if kind == "record":
            made = _record([(field["name"], self.of(field["type"])) for field in avro["fields"]])
        elif kind == "array":
            made = _array(self.of(avro["items"]))
        elif kind == "map":
            made = _array(_record([("key", _string), ("value", self.of(avro["values"]))]))
        elif kind == "fixed":
            made = _fixed(avro["size"], self.prefixed and "logicalType" not in avro)
        else:
            made = self.of(kind)
        if "name" in avro:
            self.named[avro["name"]] = made
        return made


def _union(branches: list[Any]) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = _long(data, at)
        if not 0 <= branch < len(branches):
            raise Malformed(f"a union has no branch {branch}")
        value: tuple[Any, int] = branches[branch](data, at)
        return value

    return read


def _record(fields: list[tuple[str, Any]]) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        row = {}
        for name, field in fields:
            row[name], at = field(data, at)
        return row, at

    return read


def _array(item: Any) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        count, at = _long(data, at)
        while count:
            if count < 0:
                count = -count
                _, at = _long(data, at)
            if len(items) + count > MOST_ITEMS:
                raise Malformed(f"an array has more than {MOST_ITEMS:,} items")
            for _ in range(count):
                value, at = item(data, at)
                items.append(value)
            count, at = _long(data, at)
        return items, at

    return read


def _fixed(size: int, prefixed: bool) -> Any:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if prefixed:
            value, at = _bytes(data, at)
            if len(value) != size:
                raise Malformed(f"a fixed value has {len(value)} bytes")
            return value, at
        if at + size > len(data):
            raise Malformed("a fixed value does not fit")
        return data[at : at + size], at + size

    return read


_ARROW = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


class _Types:
    """The Arrow type of a schema; decimals stay bytes, readers know their type."""

    def __init__(self) -> None:
        self.named: dict[str, pa.DataType] = {}

    def of(self, avro: Any) -> pa.DataType:
        if isinstance(avro, list):
            return self.of(next((branch for branch in avro if branch != "null"), "null"))
        if isinstance(avro, str):
            return _ARROW.get(avro) or self.named[avro]
        made = self.complex(avro)
        if "name" in avro:
            self.named[avro["name"]] = made
        return made

    def complex(self, avro: dict[str, Any]) -> pa.DataType:
        kind = avro["type"]
        if kind == "record":
            return pa.struct(
                [pa.field(field["name"], self.of(field["type"])) for field in avro["fields"]]
            )
        if kind == "array":
            return pa.list_(self.of(avro["items"]))
        if kind == "map":
            pair = [pa.field("key", pa.string()), pa.field("value", self.of(avro["values"]))]
            return pa.list_(pa.struct(pair))
        if kind == "fixed":
            return pa.binary()
        return _LOGICAL.get(avro.get("logicalType", ""), self.of(kind))
