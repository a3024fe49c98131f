"""Columns of a statement -> the spec's JSON form of a schema (Appendix C), with ids from 1.

Comes in: the tree of `rowlake.sqltext.types`. Goes out: a dict that `rowlake.iceberg.schema` reads.
Defaults are expressions; their values are given by path, already in JSON single-value form, None
for NULL.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.model.column_rules import (
    DEFAULT_KEY,
    GENERATED_KEY,
    IDENTITY_KEY,
    WRITE_DEFAULT_KEY,
)
from rowlake.sqltext.types import Field, List, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.sqltext.types import Type

Path = tuple[str, ...]


def schema_json(
    columns: tuple[Field, ...], defaults: Mapping[Path, Any] | None = None
) -> dict[str, Any]:
    """Return the JSON form of a schema with these columns."""
    ids = count(1)
    return {"schema-id": 0, **_struct(columns, ids, (), defaults or {})}


def type_json(found: Type) -> Any:
    """Return the JSON form of one type, ids from 1."""
    return _type(found, count(1), ("",), {})


def _struct(
    fields: tuple[Field, ...], ids: Iterator[int], path: Path, defaults: Mapping[Path, Any]
) -> dict[str, Any]:
    numbered = [(field, next(ids)) for field in fields]
    return {
        "type": "struct",
        "fields": [_field(field, own, ids, path, defaults) for field, own in numbered],
    }


def _field(
    field: Field, own: int, ids: Iterator[int], path: Path, defaults: Mapping[Path, Any]
) -> dict[str, Any]:
    below = (*path, field.name)
    made: dict[str, Any] = {
        "id": own,
        "name": field.name,
        "required": field.required,
        "type": _type(field.type, ids, below, defaults),
    }
    if field.comment is not None:
        made["doc"] = field.comment
    if below in defaults:
        made["initial-default"] = made[WRITE_DEFAULT_KEY] = defaults[below]
    return {**made, **_rules(field, path)}


def _rules(field: Field, path: Path) -> dict[str, Any]:
    """Return how a table makes values of a column; keys that the spec has not."""
    if path and (field.generated is not None or field.identity is not None):
        raise InvalidStatementError(
            f"Field {field.name} of a struct cannot be generated: only columns can."
        )
    texts = {DEFAULT_KEY: field.default, GENERATED_KEY: field.generated}
    found: dict[str, Any] = {key: text for key, text in texts.items() if text is not None}
    if field.identity is not None:
        found[IDENTITY_KEY] = field.identity
    return found


def _type(found: Type, ids: Iterator[int], path: Path, defaults: Mapping[Path, Any]) -> Any:
    if isinstance(found, Primitive):
        return found.name
    if isinstance(found, Struct):
        return _struct(found.fields, ids, path, defaults)
    if isinstance(found, List):
        own = next(ids)
        return {
            "type": "list",
            "element-id": own,
            "element": _type(found.element, ids, (*path, "element"), defaults),
            "element-required": found.element_required,
        }
    assert isinstance(found, Map)
    key, value = next(ids), next(ids)
    return {
        "type": "map",
        "key-id": key,
        "key": _type(found.key, ids, (*path, "key"), defaults),
        "value-id": value,
        "value": _type(found.value, ids, (*path, "value"), defaults),
        "value-required": found.value_required,
    }
