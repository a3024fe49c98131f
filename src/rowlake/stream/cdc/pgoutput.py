"""pgoutput, protocol version 1: the binary messages of PostgreSQL's own logical replication.

Messages are big-endian; the first byte says what they are (documentation of PostgreSQL, Logical
Replication Message Formats):

    B  begin: 8 final LSN, 8 commit time, 4 xid
    C  commit: 1 flags, 8 LSN, 8 end LSN, 8 commit time
    R  relation: 4 oid, name of namespace, name, 1 replica identity, 2 number of columns, then for
       each: 1 flags (1: part of the key), name, 4 type oid, 4 type modifier
    I  insert: 4 relation oid, 'N', tuple
    U  update: 4 relation oid, ['K' or 'O', tuple], 'N', tuple
    D  delete: 4 relation oid, 'K' or 'O', tuple
    T  truncate: 4 number of relations, 1 options, 4 oid each
    Y, O, M  type, origin, message: passed over

A tuple is 2 number of columns, then for each 'n' (null), 'u' (unchanged TOAST, not sent) or 't'
with 4 length and the text. Names end with a zero byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rowlake.errors import InvalidStatementError
from rowlake.stream.apply_events import NOTHING, Event
from rowlake.stream.cdc.messages import Decoded, SourceColumn
from rowlake.stream.cdc.postgres_types import field_of_oid

_TEXT, _TOAST = ord("t"), ord("u")
UNCHANGED = object()  # a value that was not sent
_BAD = "a pgoutput message is damaged or of another protocol version"


@dataclass(frozen=True)
class Relation:
    """A table of the source, as the stream describes it before its first change."""

    oid: int
    namespace: str
    name: str
    columns: tuple[SourceColumn, ...]
    keys: frozenset[str]

    @cached_property
    def full_name(self) -> str:
        """The name with its schema."""
        return f"{self.namespace}.{self.name}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Begin:
    """A transaction begins; its changes follow, then its commit."""

    final_lsn: int
    xid: int


@dataclass(frozen=True)
class Commit:
    """The transaction ends; the log up to `end_lsn` is done with it."""

    end_lsn: int


@dataclass(frozen=True)
class TableEvent:
    """A change of one table."""

    relation: Relation
    event: Event


Message = Begin | Commit | Relation | list[TableEvent] | None


@dataclass
class Reader:
    """Reads messages; remembers the relations that were described."""

    relations: dict[int, Relation] = field(default_factory=dict)

    def read(self, message: bytes) -> Message:
        """Return what a message says; None for those that say nothing about rows."""
        body = _Body(bytes(message))
        try:
            return self._read(body)
        except (struct.error, IndexError, UnicodeDecodeError, KeyError) as error:
            raise InvalidStatementError(f"Cannot decode: {_BAD} ({error}).") from error

    def _read(self, body: _Body) -> Message:
        kind = body.letter()
        if kind == "B":
            final, _, xid = body.take(">QQI")
            return Begin(final, xid)
        if kind == "C":
            _, _, end, _ = body.take(">BQQQ")
            return Commit(end)
        if kind == "R":
            return self._relation(body)
        if kind == "T":
            count, _ = body.take(">IB")
            gone = Event(None, truncates=True)
            return [TableEvent(self.relations[body.number()], gone) for _ in range(count)]
        if kind in "IUD":
            relation = self.relations[body.number()]
            return [TableEvent(relation, _event(kind, relation, body))]
        if kind in "YOM":
            return None
        raise InvalidStatementError(f"Cannot decode: {_BAD} (it begins with {kind!r}).")

    def _relation(self, body: _Body) -> Relation:
        oid = body.number()
        namespace, name = body.text(), body.text()
        _, count = body.take(">BH")
        columns, keys = [], set()
        for _ in range(count):
            (flags,) = body.take(">B")
            column = body.text()
            kind, modifier = body.take(">Ii")
            columns.append(SourceColumn(column, field_of_oid(column, kind, modifier)))
            if flags & 1:
                keys.add(column)
        made = Relation(oid, namespace, name, tuple(columns), frozenset(keys))
        self.relations[oid] = made
        return made


def _event(kind: str, relation: Relation, body: _Body) -> Event:
    before: dict[str, Any] | None = None
    part = body.letter()
    if part in "KO":
        before, _ = _tuple(relation, body)
        if part == "K":  # columns outside of the key are sent as null
            before = {name: value for name, value in before.items() if name in relation.keys}
        if kind == "D":
            return Event(None, before)
        part = body.letter()
    row, kept = _tuple(relation, body)
    return Event(row, before, kept)


def _tuple(relation: Relation, body: _Body) -> tuple[dict[str, Any], frozenset[str]]:
    (count,) = body.take(">H")
    row: dict[str, Any] = {}
    kept = []
    for name in relation.names[:count]:
        value = body.value()
        if value is UNCHANGED:
            kept.append(name)
        else:
            row[name] = value
    return row, frozenset(kept) if kept else NOTHING


class _Body:
    """The bytes of a message, taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def letter(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def number(self) -> int:
        return int(self.take(">I")[0])

    def text(self) -> str:
        end = self._data.index(b"\0", self._at) if b"\0" in self._data[self._at :] else -1
        if end < 0:
            raise IndexError("a name does not end")
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def value(self) -> Any:
        """Return the next value of a tuple: a text, None, or `UNCHANGED`."""
        data, at = self._data, self._at
        kind = data[at]
        if kind != _TEXT:
            self._at = at + 1
            return UNCHANGED if kind == _TOAST else None
        start = at + 5
        end = start + int.from_bytes(data[at + 1 : start], "big")
        if end > len(data):
            raise IndexError("a value does not end")
        self._at = end
        return data[start:end].decode()


def decode(messages: Iterable[Any], sequence_by: str | None) -> Decoded:
    """Return messages of one table as events: bytes, or dicts with `data` and other fields."""
    reader = Reader()
    found = Decoded(sequence_by=sequence_by)
    for message in messages:
        if message is None:
            continue
        fields: Mapping[str, Any] = message if isinstance(message, Mapping) else {"data": message}
        read = reader.read(fields["data"])
        if isinstance(read, Relation):
            found.columns.update({column.name: column for column in read.columns})
        for change in read if isinstance(read, list) else ():
            found.events.append(_sequenced(change.event, fields.get(sequence_by or "")))
    return found


def _sequenced(event: Event, sequence: Any) -> Event:
    return Event(event.row, event.before, event.kept, sequence, event.truncates)
