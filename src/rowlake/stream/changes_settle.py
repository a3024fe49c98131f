"""Raw changes -> changes as users see them.

Comes in: raw changes (`insert`, `delete`, and images that a commit states) that hold all rows of
whatever keys or row ids they have. Goes out: updates as pairs, one change of a row or key where
only the net result counts, and the columns that were asked for. Nothing is looked up elsewhere, so
any part of a feed that has all rows of its keys can be settled alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.feed import (
    CHANGE_COLUMNS,
    DELETE,
    INSERT,
    ORDINAL,
    POSTIMAGE,
    PREIMAGE,
    SNAPSHOT,
    TIMESTAMP,
    TYPE,
)
from rowlake.model.task import ROW_ID_COLUMN
from rowlake.prune.metrics import one_array
from rowlake.scan.filter import mask
from rowlake.stream.changes_codes import occurrences, row_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Settling:
    """How raw changes are settled.

    - `output`: the table's columns that come out, in their order;
    - `keys`: paths of the columns that identify a row over an update (a null among them identifies
      nothing); none: nothing is paired;
    - `net`: only what is left over the whole span comes out;
    - `unsettled`: ordinals of commits whose carried-over rows have not cancelled out yet;
    - `predicate`: bound; rows of either image for which it is not TRUE are left out;
    - `images`: changes that came as images of an update stay so; else they are deletes and inserts,
      as far as keys do not pair them.
    """

    output: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    net: bool = False
    unsettled: frozenset[int] = frozenset()
    predicate: Predicate | None = None
    images: bool = False

    @property
    def by_row_id(self) -> bool:
        """True where rows are identified by their row ids."""
        return self.keys == ((ROW_ID_COLUMN,),)

    @property
    def needs_all(self) -> bool:
        """True where rows of one key must come together."""
        return bool(self.net or self.keys or self.unsettled)


def settled(raw: pa.Table, how: Settling) -> pa.Table:
    """Return the changes that raw ones amount to, by commit, the images of an update in a row."""
    if not raw.num_rows:
        return chosen(raw, how)
    raw = plain(raw, how)
    order = np.lexsort((~_is_delete(raw), _ordinals(raw)))
    table = raw.take(pa.array(order)).combine_chunks()
    if how.net or how.unsettled:
        table = table.filter(pa.array(_left_over(table, how)))
    if how.keys:
        table = _paired(table, how)
    return chosen(table, how)


def plain(raw: pa.Table, how: Settling) -> pa.Table:
    """Return images as deletes and inserts where they must not stay images."""
    if how.images or not pc.any(_is_image(raw)).as_py():
        return raw
    types = pc.if_else(pa.array(_is_delete(raw)), DELETE, INSERT)
    return _with(raw, TYPE, types)


def _is_image(table: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(table[TYPE], value_set=pa.array([PREIMAGE, POSTIMAGE]))


def chosen(table: pa.Table, how: Settling) -> pa.Table:
    """Return the rows and columns that were asked for."""
    if how.predicate is not None and table.num_rows:
        batches = [batch.filter(mask(batch, how.predicate)) for batch in table.to_batches()]
        table = pa.Table.from_batches(batches, table.schema)
    return table.select([*how.output, *CHANGE_COLUMNS])


def cancelled(codes: Numbers, is_delete: Flags) -> Flags:
    """Return what is left of rows in order when equal deletes and inserts cancel out.

    Of several equal rows the last ones stay.
    """
    deletes = np.bincount(codes[is_delete], minlength=int(codes.max(initial=0)) + 1)
    inserts = np.bincount(codes[~is_delete], minlength=len(deletes))
    number = np.empty(len(codes), np.int64)
    for side in (is_delete, ~is_delete):
        number[side] = occurrences(codes[side])
    return np.asarray(number >= np.where(is_delete, inserts[codes], deletes[codes]))


def _left_over(table: pa.Table, how: Settling) -> Flags:
    ignored = CHANGE_COLUMNS if how.by_row_id else (*CHANGE_COLUMNS, ROW_ID_COLUMN)
    rows = [table[name] for name in table.column_names if name not in ignored]
    codes = row_codes(rows, table.num_rows)
    is_delete = _is_delete(table)
    if how.net:
        return cancelled(codes, is_delete)
    ordinals = _ordinals(table)
    some = np.isin(ordinals, list(how.unsettled))
    left = np.ones(table.num_rows, np.bool_)
    both = row_codes([pa.array(ordinals[some]), pa.array(codes[some])], int(some.sum()))
    left[some] = cancelled(both, is_delete[some])
    return left


def _paired(table: pa.Table, how: Settling) -> pa.Table:
    """Return the rows with deletes and inserts of one key as updates, next to each other."""
    parts = [at_path(table, path) for path in how.keys]
    known = np.logical_and.reduce([np.asarray(pc.is_valid(part)) for part in parts])
    codes = row_codes(parts if how.net else [table[ORDINAL], *parts], table.num_rows)
    is_delete = _is_delete(table)
    number = np.zeros(table.num_rows, np.int64)
    for side in (is_delete, ~is_delete):
        number[side] = occurrences(codes[side])
    width = int(codes.max(initial=0)) + 1
    deletes = np.bincount(codes[is_delete], minlength=width)
    inserts = np.bincount(codes[~is_delete], minlength=width)
    updated = known & (number < np.minimum(deletes, inserts)[codes])
    table = _with_types(table, is_delete, updated)
    if how.net:
        table = _dated_by_postimage(table, codes, number, is_delete, updated)
    order = np.lexsort((~is_delete, number, codes, _ordinals(table)))
    return table.take(pa.array(order))


def _with_types(table: pa.Table, is_delete: Flags, updated: Flags) -> pa.Table:
    images = pc.if_else(pa.array(is_delete), PREIMAGE, POSTIMAGE)
    types = pc.if_else(pa.array(updated), images, one_array(table[TYPE]))
    return _with(table, TYPE, types)


def _dated_by_postimage(
    table: pa.Table, codes: Numbers, number: Numbers, is_delete: Flags, updated: Flags
) -> pa.Table:
    """Return net updates with both images of the commit that made the last one."""
    old, new = (np.flatnonzero(updated & side) for side in (is_delete, ~is_delete))
    old = old[np.lexsort((number[old], codes[old]))]
    new = new[np.lexsort((number[new], codes[new]))]
    source = np.arange(table.num_rows)
    source[old] = new
    for name in (ORDINAL, SNAPSHOT, TIMESTAMP):
        table = _with(table, name, table[name].take(pa.array(source)))
    return table


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), values)


def at_path(table: pa.Table, path: tuple[str, ...]) -> pa.Array:
    """Return a column, or a field of structs."""
    values = one_array(table[path[0]])
    for name in path[1:]:
        values = pc.struct_field(values, name)
    return values


def _is_delete(table: pa.Table) -> Flags:
    found = pc.is_in(table[TYPE], value_set=pa.array([DELETE, PREIMAGE]))
    return np.asarray(one_array(found)).astype(np.bool_)


def _ordinals(table: pa.Table) -> Numbers:
    return np.asarray(one_array(table[ORDINAL])).astype(np.int64)
