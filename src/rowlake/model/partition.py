"""Partition specs and sort orders: which transform of which column, in which order.

Plain values; the transforms' arithmetic is in `rowlake.model.transform`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PartitionField:
    """One partition field: `transform` is the spec's text form (`bucket[16]`, `day`, `void`, …)."""

    source_id: int
    field_id: int
    transform: str
    name: str


@dataclass(frozen=True)
class PartitionSpec:
    """One partition spec of a table; a table keeps all that it ever had."""

    spec_id: int
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        """True where no field partitions (void fields do not)."""
        return all(field.transform == "void" for field in self.fields)


@dataclass(frozen=True)
class SortField:
    """One key of a sort order."""

    source_id: int
    transform: str
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True)
class SortOrder:
    """One sort order of a table; order 0 means unsorted."""

    order_id: int
    fields: tuple[SortField, ...] = ()


@dataclass(frozen=True)
class PartitionBy:
    """A partition field that a user asks for; the name is Iceberg's own where none is given."""

    column: tuple[str, ...]
    transform: str = "identity"
    name: str | None = None


@dataclass(frozen=True)
class OrderBy:
    """A sort key that a user asks for."""

    column: tuple[str, ...]
    transform: str = "identity"
    ascending: bool = True
    nulls_first: bool = True
