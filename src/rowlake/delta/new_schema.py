"""What users give as a schema -> Delta's JSON schema (PROTOCOL.md, "Schema Serialization Format").

Comes in: an Arrow schema, the Iceberg spec's JSON form (which CREATE TABLE makes), or anything that
can print itself in that form. Goes out: `{"type": "struct", "fields": […]}` without column mapping.
Types that Delta has not are refused by name.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.delta.column_rules import new_rules
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.column_rules import DEFAULT_KEY, GENERATED_KEY, IDENTITY_KEY
from rowlake.model.reserved_columns import validate_column_name
from rowlake.model.schema import DOC, MAX_NESTING, WRITE_DEFAULT, children, type_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
# The spec's names -> Delta's.
_NAMES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
    "unknown": "void",
}
_ARROW = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.null(): "void",
}


def delta_schema(given: Any) -> dict[str, Any]:
    """Return the schema of a new table."""
    if isinstance(given, pa.Schema):
        fields = [_arrow_field(one, 1) for one in given]
    elif hasattr(given, "model_dump_json"):  # a PyIceberg schema
        return delta_schema(json.loads(given.model_dump_json()))
    elif isinstance(given, dict) and given.get("type") == "struct":
        fields = [_named_field(one, 1) for one in given["fields"]]
    else:
        raise InvalidStatementError(
            f"A {type(given).__name__} is no schema: give a pyarrow schema, a text, or a table or "
            "frame that has one."
        )
    if not fields:
        raise InvalidStatementError("A Delta table has at least one column.")
    _validate_names(fields, ())
    for one in fields:
        validate_column_name(one["name"])
    return {"type": "struct", "fields": fields}


def field_of(name: str, kind: Any, *, nullable: bool = True, doc: str | None = None) -> Any:
    """Return the field of a new column; its type is Arrow's or the spec's JSON."""
    if isinstance(kind, pa.DataType):
        made = _arrow_type(pa.field(name, kind), 1)
    else:
        plain = kind if isinstance(kind, (str, dict)) else _json_of(kind)
        made = _named_type(plain, 1, name)
    return _field(name, made, nullable, {"comment": doc} if doc else {})


def _json_of(kind: Any) -> Any:
    """Return a type of PyIceberg in the spec's JSON form."""
    text = kind.model_dump_json()
    return json.loads(text)


def simple_types(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all types without parts that a schema holds."""
    pending: list[Any] = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            pending += [field["type"] for field in one.get("fields") or ()]
            pending += [one[key] for key in ("elementType", "keyType", "valueType") if key in one]


def _field(name: str, kind: Any, nullable: bool, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def _validate_names(fields: list[dict[str, Any]], above: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for one in fields:
        name = one["name"]
        if name.lower() in seen:
            raise InvalidStatementError(f"Column {'.'.join((*above, name))} is there twice.")
        seen.add(name.lower())
        if isinstance(one["type"], dict) and one["type"]["type"] == "struct":
            _validate_names(one["type"]["fields"], (*above, name))


def _validate_depth(depth: int, name: str) -> None:
    if depth > MAX_NESTING:
        raise InvalidStatementError(f"Column {name} is nested more than {MAX_NESTING} levels deep.")


# --- from Arrow


def _arrow_field(found: pa.Field, depth: int) -> dict[str, Any]:
    _validate_depth(depth, found.name)
    carried = found.metadata or {}
    _refuse_default(found.name, carried.get(WRITE_DEFAULT))
    doc = carried.get(DOC) or carried.get(b"comment")
    metadata = {"comment": doc.decode()} if doc else {}
    return _field(found.name, _arrow_type(found, depth), found.nullable, metadata)


def _arrow_type(found: pa.Field, depth: int) -> Any:
    kind = found.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    below = children(kind) or _list_element(kind)
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_arrow_field(one, depth + 1) for one in below]}
    if pa.types.is_map(kind):
        key, value = below
        return {
            "type": "map",
            "keyType": _arrow_type(key, depth + 1),
            "valueType": _arrow_type(value, depth + 1),
            "valueContainsNull": value.nullable,
        }
    if below:
        _validate_depth(depth, found.name)
        return {
            "type": "array",
            "elementType": _arrow_type(below[0], depth + 1),
            "containsNull": below[0].nullable,
        }
    return _arrow_name(found, kind)


def _list_element(kind: pa.DataType) -> list[pa.Field]:
    is_list = pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind)
    return [kind.value_field] if is_list or pa.types.is_large_list_view(kind) else []


def _arrow_name(found: pa.Field, kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if type_name(found) not in (None, "unknown") or kind not in _ARROW:
        raise _unsupported(found.name, type_name(found) or str(kind))
    return _ARROW[kind]


# --- from the spec's JSON


def _named_field(one: Mapping[str, Any], depth: int) -> dict[str, Any]:
    _validate_depth(depth, one["name"])
    metadata = {"comment": one["doc"]} if one.get("doc") else {}
    metadata |= _made_by(one, depth)
    kind = _named_type(one["type"], depth, one["name"])
    return _field(one["name"], kind, not one.get("required", False), metadata)


def _named_type(kind: Any, depth: int, name: str) -> Any:
    _validate_depth(depth, name)
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            fields = [_named_field(one, depth + 1) for one in kind["fields"]]
            return {"type": "struct", "fields": fields}
        if kind["type"] == "list":
            return {
                "type": "array",
                "elementType": _named_type(kind["element"], depth + 1, name),
                "containsNull": not kind.get("element-required", False),
            }
        return {
            "type": "map",
            "keyType": _named_type(kind["key"], depth + 1, name),
            "valueType": _named_type(kind["value"], depth + 1, name),
            "valueContainsNull": not kind.get("value-required", False),
        }
    decimal = _DECIMAL.fullmatch(str(kind))
    if decimal:
        return f"decimal({decimal[1]},{decimal[2]})"
    if kind not in _NAMES:
        raise _unsupported(name, str(kind))
    return _NAMES[kind]


def _made_by(one: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the metadata of a column whose values the table makes."""
    if DEFAULT_KEY not in one:
        _refuse_default(one["name"], one.get("write-default"))
    found = new_rules(one.get(DEFAULT_KEY), one.get(GENERATED_KEY), one.get(IDENTITY_KEY))
    if found and depth > 1:
        raise UnsupportedFeatureError(
            f"Field {one['name']} of a struct cannot have a default or be generated: only columns "
            "of Delta tables can."
        )
    if sum(key in one for key in (DEFAULT_KEY, GENERATED_KEY, IDENTITY_KEY)) > 1:
        raise InvalidStatementError(
            f"Column {one['name']} can have a default, be generated, or be an identity column, not "
            "more than one of these."
        )
    if IDENTITY_KEY in one and one["type"] != "long":
        raise InvalidStatementError(
            f"Column {one['name']} cannot be an identity column: it is no BIGINT."
        )
    return found


def _refuse_default(name: str, default: Any) -> None:
    if default is not None:
        raise UnsupportedFeatureError(
            f"Cannot give column {name} a default value: defaults of Delta tables are SQL "
            "expressions. Create the table with CREATE TABLE."
        )


def _unsupported(name: str, kind: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Cannot make column {name}: Delta has no type {kind}.")
