"""One row per key: rows that are sorted by their keys, checked or thinned out as they stream by.

Comes in: batches in the table's schema, in which rows of equal keys are neighbours (and, where the
latest is wanted, in the order of that column). Goes out: the same rows, one per key. Invariant: no
key is null, and none is there twice. Memory: one batch and one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CardinalityError, InvalidStatementError, SchemaMismatchError, shown
from rowlake.model.partition import SortField
from rowlake.write.partitions import column_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from rowlake.model.schema import Schema

    Flags = NDArray[np.bool_]

MOST_SHOWN = 10
_LATEST = "latest by "


@dataclass(frozen=True)
class Keys:
    """The columns that tell rows apart; of equal ones the row with the largest `latest_id` stays.

    Without `latest_id` equal keys are an error. `table` is for messages.
    """

    table: str
    schema: Schema
    field_ids: tuple[int, ...]
    latest_id: int | None = None

    @property
    def names(self) -> list[str]:
        """The key columns, as people write them."""
        return [".".join(self.schema.paths[each]) for each in self.field_ids]


def latest_column(on_duplicates: str, schema: Schema) -> int | None:
    """Return the column of `latest by <column>`; None for `error`."""
    text = " ".join(on_duplicates.split())
    if text.lower() == "error":
        return None
    if not text.lower().startswith(_LATEST):
        raise InvalidStatementError(
            f"on_duplicates is {on_duplicates!r}; it can be 'error' or 'latest by <column>'."
        )
    name = text[len(_LATEST) :].strip().strip("`")
    identity = column_id(name, schema)
    if pa.types.is_nested(schema.by_id[identity].type):
        raise InvalidStatementError(f"Cannot tell the latest row by {name}: it is not one value.")
    return identity


def column_id(name: str, schema: Schema) -> int:
    """Return the id of a column by its name; dots lead into structs."""
    found = schema.find((name,)) or schema.find(tuple(name.split(".")))
    if found is None:
        raise InvalidStatementError(
            f"There is no column {name}. The columns are {shown(schema.arrow.names)}."
        )
    return int(found.metadata[b"PARQUET:field_id"])


def key_order(keys: Keys) -> tuple[SortField, ...]:
    """Return the order in which rows of equal keys are neighbours, the latest last."""
    latest = () if keys.latest_id is None else (keys.latest_id,)
    return tuple(SortField(each, "identity") for each in (*keys.field_ids, *latest))


def unique_rows(batches: Iterable[pa.RecordBatch], keys: Keys) -> Iterator[pa.RecordBatch]:
    """Yield one row per key; raise `CardinalityError` where it is not clear which.

    That is at equal keys, or (with `latest_id`) at equal keys with one and the same latest value.
    """
    search = _Search(keys)
    for batch in batches:
        if len(batch):
            yield from search.take(batch)
    yield from search.rest()


class _Search:
    """The last row of a batch waits for the next one, to which it may be equal."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._waiting: pa.RecordBatch | None = None
        self._waiting_is_tied = False
        self._found: list[dict[str, Any]] = []

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        _validate_not_null(batch, self._keys)
        rows = batch if self._waiting is None else pa.concat_batches([self._waiting, batch])
        same = self._same(rows, self._keys.field_ids)
        if self._keys.latest_id is None:
            wrong, kept = same, np.ones(len(same), np.bool_)
        else:
            wrong, kept = self._tied(rows, same), ~same
        self._note(rows, wrong)
        self._waiting = rows.slice(len(rows) - 1)
        if kept.all():
            yield rows.slice(0, len(rows) - 1)
        else:
            yield rows.slice(0, len(rows) - 1).filter(pa.array(kept))

    def rest(self) -> Iterator[pa.RecordBatch]:
        if self._waiting is not None:
            self._note(self._waiting, np.array([self._waiting_is_tied]))
        if self._found:
            raise _several(self._found, self._keys)
        if self._waiting is not None:
            yield self._waiting

    def _same(self, rows: pa.RecordBatch, field_ids: Sequence[int]) -> Flags:
        """Tell of each row but the last whether the next has the same values."""
        columns = [column_at(rows, self._keys.schema, each) for each in field_ids]
        equal = [_equal(column.slice(1), column.slice(0, len(column) - 1)) for column in columns]
        return reduce(np.logical_and, equal)

    def _tied(self, rows: pa.RecordBatch, same: Flags) -> Flags:
        """Tell of each row but the last whether it stays, and the one before is as late."""
        assert self._keys.latest_id is not None
        as_late = same & self._same(rows, [self._keys.latest_id])
        tied = np.concatenate([[self._waiting_is_tied], as_late])
        self._waiting_is_tied = bool(tied[-1])
        return np.asarray(tied[:-1] & ~same)

    def _note(self, rows: pa.RecordBatch, wrong: Flags) -> None:
        places = np.flatnonzero(wrong)[: MOST_SHOWN + 1]
        if not len(places):
            return
        keys = self._keys
        columns = [column_at(rows, keys.schema, each) for each in keys.field_ids]
        values = [column.take(pa.array(places)).to_pylist() for column in columns]
        for row in zip(*values, strict=True):
            key = dict(zip(keys.names, row, strict=True))
            if key not in self._found:
                self._found.append(key)
        if len(self._found) >= MOST_SHOWN:
            raise _several(self._found[:MOST_SHOWN], keys)


def _equal(left: pa.Array, right: pa.Array) -> Flags:
    """Compare value by value; null equals null, and NaN equals NaN."""
    found = pc.equal(left, right).fill_null(False)
    both = pc.and_(left.is_null(), right.is_null())
    if pa.types.is_floating(left.type):
        nans = pc.and_(pc.is_nan(left), pc.is_nan(right)).fill_null(False)
        found = pc.or_(found, nans)
    return np.asarray(pc.or_(found, both))


def _validate_not_null(batch: pa.RecordBatch, keys: Keys) -> None:
    for identity, name in zip(keys.field_ids, keys.names, strict=True):
        nulls = column_at(batch, keys.schema, identity).null_count
        if nulls:
            raise SchemaMismatchError(
                f"Cannot upsert into {keys.table}: the key column {name} is null in {nulls} source "
                "rows, and null equals no key. Leave these rows out, or append them.",
                column=name,
            )


def _several(found: list[dict[str, Any]], keys: Keys) -> CardinalityError:
    texts = [", ".join(f"{name}={value}" for name, value in key.items()) for key in found]
    if keys.latest_id is None:
        advice = "Make the keys unique, or say on_duplicates='latest by <column>'."
        what = "several source rows have the same key"
    else:
        latest = ".".join(keys.schema.paths[keys.latest_id])
        what = f"several source rows have the same key and the same latest {latest}"
        advice = "Make the keys unique."
    return CardinalityError(
        f"Cannot upsert into {keys.table}: {what}: {shown(texts)}. Nothing was changed. {advice}",
        keys=found,
    )
