"""The rows of target files that a change can match, by the table's key index.

Comes in: the files that a change is to look at. Goes out: the same, without those that hold none of
its keys, and of the others the positions that may match. The keys are those of the source's rows,
or the values that the statement's own condition names.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.key_hash import family_of, hash_keys
from rowlake.model.key_index import has_index, key_names
from rowlake.plan.key_lookup import (
    MOST_FILES,
    IndexedName,
    KeyLookup,
    is_sparse,
    key_hashes,
    looked_up,
    positions_in,
    reason_to_scan,
)
from rowlake.prune.bind import bind
from rowlake.rowlevel.source import flags
from rowlake.rowlevel.staged import pieces_of, read_pieces
from rowlake.write.key_index import index_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rowlake.model.view import TableView
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.tasks import Placed
    from rowlake.storage.files import Storage
    from rowlake.write.key_index import IndexKeys

    Hashes = NDArray[np.uint64]
    Fill = Callable[[list[Placed], IndexKeys], None]

_NONE = np.empty(0, np.uint64)


def with_positions(
    change: RowChange,
    view: TableView,
    placed: list[Placed],
    storage: Storage,
    fill: Fill | None = None,
) -> tuple[list[Placed], KeyLookup]:
    """Return the files with the rows that may match, and how the index was used.

    `fill` writes the missing indexes of some files.
    """
    if not has_index(view.properties):
        return placed, KeyLookup()
    keys = index_keys(view)
    if keys is None:
        names = key_names(view.properties)
        return placed, KeyLookup(names, reason="no index can be made of its columns")
    rows = sum(one.file.record_count for one in placed)
    by_part, reason = _hashes(change, view, keys, rows, storage)
    count = sum(map(len, by_part.values()))
    reason = reason or reason_to_scan(view.properties, count, rows)
    if reason or len(placed) > MOST_FILES:
        return placed, KeyLookup(keys.names, count, reason=reason or "too many files")
    found = _find(placed, keys, by_part, storage)
    missing = [
        one
        for one, each in zip(placed, found, strict=True)
        if each is None and keys.is_for(one.file.record_count)
    ]
    if missing and fill is not None:
        fill(missing, keys)
        found = _find(placed, keys, by_part, storage)
    kept = [
        replace(one, file=replace(one.file, only=each))
        if each is not None and is_sparse(each, one.file.record_count)
        else one
        for one, each in zip(placed, found, strict=True)
        if each is None or len(each)
    ]
    return kept, looked_up(keys, count, found)


def _find(
    placed: list[Placed], keys: IndexKeys, by_part: Mapping[int, Hashes], storage: Storage
) -> list[NDArray[np.int64] | None]:
    def hashes_for(number: int) -> Hashes:
        parts = placed[number].parts or tuple(by_part)
        found = [by_part[part] for part in parts if part in by_part]
        return found[0] if len(found) == 1 else np.concatenate([_NONE, *found])

    names = [
        IndexedName(one.file.location, one.file.file_size_in_bytes, one.file.record_count)
        for one in placed
    ]
    return positions_in(names, keys, hashes_for, storage)


def _hashes(
    change: RowChange, view: TableView, keys: IndexKeys, rows: int, storage: Storage
) -> tuple[dict[int, Hashes], str]:
    """Return the hashes of the keys by part of the source, or why there are none."""
    if change.touches_unmatched:
        return {}, "rows without a match change too"
    if change.matching.position is not None:
        return {}, "Spark finds the rows"
    if change.matching.keys:
        return _of_source(change, view, keys, rows, storage)
    found = key_hashes(bind(change.predicate, view.schema), keys, view.schema)
    if found is None:
        return {}, f"the condition names no values of {', '.join(keys.names)}"
    return {0: found}, ""


def _of_source(
    change: RowChange, view: TableView, keys: IndexKeys, rows: int, storage: Storage
) -> tuple[dict[int, Hashes], str]:
    staged, matching = change.staged, change.matching
    assert staged is not None
    joined = {target: number for number, (target, _) in enumerate(matching.keys)}
    if not set(keys.names) <= set(joined):
        return {}, f"rows are not matched by {', '.join(keys.names)}"
    places = [joined[name] for name in keys.names]
    names = [matching.keys[place][1] for place in places]
    families = tuple(family_of(staged.schema.field(name).type) for name in names)
    if families != keys.families:
        return {}, "keys of the source have other types"
    count = pc.sum(staged.rows["rows"]).as_py() or 0
    reason = reason_to_scan(view.properties, count, rows)
    if reason:
        return {}, reason
    pieces = defaultdict(list)
    for piece in pieces_of(staged.rows):
        pieces[piece.part].append(piece)
    null_safe = [matching.null_safe[place] for place in places]
    hashed = {
        part: _of_rows(
            read_pieces(held, staged.schema, storage), names, null_safe, matching.eligible
        )
        for part, held in pieces.items()
    }
    return hashed, ""


def _of_rows(
    rows: pa.Table, names: list[str], null_safe: list[bool], eligible: str | None
) -> Hashes:
    """Return the hashes of the keys that can match: no null, but where null equals null."""
    able = np.ones(rows.num_rows, np.bool_) if eligible is None else flags(rows, eligible).copy()
    for name, safe in zip(names, null_safe, strict=True):
        if not safe and rows[name].null_count:
            able &= np.asarray(rows[name].is_valid())
    chosen = rows.select(names).filter(pa.array(able))
    return np.unique(hash_keys(chosen.columns)) if chosen.num_rows else _NONE
