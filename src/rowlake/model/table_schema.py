"""The schema and the partitioning of a table as users hold them (`Table.schema`, `Table.spec`).

Names are PyIceberg's, where it has them; types are Iceberg's names as text, with the fields below
nested ones. Both print well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.schema import DOC, children, field_id
from rowlake.model.type_names import primitive_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.schema import Schema
    from rowlake.model.view import TableView

# Types of Delta that Iceberg lacks.
_NARROW = {pa.int8(): "byte", pa.int16(): "short"}


@dataclass(frozen=True)
class FieldType:
    """A type by its Iceberg name; `fields` are those of a struct, a list or a map."""

    name: str
    fields: tuple[TableField, ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            inner = ", ".join(map(str, self.fields))
        else:
            inner = ", ".join(str(one.field_type) for one in self.fields)
        return f"{self.name}<{inner}>" if self.fields or self.name == "struct" else self.name


@dataclass(frozen=True)
class TableField:
    """One column, or one field of a nested type."""

    field_id: int
    name: str
    field_type: FieldType
    required: bool = False
    doc: str | None = None

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        return f"{self.field_id}: {self.name}: {need} {self.field_type}"


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table."""

    fields: tuple[TableField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        lines = [f"  {one}{f'  ({one.doc})' if one.doc else ''}" for one in self.fields]
        return "\n".join(["table {", *lines, "}"])

    def __iter__(self) -> Iterator[TableField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @cached_property
    def _by_name(self) -> dict[str, TableField]:
        return dict(_named(self.fields, ()))

    @property
    def column_names(self) -> list[str]:
        """The names of all columns and nested fields, with dots between levels."""
        return list(self._by_name)

    def find_field(self, name: str | int) -> TableField:
        """Return a column or nested field by its dotted name or its id."""
        if isinstance(name, int):
            found = next((one for one in self._by_name.values() if one.field_id == name), None)
        else:
            found = self._by_name.get(name)
        if found is None:
            raise InvalidStatementError(f"The schema has no field {name}.")
        return found

    def find_type(self, name: str | int) -> FieldType:
        """Return the type of a column or nested field."""
        return self.find_field(name).field_type

    def find_column_name(self, column_id: int) -> str | None:
        """Return the dotted name of a column or nested field, None where there is no such id."""
        named = self._by_name.items()
        return next((name for name, one in named if one.field_id == column_id), None)

    def identifier_field_names(self) -> set[str]:
        """Return the names of the columns that tell rows apart."""
        named = (self.find_column_name(one) for one in self.identifier_field_ids)
        return {name for name in named if name is not None}


@dataclass(frozen=True)
class TableSpecField:
    """One partition field: a transform of a column; `source` is the column's dotted name."""

    source_id: int
    field_id: int
    transform: str
    name: str
    source: str

    def __str__(self) -> str:
        return self.source if self.transform == "identity" else f"{self.transform}({self.source})"


@dataclass(frozen=True)
class TableSpec:
    """How new files of a table are partitioned."""

    fields: tuple[TableSpecField, ...] = ()
    spec_id: int = 0

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields)) or "unpartitioned"

    def __iter__(self) -> Iterator[TableSpecField]:
        return iter(self.fields)


def table_schema(schema: Schema) -> TableSchema:
    """Return a schema as users hold it."""
    fields = tuple(_field(one) for one in schema.arrow)
    return TableSchema(fields, schema.schema_id, tuple(schema.identifier_field_ids))


def table_spec(view: TableView) -> TableSpec:
    """Return the partitioning of new files as users hold it."""
    paths = view.schema.paths
    return TableSpec(
        tuple(
            TableSpecField(
                one.source_id,
                one.field_id,
                one.transform,
                one.name,
                ".".join(paths.get(one.source_id, ("?",))),
            )
            for one in view.spec.fields
        ),
        view.spec.spec_id,
    )


def _named(
    fields: tuple[TableField, ...], above: tuple[str, ...]
) -> Iterator[tuple[str, TableField]]:
    for one in fields:
        path = (*above, one.name)
        yield ".".join(path), one
        yield from _named(one.field_type.fields, path)


def _field(found: pa.Field) -> TableField:
    doc = (found.metadata or {}).get(DOC)
    return TableField(
        field_id(found) or 0,
        found.name,
        _type(found),
        not found.nullable,
        doc.decode() if doc else None,
    )


def _type(found: pa.Field) -> FieldType:
    kind, named = found.type, primitive_name(found) or _NARROW.get(found.type)
    if named is not None:
        return FieldType(named)
    below = tuple(_field(one) for one in children(kind))
    if pa.types.is_struct(kind):
        return FieldType("struct", below)
    if below:
        return FieldType("map" if pa.types.is_map(kind) else "list", below)
    return FieldType(str(kind))
