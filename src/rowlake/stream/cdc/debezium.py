"""Debezium envelopes: `{"before": …, "after": …, "op": "c|r|u|d|t", "ts_ms": …}`.

Comes in: envelopes as dicts, with Kafka Connect's schema around them (`{"schema", "payload"}`) or
without. Goes out: `Decoded`. With a schema, logical types are decoded exactly
(`io.debezium.time.*`, Connect's Decimal, Date, Time and Timestamp, VariableScaleDecimal, zoned
texts, uuid); without one the table's columns say what a value is. Tombstones and messages of no
table are passed over.
Values that PostgreSQL did not send (unchanged TOAST) are kept as the table has them. A key change
is a delete and a create of one position in the log; where the create lacks values, the two become
one event again, since the values are those of the deleted row.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, shown
from rowlake.model.schema import TYPE_NAME
from rowlake.stream.apply_events import Event
from rowlake.stream.cdc.messages import Decoded, SourceColumn, as_it_is
from rowlake.stream.cdc.values import EPOCH

UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_BYTES = base64.b64encode(UNAVAILABLE.encode()).decode()
_OPERATIONS = "crudtm"

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_DATE, _TIME = pa.date32(), pa.time64("us")
_NAIVE, _ZONED = pa.timestamp("us"), pa.timestamp("us", tz="UTC")


def decode(messages: Iterable[Any], sequence_by: str | None) -> Decoded:
    """Return envelopes as events."""
    found = Decoded(sequence_by=sequence_by)
    deletes: dict[Any, int] = {}  # by position in the log
    incomplete: list[tuple[Any, int]] = []
    for message in messages:
        if message is None:  # a tombstone, which follows its delete
            continue
        payload = message
        if "payload" in message and "op" not in message:
            payload = message["payload"]
            _learn(found.columns, message.get("schema"))
        if payload is not None:
            event = _event(payload, sequence_by)
            if event is None:
                continue
            at = envelope_value(payload, "source.lsn")
            if payload["op"] == "d":
                deletes[at] = len(found.events)
            elif payload["op"] == "c" and event.kept:
                incomplete.append((at, len(found.events)))
            found.events.append(event)
    _join_moves(found.events, deletes, incomplete)
    return found


def _join_moves(
    events: list[Event], deletes: Mapping[Any, int], incomplete: Iterable[tuple[Any, int]]
) -> None:
    """Make one event of a delete and a create that lacks values; both are of one position."""
    joined = set()
    for at, number in incomplete:
        deleted = None if at is None else deletes.get(at)
        if deleted is None:
            raise InvalidStatementError(
                "A Debezium message creates a row without its values of "
                f"{shown(sorted(events[number].kept))}: its key was changed, they were not, and "
                "the delete of the old key is not in the same batch. Apply larger batches, or have "
                "PostgreSQL send whole rows (ALTER TABLE … REPLICA IDENTITY FULL)."
            )
        events[number] = events[number]._replace(before=events[deleted].before)
        joined.add(deleted)
    if joined:
        events[:] = [event for number, event in enumerate(events) if number not in joined]


def _event(payload: Mapping[str, Any], sequence_by: str | None) -> Event | None:
    operation = payload.get("op")
    if not isinstance(operation, str) or operation not in _OPERATIONS or len(operation) != 1:
        raise InvalidStatementError(
            f"A Debezium message has op={operation!r:.40}; it is one of c, r, u, d, t and m. "
            f"Messages that hold plain rows go without format=."
        )
    sequence = envelope_value(payload, sequence_by)
    if operation == "m":
        return None
    if operation == "t":
        return Event(None, sequence=sequence, truncates=True)
    before = _without_unavailable(payload.get("before"))
    after = payload.get("after")
    if operation == "d":
        return Event(None, before, sequence=sequence)
    kept = frozenset(name for name, value in (after or {}).items() if is_unavailable(value))
    row = {name: value for name, value in (after or {}).items() if name not in kept}
    return Event(row, before, kept, sequence)


def envelope_value(payload: Mapping[str, Any], path: str | None) -> Any:
    """Return a field of the envelope by its name: `ts_ms`, `source.lsn`; None without one."""
    found: Any = payload
    for name in (path or "").split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def is_unavailable(value: Any) -> bool:
    """Return whether a value stands for one that did not change, and was not sent."""
    if isinstance(value, str):
        return value in (UNAVAILABLE, _UNAVAILABLE_BYTES)
    if isinstance(value, list):
        return len(value) == 1 and is_unavailable(value[0])
    return isinstance(value, Mapping) and list(value) == [UNAVAILABLE]


def _without_unavailable(image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if image is None:
        return None
    return {name: value for name, value in image.items() if not is_unavailable(value)}


# ---------------------------------------------------------------------- schemas


def _learn(columns: dict[str, SourceColumn], schema: Any) -> None:
    """Take the columns of an envelope's schema; those of a newer message win."""
    for part in (schema or {}).get("fields", ()):
        if part.get("field") in ("before", "after"):
            for column in part.get("fields", ()):
                columns[column["field"]] = _column(column)


