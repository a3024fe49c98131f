"""Layouts of Avro files with Iceberg's field ids, as Avro and as Iceberg schemas.

Comes in: structs of columns with ids. Goes out: the JSON values that a file's header has, as
Iceberg's Java library writes them (`AvroSchemaUtil` and its kin there). Invariant: equal to
Java's letter by letter, but for `fixed` (see `primitive_avro`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rowlake.errors import UnsupportedFeatureError


@dataclass(frozen=True)
class ListOf:
    """A list type."""

    element_id: int
    element: Type
    required: bool = True


@dataclass(frozen=True)
class MapOf:
    """A map type."""

    key_id: int
    value_id: int
    value: Type
    key: Type = "int"
    required: bool = True


@dataclass(frozen=True)
class Column:
    """One field of a layout."""

    field_id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None


@dataclass(frozen=True)
class StructOf:
    """A struct type."""

    columns: tuple[Column, ...]


Type = str | ListOf | MapOf | StructOf

_AVRO = {
    "unknown": "null",
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}


def avro_schema(
    name: str, struct: StructOf, *, data_file: bool = False, expanded: bool = False
) -> dict[str, Any]:
    """Return the Avro record of a layout, with `field-id` and the like on every part.

    Named types are defined once, as Avro wants, or wherever they are used (`expanded`). The names
    in a `data_file` are ASCII, since most readers refuse others, and its `fixed` is the spec's.
    """
    return _Avro(data_file=data_file, expanded=expanded).record(name, struct)


class _Avro:
    """Builds one Avro schema."""

    def __init__(self, *, data_file: bool, expanded: bool) -> None:
        self.data_file, self.expanded = data_file, expanded
        self.seen: set[str] = set()

    def record(self, name: str, struct: StructOf) -> dict[str, Any]:
        fields = [self.field(column) for column in struct.columns]
        return {"type": "record", "name": name, "fields": fields}

    def field(self, column: Column) -> dict[str, Any]:
        safe = sanitized(column.name, ascii_only=self.data_file)
        inner = self.option(column.type, column.field_id, column.required)
        made: dict[str, Any] = {"name": safe, "type": inner}
        if column.doc:
            made["doc"] = column.doc
        if not column.required:
            made["default"] = None
        if safe != column.name:
            made["iceberg-field-name"] = column.name
        return {**made, "field-id": column.field_id}

    def option(self, of: Type, holder: int, required: bool) -> Any:
        inner = self.type(of, holder)
        return inner if required or inner == "null" else ["null", inner]

    def type(self, of: Type, holder: int) -> Any:
        if isinstance(of, StructOf):
            return self.record(f"r{holder}", of)
        if isinstance(of, ListOf):
            items = self.option(of.element, of.element_id, of.required)
            return {"type": "array", "items": items, "element-id": of.element_id}
        if isinstance(of, MapOf):
            pair = StructOf(
                (
                    Column(of.key_id, "key", of.key, required=True),
                    Column(of.value_id, "value", of.value, of.required),
                )
            )
            items = self.record(f"k{of.key_id}_v{of.value_id}", pair)
            return {"type": "array", "items": items, "logicalType": "map"}
        return self.named(primitive_avro(of, data_file=self.data_file))

    def named(self, avro: Any) -> Any:
        name = avro.get("name") if isinstance(avro, dict) else None
        if name is None:
            return avro
        if name in self.seen and not self.expanded:
            return name
        self.seen.add(name)
        return avro


def primitive_avro(name: str, *, data_file: bool = False) -> Any:
    """Return the Avro type of an Iceberg primitive type."""
    if name in _AVRO:
        return _AVRO[name]
    if name.startswith("decimal("):
        precision, scale = (int(part) for part in name[len("decimal(") : -1].split(","))
        return {
            "type": "fixed",
            "name": f"decimal_{precision}_{scale}",
            "size": decimal_bytes(precision),
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        }
    if data_file and name.startswith("fixed["):
        size = int(name[len("fixed[") : -1])
        return {"type": "fixed", "name": f"fixed_{size}", "size": size}
    if name.startswith(("fixed[", "geometry", "geography")):
        # The spec says Avro's fixed for fixed. Iceberg Java puts a length before such values, and
        # expects one (apache/iceberg#17501), which every other reader stumbles over. Bytes have
        # that length by right: Java, PyIceberg and others all read them as the spec's type.
        return "bytes"
    raise UnsupportedFeatureError(f"A partition value cannot be a {name}.")


def decimal_bytes(precision: int) -> int:
    """Return how many bytes hold every unscaled value of a precision."""
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1


@lru_cache(maxsize=4096)
def sanitized(name: str, *, ascii_only: bool = False) -> str:
    """Return a name that Avro allows, by Java's rule (`a.b` is `a_x2Eb`, `1a` is `_1a`).

    Java keeps letters and digits of every script; Avro's specification has only those of ASCII.
    """

    def is_kept(char: str, *, first: bool = False) -> bool:
        fits = char.isalpha() if first else char.isalnum()
        return char == "_" or (fits and (char.isascii() or not ascii_only))

    head = "".join(
        char if is_kept(char, first=True) else _escaped(char, ascii_only) for char in name[:1]
    )
    return head + "".join(
        char if is_kept(char) else _escaped(char, ascii_only) for char in name[1:]
    )


def _escaped(char: str, ascii_only: bool) -> str:
    """Return a character's escape; above U+FFFF one escape per UTF-16 unit, as Java has them."""
    if char.isdigit() and (char.isascii() or not ascii_only):
        return f"_{char}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"_x{int.from_bytes(units[at : at + 2], 'big'):X}" for at in range(0, len(units), 2)
    )


def iceberg_schema(struct: StructOf) -> dict[str, Any]:
    """Return the Iceberg JSON form of a layout."""
    return {"type": "struct", "schema-id": 0, "fields": _iceberg_fields(struct)}


def _iceberg_fields(struct: StructOf) -> list[dict[str, Any]]:
    return [
        {
            "id": column.field_id,
            "name": column.name,
            "required": column.required,
            "type": _iceberg_json(column.type),
            **({"doc": column.doc} if column.doc else {}),
        }
        for column in struct.columns
    ]


def _iceberg_json(of: Type) -> Any:
    if isinstance(of, StructOf):
        return {"type": "struct", "fields": _iceberg_fields(of)}
    if isinstance(of, ListOf):
        return {
            "type": "list",
            "element-id": of.element_id,
            "element": _iceberg_json(of.element),
            "element-required": of.required,
        }
    if isinstance(of, MapOf):
        return {
            "type": "map",
            "key-id": of.key_id,
            "key": _iceberg_json(of.key),
            "value-id": of.value_id,
            "value": _iceberg_json(of.value),
            "value-required": of.required,
        }
    return of
