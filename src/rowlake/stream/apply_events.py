"""Events of a change stream, and what is left of them: one change per key.

Comes in: events in order of arrival, each with the row after it and what is known of the row
before. Goes out: `NetChanges`. Several events of one key collapse: the last one by sequence wins,
of equal sequences the one that arrived last. A key that changes deletes the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowlake.model.schema import Schema

NOTHING: frozenset[str] = frozenset()


class Event(NamedTuple):
    """One change of one row; `truncates` removes all rows instead.

    - `row`: the row after it; None where it was deleted;
    - `before`: what is known of the row before: its key at least, where it was deleted or moved;
    - `kept`: columns of which the source did not send the value, since it did not change.
    """

    row: Mapping[str, Any] | None
    before: Mapping[str, Any] | None = None
    kept: frozenset[str] = NOTHING
    sequence: Any = None
    truncates: bool = False


@dataclass(frozen=True)
class NetChanges:
    """One change per key.

    - `rows` have columns of the table, of deleted rows the keys alone;
    - `deleted`: which rows go; `group`: of each row which of `kept` are its columns that stay as
      the table has them;
    - `origins`: by number of row, the key under which the table has the columns that stay, where
      the key has changed;
    - `truncates`: all rows that the table has go first.
    """

    rows: pa.Table
    deleted: pa.Array
    group: np.ndarray[Any, np.dtype[np.int64]]
    kept: tuple[frozenset[str], ...] = (NOTHING,)
    origins: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    truncates: bool = False


def net_of_rows(
    events: pa.Table, keys: Sequence[str], deleted: pa.Array, sequence: pa.Array | None
) -> NetChanges:
    """Collapse rows that are events: a row per event, with the columns of the table.

    Of equal sequences the last one to arrive wins, and a row before a delete: a change feed has
    an update as a delete and an insert of one commit.
    """
    for name in keys:
        _validate_not_null(events[name].null_count, name)
    numbered = pa.table(
        {f"k{at}": events[name] for at, name in enumerate(keys)}
        | {"arrival": pa.array(np.arange(events.num_rows))}
    )
    if sequence is not None:
        _validate_not_null(sequence.null_count, "sequence_by")
        numbered = numbered.append_column("sequence", sequence)
        numbered = numbered.append_column("written", pc.invert(deleted))
        order = [(name, "ascending") for name in ("sequence", "written", "arrival")]
        numbered = numbered.take(pc.sort_indices(numbered, sort_keys=order))
    numbered = numbered.append_column("place", pa.array(np.arange(events.num_rows)))
    names = [f"k{at}" for at in range(len(keys))]
    last = numbered.group_by(names, use_threads=False).aggregate([("place", "max")])
    chosen = pc.take(numbered["arrival"], last["place_max"])
    kept = events.take(chosen)
    flags = deleted.take(chosen.combine_chunks() if hasattr(chosen, "combine_chunks") else chosen)
    return NetChanges(kept, flags, np.zeros(kept.num_rows, np.int64))


@dataclass(slots=True)
class _State:
    row: Mapping[str, Any] | None
    kept: frozenset[str] = NOTHING
    origin: tuple[Any, ...] | None = None


def in_sequence(events: Iterable[Event], *, sequenced: bool) -> list[Event]:
    """Return events in the order of their sequence, else as they arrived."""
    found = list(events)
    if not sequenced:
        return found
    _validate_not_null(sum(event.sequence is None for event in found), "sequence_by")
    return sorted(found, key=lambda event: event.sequence)


def net_of_events(events: Sequence[Event], keys: Sequence[str], schema: Schema) -> NetChanges:
    """Collapse events that are in their order."""
    states: dict[tuple[Any, ...], _State] = {}
    truncates = False
    for event in events:
        if event.truncates:
            states.clear()
            truncates = True
        else:
            _follow(states, event, keys, unknown=_State(None) if truncates else None)
    return _net(states, keys, schema, truncates)


def key_of(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the key of a row; raises where a part of it is missing or null."""
    found = tuple([_hashable(row.get(name)) for name in keys])
    if None in found:
        name = keys[found.index(None)]
        raise SchemaMismatchError(
            f"An event has no value of the key column {name}, so nobody can tell which row it "
            "changes. Name other keys, or have the source send it (PostgreSQL: REPLICA "
            "IDENTITY).",
            column=name,
        )
    return found


def _follow(
    states: dict[tuple[Any, ...], _State],
    event: Event,
    keys: Sequence[str],
    *,
    unknown: _State | None,
) -> None:
    """Take one event; `unknown` is the state of a key without an earlier event in the batch."""
    if event.row is None:
        states[key_of(event.before or {}, keys)] = _State(None)
        return
    key = key_of(event.row, keys)
    moved = event.before is not None and all(event.before.get(k) is not None for k in keys)
    old = key_of(event.before or {}, keys) if moved else key
    before = states.get(old, unknown)
    made = _filled(event, before, None if old == key else old)
    if old != key:
        states[old] = _State(None)
    states[key] = made


def _filled(event: Event, before: _State | None, old: tuple[Any, ...] | None) -> _State:
    """Return the row after an event, with values that were not sent taken from what is known."""
    if not event.kept:
        return _State(event.row)
    row, kept, origin = dict(event.row or {}), set(event.kept), old
    for source in (event.before, before.row if before else None):
        for name in list(kept):
            if source is not None and name in source:
                row[name] = source[name]
                kept.discard(name)
    if before is not None:
        # What an earlier event has set is known by now; of a deleted row nothing is left to keep.
        kept &= before.kept
        origin = before.origin or old
    return _State(row, frozenset(kept), origin if kept else None)


def _net(
    states: Mapping[tuple[Any, ...], _State], keys: Sequence[str], schema: Schema, truncates: bool
) -> NetChanges:
    given: set[str] = set()
    for state in states.values():
        given.update(state.row or (), state.kept)
    names = [name for name in schema.arrow.names if name in given or name in keys]
    rows = [
        state.row if state.row is not None else dict(zip(keys, key, strict=True))
        for key, state in states.items()
    ]
    columns = [
        pa.array([row.get(name) for row in rows], schema.arrow.field(name).type) for name in names
    ]
    groups: dict[frozenset[str], int] = {NOTHING: 0}
    group = [groups.setdefault(state.kept, len(groups)) for state in states.values()]
    table = pa.table(columns, schema=pa.schema([schema.arrow.field(name) for name in names]))
    return NetChanges(
        table,
        pa.array([state.row is None for state in states.values()], pa.bool_()),
        np.array(group, np.int64),
        tuple(groups),
        {at: one.origin for at, one in enumerate(states.values()) if one.origin is not None},
        truncates,
    )


def filled(net: NetChanges, values: Mapping[int, Mapping[str, Any]]) -> NetChanges:
    """Return changes in which rows, by their number, have values that the table had for them."""
    columns = {name: net.rows[name].to_pylist() for name in net.rows.column_names}
    group = net.group.copy()
    for at, found in values.items():
        for name in net.kept[net.group[at]]:
            columns[name][at] = found.get(name)
        group[at] = 0
    schema = net.rows.schema
    table = pa.table([pa.array(columns[one.name], one.type) for one in schema], schema=schema)
    return replace(net, rows=table, group=group, origins={})


def _hashable(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _validate_not_null(nulls: int, name: str) -> None:
    if nulls:
        raise SchemaMismatchError(
            f"{name} is null in {nulls} events, so nobody can tell which row they change, or when. "
            "Leave these events out.",
            column=name,
        )
