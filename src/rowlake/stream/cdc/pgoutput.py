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
from typing import Any, NamedTuple

from rowlake.errors import InvalidStatementError
from rowlake.stream.apply_events import NOTHING, Event
from rowlake.stream.cdc.messages import Decoded, SourceColumn
from rowlake.stream.cdc.postgres_types import field_of_oid

_TEXT, _NULL, _TOAST = b"tnu"
_ROW_KINDS = b"IUD"
_DELETE = ord("D")
_KEY, _OLD = b"KO"
_FIRST_PART = 5  # after the kind and the relation
_NUMBER = struct.Struct(">I")
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


class TableEvent(NamedTuple):
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
        try:
            if message[0] in _ROW_KINDS:
                relation = self.relations[_NUMBER.unpack_from(message, 1)[0]]
                return [TableEvent(relation, _event(relation, message))]
            return self._read(_Body(message))
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


def _event(relation: Relation, data: bytes) -> Event:
    """Return the event of an insert, an update or a delete."""
    before: dict[str, Any] | None = None
    at, part = _FIRST_PART, data[_FIRST_PART]
    if part in (_KEY, _OLD):
        before, _, at = _tuple(relation.names, data, at + 1)
        if part == _KEY:  # columns outside of the key are sent as null
            before = {name: value for name, value in before.items() if name in relation.keys}
        if data[0] == _DELETE:
            return Event(None, before)
    row, kept, _ = _tuple(relation.names, data, at + 1)
    return Event(row, before, kept)


def _tuple(
    names: tuple[str, ...], data: bytes, at: int
) -> tuple[dict[str, Any], frozenset[str], int]:
    """Return the values of a tuple, the columns that were not sent, and where the tuple ends.

    One loop without calls of ours, since most of the log is tuples.
    """
    count = data[at] << 8 | data[at + 1]
    at += 2
    row: dict[str, Any] = {}
    kept = []
    for name in names[:count]:
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + _NUMBER.unpack_from(data, at + 1)[0]
            row[name] = data[start:at].decode()
            continue
        at += 1
        if kind == _NULL:
            row[name] = None
        elif kind == _TOAST:
            kept.append(name)
        else:
            raise IndexError(f"a value begins with {chr(kind)!r}")
    if at > len(data):
        raise IndexError("a value does not end")
    return row, frozenset(kept) if kept else NOTHING, at


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


def decode(messages: Iterable[Any], sequence_by: str | None) -> Decoded:
    """Return messages of one table as events: bytes, or dicts with `data` and other fields."""
    reader = Reader()
    found = Decoded(sequence_by=sequence_by)
    for message in messages:
        if message is None:
            continue
        fields: Mapping[str, Any] = message if isinstance(message, Mapping) else {"data": message}
        read = reader.read(bytes(fields["data"]))
        if isinstance(read, Relation):
            found.columns.update({column.name: column for column in read.columns})
        for change in read if isinstance(read, list) else ():
            found.events.append(_sequenced(change.event, fields.get(sequence_by or "")))
    return found


def _sequenced(event: Event, sequence: Any) -> Event:
    return event._replace(sequence=sequence)
