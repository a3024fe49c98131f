"""Metadata changes -> Iceberg's updates and requirements, against one state of the metadata."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from rowlake.errors import InternalError
from rowlake.iceberg import expire, refs, updates
from rowlake.iceberg.definition import redefining_updates, refuse_clustering
from rowlake.iceberg.name_mapping import ensure_mapping
from rowlake.iceberg.specs import add_unpartitioned_spec
from rowlake.model import metadata_change as changes

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates


@singledispatch
def updates_of(change: object, handle: IcebergHandle) -> Updates:
    """Return the updates of a change, and what they require of the table."""
    raise InternalError(f"Unknown metadata change of {handle.name}: {type(change).__name__}.")


@updates_of.register(changes.CreateRef)
def _(change: changes.CreateRef, handle: IcebergHandle) -> Updates:
    return refs.create_ref(handle, change)


@updates_of.register(changes.DropRef)
def _(change: changes.DropRef, handle: IcebergHandle) -> Updates:
    return refs.drop_ref(handle, change.name, if_exists=change.if_exists, kind=change.kind)


@updates_of.register(changes.MoveRef)
def _(change: changes.MoveRef, handle: IcebergHandle) -> Updates:
    return refs.move_ref(handle, change.name, change.snapshot_id)


@updates_of.register(changes.Rollback)
def _(change: changes.Rollback, handle: IcebergHandle) -> Updates:
    return refs.rollback(handle, change.snapshot_id, change.branch)


@updates_of.register(changes.FastForward)
def _(change: changes.FastForward, handle: IcebergHandle) -> Updates:
    return refs.fast_forward(handle, change.branch, change.to)


@updates_of.register(changes.SetProperties)
def _(change: changes.SetProperties, handle: IcebergHandle) -> Updates:
    return updates.set_properties(handle, change.properties)


@updates_of.register(changes.UnsetProperties)
def _(change: changes.UnsetProperties, handle: IcebergHandle) -> Updates:
    return updates.unset_properties(handle, change.names)


@updates_of.register(changes.SetSortOrder)
def _(change: changes.SetSortOrder, handle: IcebergHandle) -> Updates:
    return updates.set_sort_order(handle, change.order)


@updates_of.register(changes.SetClustering)
def _(change: changes.SetClustering, handle: IcebergHandle) -> Updates:
    del handle
    refuse_clustering(change.columns)
    return refs.NOTHING


@updates_of.register(changes.AddSpec)
def _(change: changes.AddSpec, handle: IcebergHandle) -> Updates:
    return add_unpartitioned_spec(handle, change.spec)


@updates_of.register(changes.AddNameMapping)
def _(change: changes.AddNameMapping, handle: IcebergHandle) -> Updates:
    del change
    return ensure_mapping(handle)


@updates_of.register(changes.Redefine)
def _(change: changes.Redefine, handle: IcebergHandle) -> Updates:
    return redefining_updates(handle, change.definition)


@updates_of.register(changes.ExpireSnapshots)
def _(change: changes.ExpireSnapshots, handle: IcebergHandle) -> Updates:
    return expire.expire_updates(handle, change.expiry)
