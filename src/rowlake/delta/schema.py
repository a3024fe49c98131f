"""Delta's JSON schemas -> the model's schemas, with field ids and the names that files use.

Field ids are those of column mapping where a table has it; otherwise columns are numbered in the
order of the schema. Elements of lists, keys and values of maps get numbers after all of them. Files
are resolved by name (physical names where columns are mapped), in `id` mode by the ids that files
carry (PROTOCOL.md, "Column Mapping").
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.delta.column_rules import rules_of_field
from rowlake.delta.row_tracking import row_id_columns
from rowlake.errors import CorruptTableError, UnsupportedFeatureError
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.schema import DOC, FIELD_ID, MAX_NESTING_READ, TYPE_NAME, Schema, children
from rowlake.model.task import NameMapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.metadata import Metadata

COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
PARTITION_ID_START = 1000
MOST_COLUMNS = 200_000
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_MOST_DIGITS = 38

_SIMPLE = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
}


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table; `physical` has the names in files, statistics and partition values.

    Those are paths of names by field id; a field inside a list or a map has none. `file_names` has
    the names of all fields of structs, `row_id_names` those of columns that hold row ids.
    """

    schema: Schema
    physical: Mapping[int, tuple[str, ...]]
    name_mapping: NameMapping
    spec: PartitionSpec
    file_names: Mapping[int, str]
    row_id_names: Mapping[int, str]


def columns_of(metadata: Metadata, location: str) -> TableColumns:
    """Return the columns of a table; `location` is its log, for messages.

    Raises CorruptTableError for a schema that is none, UnsupportedFeatureError for a type that is
    not known here.
    """
    reader = _Reader(location, is_mapped=metadata.column_mapping != "none")
    try:
        fields = reader.fields(metadata.schema, (), 0)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        cause = f"its schema is damaged ({type(error).__name__}: {error})"
        raise CorruptTableError(location, cause) from error
    schema = Schema(pa.schema(fields))
    mapping = [_mapped(one, reader.names) for one in schema.arrow]
    row_ids = row_id_columns(metadata)
    return TableColumns(
        schema,
        reader.paths,
        NameMapping(
            json.dumps(mapping),
            over_ids=metadata.column_mapping != "id",
            unnumbered=tuple((name, number) for number, name in row_ids.items()),
        ),
        _spec(metadata, schema, location),
        {number: name for number, name in reader.names.items() if number not in reader.inner},
        row_ids,
    )


def _spec(metadata: Metadata, schema: Schema, location: str) -> PartitionSpec:
    found = []
    for index, name in enumerate(metadata.partition_columns):
        field = schema.find((name,))
        if field is None:
            raise CorruptTableError(location, f"partition column {name} is not in the schema")
        if name in metadata.partition_columns[:index]:
            raise CorruptTableError(location, f"partition column {name} is listed twice")
        if pa.types.is_nested(field.type):
            raise CorruptTableError(location, f"partition column {name} is a {field.type}")
        source_id = int(field.metadata[FIELD_ID])
        found.append(PartitionField(source_id, PARTITION_ID_START + index, "identity", field.name))
    return PartitionSpec(0, tuple(found))


def _mapped(field: pa.Field, names: Mapping[int, str]) -> dict[str, Any]:
    """Return a field in Iceberg's form of a name mapping."""
    number = int(field.metadata[FIELD_ID])
    below = [_mapped(one, names) for one in children(field.type)]
    found: dict[str, Any] = {"field-id": number, "names": [names[number]]}
    return {**found, "fields": below} if below else found


