"""What decoders make of messages: events with values as the source wrote them, and columns.

Values become those of the table's columns in one step (`Decoded.typed`), after the table has had
the chance to follow the source's columns (`Decoded.fields`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.stream.apply_events import NOTHING, Event
from rowlake.stream.cdc.values import UNREADABLE, reader, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.schema import Schema


def as_it_is(value: Any) -> Any:
    """Return a value that needs no decoding."""
    return value


@dataclass(frozen=True)
class SourceColumn:
    """A column as the source describes it: its type, and how its values are encoded.

    `field` is None where the messages do not say the type.
    """

    name: str
    field: pa.Field | None = None
    decode: Callable[[Any], Any] = as_it_is


@dataclass
class Decoded:
    """Messages of one batch, in order: events with raw values, and the columns that they have.

    A column that an event lacks keeps the value that the table has, whichever other events share
    the batch: unchanged TOAST values in wal2json, columns that the source added or dropped.
    """

    events: list[Event] = field(default_factory=list)
    columns: dict[str, SourceColumn] = field(default_factory=dict)
    sequence_by: str | None = None

    def fields(self, schema: Schema) -> list[pa.Field]:
        """Return the columns as Arrow fields; types that are not told are guessed by values."""
        names: dict[str, Any] = {}
        for event in self.events:
            names.update(event.row or ())
            names.update(event.before or ())
        found = []
        for name in names:
            known = self.columns.get(name)
            if known is not None and known.field is not None:
                found.append(known.field)
            elif schema.find((name,)) is None:
                found.append(self._guessed(name))
        return found

    def _guessed(self, name: str) -> pa.Field:
        values = [event.row.get(name) for event in self.events if event.row is not None]
        try:
            kind = pa.array([_simple(value) for value in values]).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            kind = pa.string()
        return pa.field(name, kind)

    def sequence_field(self, schema: Schema) -> pa.Field:
        """Return the column that orders events: the table's, else a number of the envelope."""
        held = schema.find((self.sequence_by or "",))
        return held if held is not None else pa.field(self.sequence_by or "", pa.int64())

    def typed(self, schema: Schema) -> list[Event]:
        """Return the events with values of the table's columns; columns it lacks are left out."""
        reading = _Reading(schema, self.columns)
        images = [(reading.image(one.row), reading.image(one.before)) for one in self.events]
        known: set[str] = set()
        for row, _ in images:
            known.update(row or ())
        sequence_column = self._sequence_column(schema)
        found = []
        for event, (row, before) in zip(self.events, images, strict=True):
            kept = NOTHING
            if row is not None and (event.kept or len(row) < len(known)):
                named = {reading.name(name) for name in event.kept} - {""}
                kept = frozenset(named | (known - row.keys()))
            sequence = event.sequence
            if sequence_column is not None and not event.truncates:
                sequence = (row if row is not None else before or {}).get(sequence_column)
            found.append(Event(row, before, kept, sequence, event.truncates))
        return found

    def _sequence_column(self, schema: Schema) -> str | None:
        """Return the table's column that orders events, if it has one."""
        held = None if self.sequence_by is None else schema.find((self.sequence_by,))
        return None if held is None else str(held.name)


class _Reading:
    """Turns images into rows of the table, with a reader per column."""

    def __init__(self, schema: Schema, columns: Mapping[str, SourceColumn]) -> None:
        self._schema, self._columns = schema, columns
        self._readers: dict[str, tuple[str, Callable[[Any], Any]] | None] = {}

    def name(self, name: str) -> str:
        found = self._schema.find((name,))
        return "" if found is None else str(found.name)

    def image(self, image: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if image is None:
            return None
        found: dict[str, Any] = {}
        readers = self._readers
        for name, value in image.items():
            if name not in readers:
                readers[name] = self._reader(name)
            known = readers[name]
            if known is None:
                continue
            try:
                found[known[0]] = None if value is None else known[1](value)
            except UNREADABLE as error:
                raise unreadable(value, self._schema.find((name,)), error) from error
        return found

    def _reader(self, name: str) -> tuple[str, Callable[[Any], Any]] | None:
        held = self._schema.find((name,))
        if held is None:
            return None
        read, column = reader(held), self._columns.get(name)
        if column is None or column.decode is as_it_is:
            return held.name, read
        decode = column.decode
        return held.name, lambda value: read(decode(value))


def _simple(value: Any) -> Any:
    return str(value) if isinstance(value, dict) else value


def named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return names with their values."""
    return dict(zip(names, values, strict=True))