def _column(described: Mapping[str, Any]) -> SourceColumn:
    name = described["field"]
    logical = described.get("name") or ""
    parameters = described.get("parameters") or {}
    if logical == "org.apache.kafka.connect.data.Decimal":
        return _decimal(name, parameters)
    if logical in _LOGICAL:
        kind, decode = _LOGICAL[logical]
        metadata = {TYPE_NAME: b"uuid"} if logical == "io.debezium.data.Uuid" else None
        return SourceColumn(name, pa.field(name, kind, metadata=metadata), decode)
    if described.get("type") == "array":
        element = _column({**described.get("items", {}), "field": "element"})
        read = element.decode
        decode = as_it_is if read is as_it_is else _all(read)
        return SourceColumn(name, pa.field(name, pa.list_(element.field)), decode)
    return SourceColumn(
        name, pa.field(name, _PRIMITIVES.get(described.get("type", ""), pa.string()))
    )


def _all(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: [None if value is None else read(value) for value in values]


def _decimal(name: str, parameters: Mapping[str, Any]) -> SourceColumn:
    scale = int(parameters.get("scale", 0))
    precision = int(parameters.get("connect.decimal.precision", 38))
    kind = pa.decimal128(precision, scale) if 0 < precision <= 38 else pa.string()

    def read(value: Any) -> Any:
        return value if not isinstance(value, str) else _unscaled(value, scale)

    return SourceColumn(name, pa.field(name, kind), read)


def _unscaled(text: str, scale: int) -> Decimal:
    number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    return Decimal(number).scaleb(-scale)


def _variable_decimal(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return _unscaled(value["value"], int(value["scale"]))


def _moment(unit: int) -> Callable[[Any], Any]:
    """Return what reads a number of units a second since 1970."""
    micros = 1_000_000 // unit if unit <= 1_000_000 else 0

    def read(value: Any) -> Any:
        if not isinstance(value, int):
            return value
        return EPOCH + dt.timedelta(microseconds=value * micros if micros else value // 1000)

    return read


def _time_of(unit: int) -> Callable[[Any], Any]:
    moment = _moment(unit)
    return lambda value: moment(value).time() if isinstance(value, int) else value


_MILLIS, _MICROS, _NANOS = 1_000, 1_000_000, 1_000_000_000
_LOGICAL: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "io.debezium.time.Date": (_DATE, as_it_is),
    "io.debezium.time.Time": (_TIME, _time_of(_MILLIS)),
    "io.debezium.time.MicroTime": (_TIME, _time_of(_MICROS)),
    "io.debezium.time.NanoTime": (_TIME, _time_of(_NANOS)),
    "io.debezium.time.ZonedTime": (pa.string(), as_it_is),
    "io.debezium.time.Timestamp": (_NAIVE, _moment(_MILLIS)),
    "io.debezium.time.MicroTimestamp": (_NAIVE, _moment(_MICROS)),
    "io.debezium.time.NanoTimestamp": (_NAIVE, _moment(_NANOS)),
    "io.debezium.time.ZonedTimestamp": (_ZONED, as_it_is),
    "io.debezium.time.IsoDate": (_DATE, lambda value: value.rstrip("Z")),
    "io.debezium.time.IsoTimestamp": (_NAIVE, as_it_is),
    "io.debezium.time.Year": (pa.int32(), as_it_is),
    "io.debezium.time.MicroDuration": (pa.int64(), as_it_is),
    "io.debezium.data.Uuid": (pa.binary(16), as_it_is),
    "io.debezium.data.VariableScaleDecimal": (pa.string(), _variable_decimal),
    "org.apache.kafka.connect.data.Date": (_DATE, as_it_is),
    "org.apache.kafka.connect.data.Time": (_TIME, _time_of(_MILLIS)),
    "org.apache.kafka.connect.data.Timestamp": (_NAIVE, _moment(_MILLIS)),
}
