"""The Avro schema of a data file (spec, Appendix A), as plain JSON values with field ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.model.schema import children, field_id

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_schema(schema: pa.Schema, *, expanded: bool = False) -> dict[str, Any]:
    """Return the record of a data file's rows.

    Named types are defined once, as Avro wants; `expanded`: wherever they are used.
    """
    return _Builder(expanded).record("table", schema)


class _Builder:
    """Defines each named type once; Avro refers to it by its name from then on."""

    def __init__(self, expanded: bool) -> None:
        self._expanded = expanded
        self._defined: set[str] = set()

    def record(self, name: str, fields: Iterable[pa.Field]) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [self.field(each) for each in fields]}

    def field(self, found: pa.Field) -> dict[str, Any]:
        result: dict[str, Any] = {"name": found.name, "type": self.option(found)}
        if not _NAME.fullmatch(found.name):
            result |= {"name": _sanitized(found.name), "iceberg-field-name": found.name}
        if found.nullable:
            result["default"] = None
        return result | {"field-id": field_id(found)}

    def option(self, found: pa.Field) -> Any:
        avro = self.type_of(found.type, f"r{field_id(found)}")
        return ["null", avro] if found.nullable else avro

    def type_of(self, arrow: pa.DataType, name: str) -> Any:
        below = children(arrow)
        if pa.types.is_struct(arrow):
            return self.record(name, below)
        if pa.types.is_map(arrow):
            entry = f"k{field_id(below[0])}_v{field_id(below[1])}"
            items = self.record(entry, [below[0].with_name("key"), below[1].with_name("value")])
            return {"type": "array", "logicalType": "map", "items": items}
        if below:
            items = self.option(below[0])
            return {"type": "array", "items": items, "element-id": field_id(below[0])}
        if pa.types.is_timestamp(arrow):
            return {
                "type": "long",
                "logicalType": "timestamp-nanos" if arrow.unit == "ns" else "timestamp-micros",
                "adjust-to-utc": arrow.tz is not None,
            }
        return _PLAIN.get(arrow) or self.fixed(arrow)

    def fixed(self, arrow: pa.DataType) -> Any:
        """Return uuids, decimals and fixed bytes."""
        if isinstance(arrow, pa.UuidType):
            return self.defined({"name": "uuid_fixed", "size": 16, "logicalType": "uuid"})
        if pa.types.is_decimal(arrow):
            precision, scale = arrow.precision, arrow.scale
            name, size = f"decimal_{precision}_{scale}", decimal_bytes(precision)
            logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
            return self.defined({"name": name, "size": size, **logical})
        return self.defined({"name": f"fixed_{arrow.byte_width}", "size": arrow.byte_width})

    def defined(self, fixed: dict[str, Any]) -> Any:
        name = fixed["name"]
        if name in self._defined and not self._expanded:
            return name
        self._defined.add(name)
        return {"type": "fixed", **fixed}


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes that hold every unscaled value of this many digits."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def _sanitized(name: str) -> str:
    """Return a name that Avro allows, as Iceberg makes it: other characters as `_x` and hex."""
    kept = "".join(
        char if char.isascii() and (char.isalnum() or char == "_") else f"_x{ord(char):X}"
        for char in name
    )
    return f"_{kept}" if kept[:1].isdigit() or not kept else kept
