"""Builders of new schemas and specs, with the methods of Iceberg's builders that tests use."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.partition import PartitionBy, PartitionSpec
from rowlake.model.schema import FIELD_ID, INITIAL_DEFAULT, WRITE_DEFAULT, Schema, field_id
from tests.memory_format.definition import partition_fields, partition_ids

if TYPE_CHECKING:
    from tests.memory_format.state import MemoryTable

_TYPES = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}


@dataclass
class SpecBuilder:
    """The next partition spec of a table."""

    table: MemoryTable

    def __post_init__(self) -> None:
        self._fields = self.table.specs[self.table.default_spec_id].fields

    def add_field(self, column: str, transform: Any, name: str | None = None) -> None:
        wanted = PartitionBy(tuple(column.split(".")), str(transform), name)
        ids = partition_ids(self.table)
        self._fields += partition_fields([wanted], self.table.schema, ids)

    def add_identity(self, column: str) -> None:
        self.add_field(column, "identity")

    def remove_field(self, name: str) -> None:
        """Remove a field; what has no sequence numbers keeps its place as void, as Iceberg does."""
        if all(one.name != name for one in self._fields):
            raise InvalidStatementError(f"There is no partition field {name}.")
        keeps_place = not self.table.can.sequence_numbers
        self._fields = tuple(
            replace(one, transform="void") if one.name == name else one
            for one in self._fields
            if keeps_place or one.name != name
        )

    def result(self) -> MemoryTable:
        specs = self.table.specs
        known = next((one for one in specs.values() if one.fields == self._fields), None)
        spec = known or PartitionSpec(max(specs) + 1, self._fields)
        return replace(
            self.table, specs={**specs, spec.spec_id: spec}, default_spec_id=spec.spec_id
        )


@dataclass
class SchemaBuilder:
    """The next schema of a table; top-level columns alone can change."""

    table: MemoryTable

    def __post_init__(self) -> None:
        self._columns = list(self.table.schema.arrow)
        self._keys = self.table.schema.identifier_field_ids
        self._last_id = self.table.last_column_id

    def add_column(self, path: str | tuple[str], kind: Any, default_value: Any = None) -> None:
        (name,) = (path,) if isinstance(path, str) else path
        self._last_id += 1
        metadata = {FIELD_ID: str(self._last_id).encode()}
        if default_value is not None:
            text = json.dumps(default_value).encode()
            metadata |= {INITIAL_DEFAULT: text, WRITE_DEFAULT: text}
        self._columns.append(pa.field(name, _TYPES[str(kind)], metadata=metadata))

    def delete_column(self, name: str) -> None:
        self._columns.remove(self._find(name))

    def rename_column(self, name: str, to: str) -> None:
        found = self._find(name)
        self._columns[self._columns.index(found)] = found.with_name(to)

    def update_column(self, path: str | tuple[str], kind: Any) -> None:
        (name,) = (path,) if isinstance(path, str) else path
        found = self._find(name)
        self._columns[self._columns.index(found)] = found.with_type(_TYPES[str(kind)])

    def set_identifier_fields(self, *names: str) -> None:
        found = [self.table.schema.find(tuple(name.split("."))) for name in names]
        self._keys = tuple(number for one in found if (number := field_id(one)) is not None)

    def _find(self, name: str) -> pa.Field:
        found = next((one for one in self._columns if one.name == name), None)
        if found is None:
            raise InvalidStatementError(f"There is no column {name}.")
        return found

    def result(self) -> MemoryTable:
        schema = Schema(pa.schema(self._columns), max(self.table.schemas) + 1, self._keys)
        return replace(
            self.table,
            schemas={**self.table.schemas, schema.schema_id: schema},
            schema_id=schema.schema_id,
            last_column_id=self._last_id,
        )


BUILDERS: dict[str, Any] = {"schema": SchemaBuilder, "spec": SpecBuilder}
