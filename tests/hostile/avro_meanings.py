"""Avro containers that are wrong as such: codecs, blocks, schemas. For metadata and for data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.hostile.mutation import deflate_bomb, nested, zstandard_bomb
from tests.hostile.scene import avro_container, deflated, long_of, read_avro
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene

EMPTY_RECORD = json.dumps({"type": "record", "name": "r", "fields": []})
OF_NULLS = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {
                "name": "nulls",
                "type": {"type": "array", "items": "null", "element-id": 9002},
                "field-id": 9001,
            }
        ],
    }
)
IN_ITSELF = json.dumps(
    {"type": "record", "name": "r", "fields": [{"name": "r", "type": "r", "field-id": 9001}]}
)
DEEP_SCHEMA = nested('{"type":"array","items":', "}", 20_000, '"int"')
MANY = 1 << 40


def _rebuilt(make: Callable[[str, dict[str, str]], bytes]) -> Callable[[str, Scene], None]:
    """Return a mutation that replaces a file, given its schema and header."""

    def apply(kind: str, scene: Scene) -> None:
        path = scene.path(kind)
        found = read_avro(path)
        path.write_bytes(make(json.dumps(found.schema), found.header))
        scene.settle(path)

    return apply


def _block(count: int, data: bytes = b"", codec: str = "deflate") -> Callable[..., bytes]:
    stored = deflated(data) if codec == "deflate" else data

    def make(schema: str, header: dict[str, str]) -> bytes:
        return avro_container(schema, header, [(count, stored)], codec)

    return make


def _with_schema(text: str, count: int, data: bytes) -> Callable[..., bytes]:
    def make(schema: str, header: dict[str, str]) -> bytes:
        return avro_container(text, header, [(count, data)], "null")

    return make


def _bomb(codec: str, data: Callable[[], bytes]) -> Callable[..., bytes]:
    def make(schema: str, header: dict[str, str]) -> bytes:
        return avro_container(schema, header, [(1, data())], codec)

    return make


def _length(value: int) -> Callable[..., bytes]:
    """A block that says it has so many bytes."""

    def make(schema: str, header: dict[str, str]) -> bytes:
        return avro_container(schema, header, []) + long_of(1) + long_of(value) + b"abc"

    return make


def _long_header(schema: str, header: dict[str, str]) -> bytes:
    return b"Obj\x01" + long_of(MANY) + long_of(3) + b"abc"


def _endless_number(schema: str, header: dict[str, str]) -> bytes:
    return avro_container(schema, header, []) + b"\xff" * 1000


REFUSED, EITHER = Verdict.REFUSED, Verdict.SAME_OR_ERROR
CONTAINERS: dict[str, tuple[Callable[[str, Scene], None], Verdict]] = {
    "a deflate bomb": (_rebuilt(_bomb("deflate", deflate_bomb)), REFUSED),
    "a Zstandard bomb": (_rebuilt(_bomb("zstandard", zstandard_bomb)), REFUSED),
    "an unknown codec": (_rebuilt(_block(1, b"abc", "odd")), REFUSED),
    "snappy of nothing": (_rebuilt(_block(1, b"", "snappy")), REFUSED),
    "snappy of four gigabytes": (
        _rebuilt(_block(1, b"\xff\xff\xff\xff\x0f\x00abcd", "snappy")),
        REFUSED,
    ),
    "a block of too many rows": (_rebuilt(_block(MANY, b"abc")), REFUSED),
    "a block of less than no rows": (_rebuilt(_block(-5, b"abc")), REFUSED),
    "a block of less than no bytes": (_rebuilt(_length(-5)), REFUSED),
    "a block of too many bytes": (_rebuilt(_length(MANY)), REFUSED),
    "an endless number": (_rebuilt(_endless_number), REFUSED),
    "a header of too many entries": (_rebuilt(_long_header), REFUSED),
    "rows of no bytes, too many": (_rebuilt(_with_schema(EMPTY_RECORD, MANY, b"")), REFUSED),
    "lists of no bytes, too many": (
        _rebuilt(_with_schema(OF_NULLS, 1, long_of(MANY) + long_of(0))),
        REFUSED,
    ),
    "a record in itself": (_rebuilt(_with_schema(IN_ITSELF, 1, b"")), REFUSED),
    "a schema nested too deep": (_rebuilt(_with_schema(DEEP_SCHEMA, 1, b"\x02\x02\x00")), REFUSED),
    "a schema that is no JSON": (_rebuilt(_with_schema("{", 1, b"")), REFUSED),
    "a schema that is a number": (_rebuilt(_with_schema("5", 1, b"")), REFUSED),
    "a schema of an unknown type": (_rebuilt(_with_schema('"odd"', 1, b"")), REFUSED),
}
