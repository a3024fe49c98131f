"""How rows are spread over tasks before they are written.

Comes in: a table's properties, spec and order, and the operation. Goes out: a `Distribution`, and
how many tasks it should have. Pure decisions, Iceberg's rules (`write.distribution-mode` and its
delete / update / merge variants); the engine does the shuffling.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.partition import SortField
from rowlake.model.transform import DATE_TRANSFORMS, parse_transform
from rowlake.write.properties import parse_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.partition import PartitionSpec, SortOrder

MODES = {"none": "none", "hash": "hash", "range": "range"}
OPERATIONS = ("append", "overwrite", "delete", "update", "merge", "rewrite")


class Kind(str, enum.Enum):
    """How rows are spread."""

    NONE = "none"
    HASH = "hash"
    RANGE = "range"


@dataclass(frozen=True)
class Distribution:
    """Rows with equal `keys` (hash), or near ones (range), go to one task.

    `order` is how a task should sort its rows before writing: by partition, then by the table's
    sort order; empty where fan-out writers make it unnecessary.
    """

    kind: Kind
    keys: tuple[SortField, ...] = ()
    order: tuple[SortField, ...] = ()


def choose_distribution(
    properties: Mapping[str, str],
    spec: PartitionSpec,
    order: SortOrder,
    operation: str = "append",
    *,
    fanout: bool = True,
) -> Distribution:
    """Return how the rows of an operation are spread and ordered."""
    kind = _kind(properties, spec, order, operation)
    full_order = clustered_order(spec, order)
    local = () if fanout and not order.fields else full_order
    if kind is Kind.HASH:
        return Distribution(kind, _partition_keys(spec), local)
    return Distribution(kind, full_order if kind is Kind.RANGE else (), local)


def _kind(
    properties: Mapping[str, str], spec: PartitionSpec, order: SortOrder, operation: str
) -> Kind:
    if operation not in OPERATIONS:
        raise InvalidStatementError(
            f"Unknown operation {operation!r}: expected one of {', '.join(OPERATIONS)}."
        )
    own = f"write.{operation}.distribution-mode"
    if operation in ("delete", "update"):
        return _adjusted(Kind(parse_choice(properties, own, MODES, "hash")), spec, order)
    if operation == "merge":
        if own in properties:
            return _adjusted(Kind(parse_choice(properties, own, MODES, "hash")), spec, order)
        if not spec.is_unpartitioned:
            return Kind.HASH
    return _write_kind(properties, spec, order)


def _write_kind(properties: Mapping[str, str], spec: PartitionSpec, order: SortOrder) -> Kind:
    name = "write.distribution-mode"
    if name in properties:
        return _adjusted(Kind(parse_choice(properties, name, MODES, "none")), spec, order)
    if order.fields:
        return Kind.RANGE
    return Kind.NONE if spec.is_unpartitioned else Kind.HASH


def _adjusted(kind: Kind, spec: PartitionSpec, order: SortOrder) -> Kind:
    """Return no distribution where there is nothing to distribute by."""
    if spec.is_unpartitioned and (kind is Kind.HASH or not order.fields):
        return Kind.NONE
    return kind


def _partition_keys(spec: PartitionSpec) -> tuple[SortField, ...]:
    return tuple(
        SortField(field.source_id, field.transform)
        for field in spec.fields
        if field.transform != "void"
    )


def clustered_order(spec: PartitionSpec, order: SortOrder) -> tuple[SortField, ...]:
    """Return the sort order that also keeps partitions together.

    Partition fields that the order's own prefix does not already cluster come first.
    """
    needed = [key for key in _partition_keys(spec) if not _is_implied(key, _partition_keys(spec))]
    for key in order.fields:
        same = [each for each in needed if _is_same(each, key)]
        if same:
            needed = [each for each in needed if each not in same]
            continue
        needed = [each for each in needed if not _orders(key, each)]
        break
    return (*needed, *order.fields)


def _is_same(one: SortField, other: SortField) -> bool:
    return one.source_id == other.source_id and one.transform == other.transform


def _is_implied(key: SortField, others: tuple[SortField, ...]) -> bool:
    return any(not _is_same(key, other) and _orders(other, key) for other in others)


def _orders(finer: SortField, coarser: SortField) -> bool:
    """Return whether rows sorted by one key are also sorted by the other."""
    if finer.source_id != coarser.source_id:
        return False
    fine, coarse = parse_transform(finer.transform), parse_transform(coarser.transform)
    if fine.name == "identity":
        return coarse.keeps_order
    if fine.name in DATE_TRANSFORMS and coarse.name in DATE_TRANSFORMS:
        return DATE_TRANSFORMS.index(fine.name) >= DATE_TRANSFORMS.index(coarse.name)
    return fine == coarse
