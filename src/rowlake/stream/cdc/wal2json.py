"""wal2json, versions 1 and 2: PostgreSQL's logical decoding as JSON.

Version 1 has a document per transaction (`{"change": [{"kind": "insert", …}]}`), version 2 one per
change (`{"action": "I", "columns": […]}`). Both leave out columns of an update whose TOAST value
did not change; these are kept as the table has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.stream.apply_events import Event
from rowlake.stream.cdc.messages import Decoded, SourceColumn, named
from rowlake.stream.cdc.postgres_types import field_of_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KINDS = {"insert": "I", "update": "U", "delete": "D", "truncate": "T", "message": "M"}
_PASSED_OVER = ("B", "C", "M")


def decode(messages: Iterable[Any], sequence_by: str | None) -> Decoded:
    """Return documents as events."""
    found = Decoded(sequence_by=sequence_by)
    for message in messages:
        if message is None:
            continue
        if "change" in message:
            position = lsn_of(message.get("nextlsn"))
            for change in message["change"]:
                _take(found, *_of_version_1(change, found), position, sequence_by, message)
        else:
            position = lsn_of(message.get("lsn"))
            _take(found, *_of_version_2(message, found), position, sequence_by, message)
    return found


def lsn_of(text: str | None) -> int | None:
    """Return a position in the log (`0/16B3748`) as a number."""
    if text is None:
        return None
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def _take(
    found: Decoded,
    action: str,
    row: dict[str, Any] | None,
    old: dict[str, Any] | None,
    position: int | None,
    sequence_by: str | None,
    message: Mapping[str, Any],
) -> None:
    sequence = position if sequence_by == "lsn" else message.get(sequence_by or "")
    if action == "T":
        found.events.append(Event(None, sequence=sequence, truncates=True))
    elif action == "D":
        found.events.append(Event(None, old, sequence=sequence))
    elif action in ("I", "U"):
        before = (old or {}) if action == "U" else None
        found.events.append(Event(row, before, sequence=sequence))
    elif action not in _PASSED_OVER:
        raise InvalidStatementError(
            f"A wal2json message has the action {action!r:.40}; expected one of: B, C, I, U, D, T, "
            "M, or the kinds insert, update, delete and truncate."
        )


def _of_version_1(
    change: Mapping[str, Any], found: Decoded
) -> tuple[str, dict[str, Any] | None, dict[str, Any] | None]:
    kind = str(change.get("kind"))
    row = old = None
    if "columnnames" in change:
        row = named(change["columnnames"], change["columnvalues"])
        _learn(found, named(change["columnnames"], change.get("columntypes", ())))
    if "oldkeys" in change:
        keys = change["oldkeys"]
        old = named(keys["keynames"], keys["keyvalues"])
        _learn(found, named(keys["keynames"], keys.get("keytypes", ())))
    return _KINDS.get(kind, kind), row, old


def _of_version_2(
    message: Mapping[str, Any], found: Decoded
) -> tuple[str, dict[str, Any] | None, dict[str, Any] | None]:
    images: list[dict[str, Any] | None] = []
    for part in ("columns", "identity"):
        columns = message.get(part)
        if columns is None:
            images.append(None)
            continue
        images.append({column["name"]: column.get("value") for column in columns})
        _learn(found, {column["name"]: column.get("type") for column in columns})
    return str(message.get("action")), images[0], images[1]


def _learn(found: Decoded, types: Mapping[str, str | None]) -> None:
    for name, kind in types.items():
        if kind is not None and name not in found.columns:
            found.columns[name] = SourceColumn(name, field_of_name(name, kind))
