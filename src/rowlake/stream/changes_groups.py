"""Bring removed and added files together that may share rows.

A copy-on-write commit removes files and adds others that hold most of the same rows. Those rows
cancel out in one task where both files are in it. Comes in: tables of removed and of added files.
Goes out: groups of them; no row of a removed file can be in an added file of another group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rowlake.plan.delete_overlap import equality_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from rowlake.model.schema import Schema

    Numbers = np.ndarray[Any, Any]

# Above this many pairs of files, bounds are not compared: all may share rows then.
MOST_PAIRS = 1 << 24
_BLOCK = 1 << 20


def sharing_groups(removed: pa.Table, added: pa.Table, schema: Schema) -> list[tuple[Numbers, ...]]:
    """Return (rows of removed, rows of added) of files that may share rows, by their bounds.

    Both tables have the metrics of `files_schema`. A group may have files of one side only.
    """
    count = removed.num_rows
    parents = np.arange(count + added.num_rows)
    for left, right in _meeting_pairs(removed, added, schema):
        for one, other in zip(left.tolist(), (right + count).tolist(), strict=True):
            _join(parents, one, other)
    roots = np.array([_root(parents, place) for place in range(len(parents))], np.int64)
    order = np.argsort(roots, kind="stable")
    edges = np.flatnonzero(np.diff(roots[order])) + 1
    return [
        (rows[rows < count], rows[rows >= count] - count)
        for rows in np.split(order, edges)
        if len(rows)
    ]


def _meeting_pairs(
    removed: pa.Table, added: pa.Table, schema: Schema
) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield pairs of files whose bounds meet in every column."""
    sizes = removed.num_rows, added.num_rows
    if 0 in sizes:
        return
    if sizes[0] * sizes[1] > MOST_PAIRS:
        yield np.zeros(sizes[1], np.int64), np.arange(sizes[1])
        yield np.arange(sizes[0]), np.zeros(sizes[0], np.int64)
        return
    ids = tuple(number for number in schema.by_id if number is not None)
    meet = equality_overlap(removed, added, np.arange(sizes[1]), ids, schema)
    step = max(_BLOCK // sizes[1], 1)
    for first in range(0, sizes[0], step):
        left = np.repeat(np.arange(first, min(first + step, sizes[0])), sizes[1])
        right = np.tile(np.arange(sizes[1]), len(left) // sizes[1])
        both = meet(left, right)
        yield left[both], right[both]


def _root(parents: Numbers, place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = int(parents[place])
    return place


def _join(parents: Numbers, one: int, other: int) -> None:
    first, second = _root(parents, one), _root(parents, other)
    parents[max(first, second)] = min(first, second)
