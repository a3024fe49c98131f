"""Nested Arrow types as trees: rebuild them, count their leaves, keep some.

A leaf is a field without children; leaves are numbered depth first, as the columns of a Parquet
file are. Invariant: `pruned` gives the type that a Parquet reader gives when told to read just
these leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.schema import children, field_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def with_children(arrow_type: pa.DataType, below: Sequence[pa.Field]) -> pa.DataType:
    """Return a nested type with other children."""
    if pa.types.is_struct(arrow_type):
        return pa.struct(list(below))
    if pa.types.is_map(arrow_type):
        return pa.map_(below[0], below[1], keys_sorted=arrow_type.keys_sorted)
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(below[0])
    return pa.list_(below[0]) if pa.types.is_list(arrow_type) else arrow_type


def without_views(field: pa.Field) -> pa.Field:
    """Return a field with plain text and bytes in place of views, which Arrow cannot filter."""
    below = children(field.type)
    if below:
        plain = [without_views(child) for child in below]
        same = all(new.type == old.type for new, old in zip(plain, below, strict=True))
        return field if same else field.with_type(with_children(field.type, plain))
    if pa.types.is_string_view(field.type):
        return field.with_type(pa.string())
    return field.with_type(pa.binary()) if pa.types.is_binary_view(field.type) else field


def leaf_count(field: pa.Field) -> int:
    """Return how many leaves a field has (a struct without fields has none)."""
    below = children(field.type)
    if not below and not pa.types.is_struct(field.type):
        return 1
    return sum(map(leaf_count, below))


def leaf_ranges(fields: Iterable[pa.Field], start: int = 0) -> Iterator[tuple[pa.Field, range]]:
    """Yield each field with the numbers of its leaves."""
    for field in fields:
        stop = start + leaf_count(field)
        yield field, range(start, stop)
        start = stop


def pruned(fields: Iterable[tuple[pa.Field, range]], kept: frozenset[int]) -> list[pa.Field]:
    """Return fields (of `leaf_ranges`) with only these leaves; those without any are left out."""
    result = []
    for field, leaves in fields:
        if not kept.intersection(leaves):
            continue
        below = children(field.type)
        if below:
            remaining = pruned(leaf_ranges(below, leaves.start), kept)
            field = field.with_type(with_children(field.type, remaining))
        result.append(field)
    return result


def restricted(field: pa.Field, wanted: frozenset[int]) -> pa.Field | None:
    """Return the field with only the parts whose ids are wanted, None where there are none.

    A wanted struct, list or map comes whole.
    """
    if field_id(field) in wanted:
        return field
    if not pa.types.is_struct(field.type):
        return None
    below = [restricted(child, wanted) for child in children(field.type)]
    remaining = [child for child in below if child is not None]
    return field.with_type(pa.struct(remaining)) if remaining else None


def path_to(fields: Sequence[pa.Field], wanted: int) -> tuple[int, ...] | None:
    """Return the indices that lead to a field through structs, None where it is not there."""
    for index, field in enumerate(fields):
        if field_id(field) == wanted:
            return (index,)
        if pa.types.is_struct(field.type):
            below = path_to(children(field.type), wanted)
            if below is not None:
                return (index, *below)
    return None
