"""Metadata changes applied to a table in memory; each returns the table after it."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import singledispatch
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.model import metadata_change as changes
from rowlake.model.app_batch import marks_after_expiry
from rowlake.model.handle import MAIN, Ref
from tests.memory_format.cleanup import expired
from tests.memory_format.definition import FORMAT_VERSION, redefined, sort_order
from tests.memory_format.state import FLAVOURS

if TYPE_CHECKING:
    from tests.memory_format.handle import MemoryHandle
    from tests.memory_format.state import MemoryTable


@singledispatch
def altered(change: object, handle: MemoryHandle) -> MemoryTable:
    """Return the table after a change; the same table where there is nothing to change."""
    raise UnsupportedFeatureError(f"Tables in memory have no {type(change).__name__}.")


@altered.register(changes.CreateRef)
def _(change: changes.CreateRef, handle: MemoryHandle) -> MemoryTable:
    known = handle.refs.get(change.name)
    if known is not None and change.if_not_exists:
        return handle.table
    if known is None and not change.create:
        raise InvalidStatementError(f"Table {handle.name} has no {change.kind} {change.name}.")
    if known is not None and not change.replace:
        raise InvalidStatementError(
            f"Table {handle.name} has a branch or tag {change.name} already."
        )
    if known is not None and known.kind != change.kind:
        raise InvalidStatementError(f"{change.name} is a {known.kind}, not a {change.kind}.")
    target = change.snapshot_id or handle.current_snapshot_id
    if target is None:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot yet: write to it before making a {change.kind}."
        )
    given = {key: value for key, value in asdict(change.retention).items() if value is not None}
    before = replace(known, snapshot_id=target) if known else Ref(target, change.kind)
    return _set(handle, change.name, replace(before, **given))


@altered.register(changes.DropRef)
def _(change: changes.DropRef, handle: MemoryHandle) -> MemoryTable:
    if change.name not in handle.refs:
        if change.if_exists:
            return handle.table
        raise _no_ref(handle, change.name)
    found = handle.refs[change.name].kind
    if change.kind not in (None, found):
        raise InvalidStatementError(f"{change.name} is a {found}, not a {change.kind}.")
    if change.name == MAIN:
        raise InvalidStatementError("The branch main cannot be dropped.")
    left = {name: ref for name, ref in handle.refs.items() if name != change.name}
    return replace(handle.table, refs=left)


@altered.register(changes.MoveRef)
def _(change: changes.MoveRef, handle: MemoryHandle) -> MemoryTable:
    return _moved(handle, change.name, change.snapshot_id)


@altered.register(changes.Rollback)
def _(change: changes.Rollback, handle: MemoryHandle) -> MemoryTable:
    history = handle.ancestors(handle.head_of(change.branch))
    if change.snapshot_id not in {one.snapshot_id for one in history}:
        raise InvalidStatementError(
            f"Snapshot {change.snapshot_id} is no ancestor of {change.branch} of {handle.name}."
        )
    return _moved(handle, change.branch, change.snapshot_id)


@altered.register(changes.FastForward)
def _(change: changes.FastForward, handle: MemoryHandle) -> MemoryTable:
    target, head = handle.head_of(change.to), handle.head_of(change.branch)
    if target is None:
        raise _no_ref(handle, change.to)
    if head == target:
        return handle.table
    if head is not None and head not in {one.snapshot_id for one in handle.ancestors(target)}:
        raise InvalidStatementError(
            f"Cannot fast-forward {change.branch} of {handle.name} to {change.to}."
        )
    return _moved(handle, change.branch, target)


@altered.register(changes.SetProperties)
def _(change: changes.SetProperties, handle: MemoryHandle) -> MemoryTable:
    wanted = {str(key): str(value) for key, value in change.properties.items()}
    flavour = int(wanted.pop(FORMAT_VERSION, handle.table.flavour))
    if flavour not in FLAVOURS or flavour < handle.table.flavour:
        raise InvalidStatementError(
            f"Table {handle.name} has format version {handle.table.flavour}; it cannot go to "
            f"{flavour}."
        )
    return replace(handle.table, flavour=flavour, properties={**handle.table.properties, **wanted})


@altered.register(changes.UnsetProperties)
def _(change: changes.UnsetProperties, handle: MemoryHandle) -> MemoryTable:
    left = {key: value for key, value in handle.properties.items() if key not in change.names}
    return handle.table if left == handle.properties else replace(handle.table, properties=left)


@altered.register(changes.SetSortOrder)
def _(change: changes.SetSortOrder, handle: MemoryHandle) -> MemoryTable:
    orders = handle.table.sort_orders
    wanted = sort_order(change.order, handle.table.schema, max(orders) + 1)
    order = next((one for one in orders.values() if one.fields == wanted.fields), wanted)
    return replace(
        handle.table,
        sort_orders={**orders, order.order_id: order},
        default_sort_order_id=order.order_id,
    )


@altered.register(changes.AddSpec)
def _(change: changes.AddSpec, handle: MemoryHandle) -> MemoryTable:
    return replace(handle.table, specs={**handle.table.specs, change.spec.spec_id: change.spec})


@altered.register(changes.Redefine)
def _(change: changes.Redefine, handle: MemoryHandle) -> MemoryTable:
    return redefined(handle.table, change.definition)


@altered.register(changes.ExpireSnapshots)
def _(change: changes.ExpireSnapshots, handle: MemoryHandle) -> MemoryTable:
    if not change.expiry:
        return handle.table
    marks = marks_after_expiry(handle, change.expiry.snapshot_ids)
    properties = {**handle.table.properties, **marks}
    left = {name: text for name, text in properties.items() if text is not None}
    return replace(expired(handle.table, change.expiry), properties=left)


def _moved(handle: MemoryHandle, name: str, snapshot_id: int) -> MemoryTable:
    known = handle.refs.get(name, Ref(snapshot_id, "branch"))
    if known.is_tag:
        raise InvalidStatementError(f"{name} is a tag of {handle.name}; tags do not move.")
    return _set(handle, name, replace(known, snapshot_id=snapshot_id))


def _set(handle: MemoryHandle, name: str, ref: Ref) -> MemoryTable:
    if handle.snapshot(ref.snapshot_id) is None:
        raise InvalidStatementError(f"Table {handle.name} has no snapshot {ref.snapshot_id}.")
    return handle.table.touched().with_ref(name, ref)


def _no_ref(handle: MemoryHandle, name: str) -> InvalidStatementError:
    return InvalidStatementError(
        f"Table {handle.name} has no branch or tag {name}. It has: {shown(sorted(handle.refs))}."
    )
