"""A table's schema: an Arrow schema whose fields carry Iceberg's field ids.

Comes in: Arrow schemas built by `rowlake.iceberg` from table metadata, or read from data files.
Goes out: the same, with look-ups by id and by name. Invariant: every field, nested ones
included, has the metadata key `PARQUET:field_id`, so that a schema means the same in the
driver, in a Spark task and in a Parquet file.

Arrow has no name for some Iceberg types; these fields carry `rowlake:type` beside a storage type:

- `uuid`: fixed_size_binary(16)
- `variant`, `geometry(...)`, `geography(...)`: binary
- `unknown`: null

Defaults are in `rowlake:initial-default` and `rowlake:write-default`, each in the JSON
single-value form of the spec (Appendix D). Comments are in `rowlake:doc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELD_ID = b"PARQUET:field_id"
TYPE_NAME = b"rowlake:type"
INITIAL_DEFAULT = b"rowlake:initial-default"
WRITE_DEFAULT = b"rowlake:write-default"
DOC = b"rowlake:doc"

# How many nested types (structs, lists, maps) may be inside each other. Measured: of the file
# formats Avro gives up first (maps of 30 levels cannot be read again), Parquet at lists of 56.
MAX_NESTING = 24  # of columns that rowlake creates
MAX_NESTING_READ = 48  # of columns that others created


def field_id(arrow_field: pa.Field) -> int | None:
    """Return the Iceberg id of an Arrow field, None where it has none (files without ids)."""
    value = (arrow_field.metadata or {}).get(FIELD_ID)
    return None if value is None else int(value)


def type_name(arrow_field: pa.Field) -> str | None:
    """Return the Iceberg type name where Arrow's type does not say it (`uuid`, …)."""
    value = (arrow_field.metadata or {}).get(TYPE_NAME)
    return None if value is None else value.decode()


def children(arrow_type: pa.DataType) -> list[pa.Field]:
    """Return the fields below a nested type: of a struct, a list's element, a map's key, value."""
    if not arrow_type.num_fields:
        return []
    if pa.types.is_struct(arrow_type):
        return [arrow_type.field(index) for index in range(arrow_type.num_fields)]
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return [arrow_type.value_field]
    return []


@dataclass(frozen=True)
class Schema:
    """One schema of a table: its Arrow form, its id and its identifier fields."""

    arrow: pa.Schema
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    def walk(self) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
        """Yield (path, field) of every field, parents before children."""
        pending: list[tuple[tuple[str, ...], pa.Field]]
        pending = [((top.name,), top) for top in reversed(list(self.arrow))]
        while pending:
            path, current = pending.pop()
            yield path, current
            below = [((*path, child.name), child) for child in children(current.type)]
            pending.extend(reversed(below))

    @cached_property
    def by_id(self) -> dict[int, pa.Field]:
        """Every field, nested ones included, by id."""
        return {field_id(found): found for _, found in self.walk()}  # type: ignore[misc]

    @cached_property
    def paths(self) -> dict[int, tuple[str, ...]]:
        """The path of names to each field, by id."""
        return {field_id(found): path for path, found in self.walk()}  # type: ignore[misc]

    def find(self, path: tuple[str, ...], *, case_sensitive: bool = False) -> pa.Field | None:
        """Return the field at a path of names, None where there is none.

        Without case sensitivity an exact match wins over one that differs in case.
        """
        exact = self._by_path.get(path)
        if exact is not None or case_sensitive:
            return exact
        return self._by_lower_path.get(tuple(name.lower() for name in path))

    @cached_property
    def _by_path(self) -> dict[tuple[str, ...], pa.Field]:
        return dict(self.walk())

    @cached_property
    def _by_lower_path(self) -> dict[tuple[str, ...], pa.Field]:
        return {tuple(name.lower() for name in path): found for path, found in self.walk()}

    def select(self, field_ids: list[int]) -> Schema:
        """Return a schema of these top-level fields, in this order."""
        return Schema(
            pa.schema([self.by_id[wanted] for wanted in field_ids]),
            self.schema_id,
            self.identifier_field_ids,
        )