class _Reader:
    """Reads one schema; hands out ids where it has none of its own."""

    def __init__(self, location: str, *, is_mapped: bool) -> None:
        self._location, self._is_mapped = location, is_mapped
        self._next_inner = 0
        self._count = 0
        self.names: dict[int, str] = {}
        self.paths: dict[int, tuple[str, ...]] = {}
        self.inner: set[int] = set()  # elements, keys, values, parts of variants

    def fields(
        self, struct: Mapping[str, Any], above: tuple[str, ...] | None, depth: int
    ) -> list[pa.Field]:
        """Return the fields of a struct; `above` is None inside lists and maps."""
        described = struct["fields"]
        if depth == 0:
            self._next_inner = 1 + max([0, *_numbered(struct, self._is_mapped)])
        return [self._field(one, above, depth) for one in described]

    def _field(
        self, described: Mapping[str, Any], above: tuple[str, ...] | None, depth: int
    ) -> pa.Field:
        metadata = described.get("metadata") or {}
        name = str(described["name"])
        number, physical = self._identity(name, metadata)
        path = None if above is None else (*above, physical)
        self._note(number, physical, path)
        kind, named = self._type(described["type"], path, depth + 1)
        carried = {FIELD_ID: str(number).encode()}
        if named is not None:
            carried[TYPE_NAME] = named.encode()
        if isinstance(metadata.get("comment"), str):
            carried[DOC] = metadata["comment"].encode()
        if depth == 0:
            carried |= rules_of_field(name, metadata)
        return pa.field(name, kind, bool(described.get("nullable", True)), metadata=carried)

    def _identity(self, name: str, metadata: Mapping[str, Any]) -> tuple[int, str]:
        """Return the id and the physical name of a field of a struct."""
        if not self._is_mapped:
            self._count += 1
            return self._count, name
        number = int(metadata[COLUMN_ID])
        if not 0 <= number < 2**31 or number in self.names:
            raise ValueError(f"column {name} has the id {number}")
        return number, str(metadata[PHYSICAL_NAME])

    def _note(self, number: int, name: str, path: tuple[str, ...] | None) -> None:
        if len(self.names) >= MOST_COLUMNS:
            raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
        self.names[number] = name
        if path is not None:
            self.paths[number] = path

    def _inner(self, role: str, described: Any, nullable: bool, depth: int) -> pa.Field:
        """Return the element of a list, the key or the value of a map."""
        number = self._next_inner
        self._next_inner += 1
        self._note(number, role, None)
        self.inner.add(number)
        kind, named = self._type(described, None, depth + 1)
        carried = {FIELD_ID: str(number).encode()}
        if named is not None:
            carried[TYPE_NAME] = named.encode()
        return pa.field(role, kind, nullable, metadata=carried)

    def _type(
        self, described: Any, path: tuple[str, ...] | None, depth: int
    ) -> tuple[pa.DataType, str | None]:
        if depth > MAX_NESTING_READ:
            raise ValueError(f"its types are nested more than {MAX_NESTING_READ} deep")
        if isinstance(described, str):
            return self._simple(described)
        kind = described["type"]
        if kind == "struct":
            return pa.struct(self.fields(described, path, depth)), None
        if kind == "array":
            nullable = bool(described.get("containsNull", True))
            return pa.list_(self._inner("element", described["elementType"], nullable, depth)), None
        if kind == "map":
            key = self._inner("key", described["keyType"], False, depth)
            nullable = bool(described.get("valueContainsNull", True))
            return pa.map_(key, self._inner("value", described["valueType"], nullable, depth)), None
        raise self._unsupported(str(kind))

    def _simple(self, name: str) -> tuple[pa.DataType, str | None]:
        if name in _SIMPLE:
            return _SIMPLE[name], None
        if name in ("void", "null"):
            return pa.null(), "unknown"
        if name == "variant":
            return self._variant(), "variant"
        match = _DECIMAL.fullmatch(name)
        if match is None:
            raise self._unsupported(name)
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= _MOST_DIGITS or not 0 <= scale <= precision:
            raise ValueError(f"there is no type {name}")
        return pa.decimal128(precision, scale), None

    def _variant(self) -> pa.DataType:
        parts = []
        for name in ("value", "metadata"):
            number = self._next_inner
            self._next_inner += 1
            self._note(number, name, None)
            self.inner.add(number)
            metadata = {FIELD_ID: str(number).encode()}
            parts.append(pa.field(name, pa.binary(), name == "value", metadata=metadata))
        return pa.struct(parts)

    def _unsupported(self, name: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"Cannot read the table at {self._location}: unsupported column type {name}."
        )


def _numbered(described: Any, is_mapped: bool) -> list[int]:
    """Return the ids of all fields of structs, by column mapping or as they will be counted."""
    found: list[int] = []
    pending, count = [described], 0
    while pending:
        one = pending.pop()
        if not isinstance(one, dict):
            continue
        for field in one.get("fields") or ():
            count += 1
            if is_mapped:
                found.append(int((field.get("metadata") or {})[COLUMN_ID]))
            pending.append(field["type"])
        pending += [one.get(key) for key in ("elementType", "keyType", "valueType")]
    return found if is_mapped else [count]
