"""Layouts of Avro files with Iceberg's field ids, as Avro and as Iceberg schemas.

Comes in: structs of columns with ids. Goes out: the JSON values that a file's header has, as
Iceberg's Java library writes them (`AvroSchemaUtil` and its kin there). Invariant: equal to
Java's letter by letter, but for `fixed` (see `primitive_avro`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rowlake.errors import UnsupportedFeatureError


@dataclass(frozen=True)
class ListOf:
    """A list type; its elements are required."""

    element_id: int
    element: Type


@dataclass(frozen=True)
class MapOf:
    """A map type with int keys; its values are required."""

    key_id: int
    value_id: int
    value: str


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


def avro_schema(name: str, struct: StructOf) -> dict[str, Any]:
    """Return the Avro record of a layout, with `field-id` and the like on every part."""
    return _Avro().record(name, struct)


class _Avro:
    """Builds one Avro schema; a named type is spelled out once and named afterwards."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def record(self, name: str, struct: StructOf) -> dict[str, Any]:
        fields = [self.field(column) for column in struct.columns]
        return {"type": "record", "name": name, "fields": fields}

    def field(self, column: Column) -> dict[str, Any]:
        safe = sanitized(column.name)
        made: dict[str, Any] = {"name": safe, "type": self.option(column)}
        if column.doc:
            made["doc"] = column.doc
        if not column.required:
            made["default"] = None
        if safe != column.name:
            made["iceberg-field-name"] = column.name
        return {**made, "field-id": column.field_id}

    def option(self, column: Column) -> Any:
        inner = self.type(column.type, column.field_id)
        return inner if column.required or inner == "null" else ["null", inner]

    def type(self, of: Type, holder: int) -> Any:
        if isinstance(of, StructOf):
            return self.record(f"r{holder}", of)
        if isinstance(of, ListOf):
            items = self.type(of.element, of.element_id)
            return {"type": "array", "items": items, "element-id": of.element_id}
        if isinstance(of, MapOf):
            pair = StructOf(
                (
                    Column(of.key_id, "key", "int", required=True),
                    Column(of.value_id, "value", of.value, required=True),
                )
            )
            items = self.record(f"k{of.key_id}_v{of.value_id}", pair)
            return {"type": "array", "items": items, "logicalType": "map"}
        return self.named(primitive_avro(of))

    def named(self, avro: Any) -> Any:
        name = avro.get("name") if isinstance(avro, dict) else None
        if name is None:
            return avro
        if name in self.seen:
            return name
        self.seen.add(name)
        return avro


def primitive_avro(name: str) -> Any:
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


def sanitized(name: str) -> str:
    """Return a name that Avro allows, by Java's rule (`a.b` is `a_x2Eb`, `1a` is `_1a`)."""
    first = name[:1]
    head = first if first.isalpha() or first == "_" else _escaped(first)
    return head + "".join(
        char if char.isalnum() or char == "_" else _escaped(char) for char in name[1:]
    )


def _escaped(char: str) -> str:
    """Return a character's escape; above U+FFFF one escape per UTF-16 unit, as Java has them."""
    if char.isdigit():
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
            "element-required": True,
        }
    if isinstance(of, MapOf):
        return {
            "type": "map",
            "key-id": of.key_id,
            "key": "int",
            "value-id": of.value_id,
            "value": of.value,
            "value-required": True,
        }
    return of
