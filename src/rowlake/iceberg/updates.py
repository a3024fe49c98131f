"""Properties, format version and sort order: the catalog updates that change them.

Each function returns (updates, requirements) for one state of the metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.update import (
    AddSortOrderUpdate,
    AssertDefaultSortOrderId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetDefaultSortOrderUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from rowlake.errors import InvalidStatementError
from rowlake.iceberg.layout import order_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates
    from rowlake.model.partition import OrderBy

NEWEST_FORMAT = 3


def set_properties(handle: IcebergHandle, properties: Mapping[str, str]) -> Updates:
    """Set properties; `format-version` upgrades the table instead of being stored."""
    wanted = {str(key): str(value) for key, value in properties.items()}
    version = wanted.pop("format-version", None)
    updates: list[TableUpdate] = []
    if version is not None:
        updates.extend(_upgrade(handle, version))
    if wanted:
        updates.append(SetPropertiesUpdate(updates=wanted))
    return tuple(updates), (AssertTableUUID(uuid=handle.metadata.table_uuid),)


def _upgrade(handle: IcebergHandle, version: str) -> list[TableUpdate]:
    current = handle.metadata.format_version
    if version not in {"1", "2", "3"}:
        raise InvalidStatementError(
            f"Format version {version} is unknown; rowlake writes versions up to {NEWEST_FORMAT}."
        )
    if int(version) < current:
        raise InvalidStatementError(
            f"Table {handle.name} has format version {current}; it cannot go back to {version}."
        )
    if int(version) == current:
        return []
    return [UpgradeFormatVersionUpdate(format_version=int(version))]


def unset_properties(handle: IcebergHandle, names: Sequence[str]) -> Updates:
    """Remove properties; names that are not set are passed over."""
    present = [name for name in names if name in handle.metadata.properties]
    if not present:
        return (), ()
    return (
        (RemovePropertiesUpdate(removals=present),),
        (AssertTableUUID(uuid=handle.metadata.table_uuid),),
    )


def set_sort_order(handle: IcebergHandle, order: Sequence[OrderBy]) -> Updates:
    """Set the default sort order; one that the table has already is used again."""
    metadata = handle.metadata
    order_id = max((known.order_id for known in metadata.sort_orders), default=0) + 1
    wanted = order_from(order, metadata.schema(), order_id)
    holds = (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertDefaultSortOrderId(default_sort_order_id=metadata.default_sort_order_id),
    )
    for known in metadata.sort_orders:
        if known.fields == wanted.fields:
            return (SetDefaultSortOrderUpdate(sort_order_id=known.order_id),), holds
    return (
        AddSortOrderUpdate(sort_order=wanted),
        SetDefaultSortOrderUpdate(sort_order_id=-1),
    ), holds
