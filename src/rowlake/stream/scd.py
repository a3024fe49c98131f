"""Slowly changing dimensions, type 2: every version of a row, with the time when it held.

Comes in: events with a sequence, and the versions that the table has of their keys. Goes out: the
rows of the table that change. A version starts at the sequence of the event that made it and ends
at that of the next event of its key, whatever it is; the current one has no end. Events may come
late, twice and in any order: the history is the same. Of events of one key and one sequence the
last that arrives wins.

A delete that ends no version (there is none before it, or another delete ends it) leaves no row,
but must not be forgotten: an older event that comes later ends there. Such deletes are in the
table property `rowlake.scd2.deletes` (of a branch: `rowlake.scd2.deletes@<branch>`); the `_MOST`
newest by sequence are kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.errors import CorruptTableError
from rowlake.model.handle import MAIN
from rowlake.model.schema import TYPE_NAME
from rowlake.model.values import from_json, to_json
from rowlake.stream.apply_events import NOTHING, NetChanges, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema
    from rowlake.stream.apply_events import Event

START, END = "__start_at", "__end_at"
DELETES = "rowlake.scd2.deletes"
_MOST = 10_000

Key = tuple[Any, ...]


@dataclass
class Timeline:
    """The events of one key by sequence: versions that the table has, and what came."""

    ends: dict[Any, Any] = field(default_factory=dict)
    held: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    deletes: set[Any] = field(default_factory=set)
    came: dict[Any, Event] = field(default_factory=dict)

    def hold(self, row: Mapping[str, Any]) -> None:
        """Take a version of the table."""
        self.ends[row[START]] = row[END]
        self.held[row[START]] = row

    def history(self) -> list[tuple[Any, Event | None, bool]]:
        """Return (sequence, the event that came, whether it is a delete) in order."""
        gaps = {end for end in self.ends.values() if end is not None and end not in self.ends}
        known = dict.fromkeys(self.ends, False) | dict.fromkeys(gaps | self.deletes, True)
        new = {sequence: event.row is None for sequence, event in self.came.items()}
        both = known | new
        return [(at, self.came.get(at), both[at]) for at in sorted(both)]


@dataclass(frozen=True)
class Remembered:
    """Deletes that end no version, by key, and the table property that holds them."""

    name: str
    deletes: Mapping[Key, set[Any]]


@dataclass(frozen=True)
class HistoryChange:
    """What changes: rows by key and start, and the deletes to remember."""

    net: NetChanges
    table_properties: Mapping[str, str]


def with_columns_kept(events: Iterable[Event], schema: Schema) -> list[Event]:
    """Return events whose versions keep, of columns that they lack, what the version before had."""
    names = frozenset(schema.arrow.names) - {START, END}
    return [
        event if event.row is None else event._replace(kept=names - event.row.keys())
        for event in events
    ]


def timelines(
    events: Iterable[Event], keys: Sequence[str], remembered: Remembered
) -> dict[Key, Timeline]:
    """Return what came and what is remembered, by key; the table's versions are added later.

    A key that changes ends the versions of the old one.
    """
    found: dict[Key, Timeline] = defaultdict(Timeline)
    for event in events:
        before = event.before
        if event.row is None:
            _come(found, key_of(before or {}, keys), event)
            continue
        key = key_of(event.row, keys)
        if before is not None and all(before.get(name) is not None for name in keys):
            old = key_of(before, keys)
            if old != key:
                _come(found, old, event._replace(row=None))
        _come(found, key, event)
    for key, timeline in found.items():
        timeline.deletes |= remembered.deletes.get(key, set())
    return dict(found)


def _come(found: dict[Key, Timeline], key: Key, event: Event) -> None:
    found[key].came[event.sequence] = event


def history_change(
    found: Mapping[Key, Timeline],
    keys: Sequence[str],
    schema: Schema,
    remembered: Remembered,
) -> HistoryChange:
    """Return the rows that change, as changes by key and `__start_at`."""
    rows: list[dict[str, Any]] = []
    kinds: list[str] = []
    deletes = {key: set(ends) for key, ends in remembered.deletes.items()}
    for key, timeline in found.items():
        own = dict(zip(keys, key, strict=True))
        deletes[key] = set()
        for kind, row in _changed(timeline, own, deletes[key]):
            kinds.append(kind)
            rows.append(row)
    deletes = {key: ends for key, ends in deletes.items() if ends}
    same = deletes == dict(remembered.deletes)
    changed = {} if same else {remembered.name: _text(deletes, keys, schema)}
    return HistoryChange(_net(rows, kinds, keys, schema), changed)


def _changed(
    timeline: Timeline, key: Mapping[str, Any], deletes: set[Any]
) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield what changes of one key; deletes that end no version are added to `deletes`."""
    history = timeline.history()
    ends = [at for at, _, _ in history[1:]] + [None]
    version: Mapping[str, Any] | None = None
    for (at, event, is_delete), end in zip(history, ends, strict=True):
        if is_delete:
            if version is None:
                deletes.add(at)
            if at in timeline.ends:
                yield "delete", {**key, START: at}
            version = None
            continue
        if event is None:
            version = timeline.held[at]
            if timeline.ends[at] != end:
                yield "end", {**key, START: at, END: end}
            continue
        row = dict(event.row or {})
        for name in event.kept:
            row[name] = None if version is None else version.get(name)
        version = {**row, **key, START: at, END: end}
        yield "row", dict(version)


