"""The `metaData` action: what a table is, apart from its files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.errors import CorruptTableError, UnsupportedFeatureError
from rowlake.model.history_rows import LATEST_MS
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_SCHEMA_CHARACTERS = 64 * 1024 * 1024
_INNER = ("elementType", "keyType", "valueType")


@dataclass(frozen=True)
class Metadata:
    """A table's definition; `schema` is the parsed `schemaString`, with all that it says."""

    table_id: str
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_ms: int | None = None

    __repr__ = redacted_repr

    @property
    def column_mapping(self) -> str:
        """How files name columns: `none`, `name` or `id`."""
        return str(self.configuration.get("delta.columnMapping.mode", "none")).lower()

    def is_set(self, name: str) -> bool:
        """Return whether a property is true."""
        return str(self.configuration.get(name, "false")).lower() == "true"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _created(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= LATEST_MS else None


def metadata_of(action: Mapping[str, Any], location: str) -> Metadata:
    """Return the definition of an action; `location` is the file that has it."""
    try:
        provider = (action.get("format") or {}).get("provider", "parquet")
        configuration = action.get("configuration") or {}
        found = Metadata(
            table_id=str(action["id"]),
            schema=_schema_in(action["schemaString"], location),
            partition_columns=tuple(map(str, action.get("partitionColumns") or ())),
            configuration={str(key): str(value) for key, value in configuration.items()},
            name=_text(action.get("name")),
            description=_text(action.get("description")),
            created_ms=_created(action.get("createdTime")),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        cause = f"its metaData action is damaged ({type(error).__name__}: {error})"
        raise CorruptTableError(location, cause) from error
    if provider != "parquet":
        raise UnsupportedFeatureError(f"Cannot read {location}: its files are {provider}.")
    return found


def _schema_in(text: str, location: str) -> dict[str, Any]:
    try:
        if len(text) > MOST_SCHEMA_CHARACTERS:
            raise ValueError(f"it has {len(text):,} characters")
        schema: dict[str, Any] = json.loads(text)
        _validate_shape(schema)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        cause = f"its schema is damaged ({type(error).__name__}: {error})"
        raise CorruptTableError(location, cause) from error
    return schema


def _validate_shape(schema: Any) -> None:
    """Refuse a schema that is none, however its types are nested; types are not looked up."""
    if not isinstance(schema, dict) or schema.get("type") != "struct":
        raise TypeError("it is no struct")
    pending: list[Any] = [schema]
    while pending:
        kind = pending.pop()
        if isinstance(kind, str):
            continue
        if not isinstance(kind, dict):
            raise TypeError(f"it has the type {kind!r:.40}")
        if kind["type"] == "struct":
            pending += _types_in(kind["fields"])
        pending += [kind[key] for key in _INNER if key in kind]


def _types_in(fields: Any) -> list[Any]:
    """Return the types of the fields of a struct."""
    if not isinstance(fields, list):
        raise TypeError(f"it has the fields {fields!r:.40}")
    names = [field["name"] for field in fields]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("it has columns without a name, or of one name")
    if not all(isinstance(field.get("metadata") or {}, dict) for field in fields):
        raise TypeError("it has columns whose metadata is no object")
    return [field["type"] for field in fields]


def metadata_action(metadata: Metadata) -> dict[str, Any]:
    """Return the body of a `metaData` action, in Delta's order."""
    found = {
        "id": metadata.table_id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(metadata.schema, ensure_ascii=False, separators=(",", ":")),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": metadata.created_ms,
    }
    return {name: one for name, one in found.items() if one is not None}
