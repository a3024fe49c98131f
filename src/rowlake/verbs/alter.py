"""Changes to a table's metadata: properties, schema, partition spec, sort order.

Comes in: a table handle. Goes out: the handle after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.phases import Phase, reached
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.model.following import has_landed
from rowlake.model.metadata_change import (
    SetClustering,
    SetProperties,
    SetSortOrder,
    UnsetProperties,
)
from rowlake.write.property_rules import validate_settable, validate_unsettable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import OrderBy


def set_properties(handle: TableHandle, properties: Mapping[str, str]) -> TableHandle:
    """Set properties; `format-version` upgrades the table instead of being stored."""
    validate_settable(properties)
    return commit_metadata(handle, "set properties", SetProperties(properties))


def unset_properties(handle: TableHandle, names: Sequence[str]) -> TableHandle:
    """Remove properties."""
    validate_unsettable(names)
    return commit_metadata(handle, "unset properties", UnsetProperties(tuple(names)))


def set_sort_order(handle: TableHandle, order: Sequence[OrderBy]) -> TableHandle:
    """Set the order that new files are written in; none means unsorted."""
    return commit_metadata(handle, "set sort order", SetSortOrder(tuple(order)))


def set_clustering(handle: TableHandle, columns: Sequence[tuple[str, ...]]) -> TableHandle:
    """Set the columns that OPTIMIZE clusters files by; none means that it does not."""
    return commit_metadata(handle, "set clustering", SetClustering(tuple(columns)))


def change_schema(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the schema with the format's own builder, in one commit; again after a lost race."""
    return _evolved(handle, "schema", change)


def change_spec(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the partition spec with the format's own builder; again after a lost race."""
    return _evolved(handle, "spec", change)


def _evolved(handle: TableHandle, what: str, change: Callable[[Any], None]) -> TableHandle:
    def run(newest: TableHandle) -> TableHandle:
        def build(builder: Any) -> None:
            change(builder)
            reached(Phase.PLANNED, newest)

        return newest.format.evolve(newest, what, build)

    landed = rerun_on_conflict(handle, run)
    has_landed(landed)
    return landed