def _net(
    rows: list[dict[str, Any]], kinds: list[str], keys: Sequence[str], schema: Schema
) -> NetChanges:
    given = {name for row in rows for name in row} | {*keys, START, END}
    names = [name for name in schema.arrow.names if name in given]
    columns = [
        pa.array([row.get(name) for row in rows], schema.arrow.field(name).type) for name in names
    ]
    others = frozenset(names) - {*keys, START, END}
    return NetChanges(
        pa.table(columns, schema=pa.schema([schema.arrow.field(name) for name in names])),
        pa.array([kind == "delete" for kind in kinds], pa.bool_()),
        np.array([int(kind == "end") for kind in kinds], np.int64),
        (NOTHING, others),
    )


# ---------------------------------------------------------------------- remembered deletes


def remembered_deletes(
    handle: TableHandle, branch: str, keys: Sequence[str], schema: Schema
) -> Remembered:
    """Return the deletes of a branch that end no version."""
    name = DELETES if branch == MAIN else f"{DELETES}@{branch}"
    text = handle.properties.get(name)
    if text is None:
        return Remembered(name, {})
    fields = [schema.arrow.field(name) for name in (*keys, START)]
    try:
        found: dict[Key, set[Any]] = defaultdict(set)
        for row in json.loads(text):
            *key, at = (
                from_json(json.dumps(value), one).as_py()
                for value, one in zip(row, fields, strict=True)
            )
            found[tuple(key)].add(at)
        return Remembered(name, dict(found))
    except (ValueError, TypeError) as error:
        raise CorruptTableError(
            handle.location,
            f"table property {name} does not hold deletes of this table's keys: {text[:80]!r}",
            advice=f"Unset {name}; events older than deletes without a version are then taken "
            "for current ones.",
        ) from error


def _text(deletes: Mapping[Key, set[Any]], keys: Sequence[str], schema: Schema) -> str:
    fields = [schema.arrow.field(name) for name in (*keys, START)]
    rows = [(*key, at) for key, ends in deletes.items() for at in ends]
    rows = sorted(rows, key=lambda row: row[-1], reverse=True)[:_MOST]
    written = [
        [json.loads(to_json(value, one)) for value, one in zip(row, fields, strict=True)]
        for row in rows
    ]
    return json.dumps(written, separators=(",", ":"))


def history_fields(sequence: pa.Field) -> list[pa.Field]:
    """Return the columns that say when a version held, of the type of the sequence."""
    kept = {k: v for k, v in (sequence.metadata or {}).items() if k == TYPE_NAME}
    return [pa.field(name, sequence.type, metadata=kept or None) for name in (START, END)]
