"""Avro schemas: the Arrow types of their values, and the parts of them that a reader wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection

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


def arrow_type(avro: Any) -> pa.DataType:
    """Return the Arrow type of a schema; decimals stay bytes, since readers know their type."""
    return _Types().of(avro)


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


class _Types:
    """Builds the Arrow type of one schema; named types are remembered."""

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
