"""Changes to a table's metadata: properties, schema, partition spec, sort order.

Comes in: a table handle. Goes out: the handle after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.commit.metadata import commit_metadata
from rowlake.model.metadata_change import SetProperties, SetSortOrder, UnsetProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import OrderBy


def set_properties(handle: TableHandle, properties: Mapping[str, str]) -> TableHandle:
    """Set properties; `format-version` upgrades the table instead of being stored."""
    return commit_metadata(handle, "set properties", SetProperties(properties))


def unset_properties(handle: TableHandle, names: Sequence[str]) -> TableHandle:
    """Remove properties."""
    return commit_metadata(handle, "unset properties", UnsetProperties(tuple(names)))


def set_sort_order(handle: TableHandle, order: Sequence[OrderBy]) -> TableHandle:
    """Set the order that new files are written in; none means unsorted."""
    return commit_metadata(handle, "set sort order", SetSortOrder(tuple(order)))


def change_schema(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the schema with the format's own builder, in one commit."""
    return handle.format.evolve(handle, "schema", change)


def change_spec(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the partition spec with the format's own builder, in one commit."""
    return handle.format.evolve(handle, "spec", change)
