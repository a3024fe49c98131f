"""Plain images: `{"before": {…} | None, "after": {…} | None}`, without an envelope.

No `after` is a delete, no `before` an insert, both an update; a key that differs between them has
changed. Other fields beside them (`ts`, `lsn`) may order the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.stream.apply_events import Event
from rowlake.stream.cdc.debezium import envelope_value
from rowlake.stream.cdc.messages import Decoded

if TYPE_CHECKING:
    from collections.abc import Iterable


def decode(messages: Iterable[Any], sequence_by: str | None) -> Decoded:
    """Return pairs of images as events."""
    found = Decoded(sequence_by=sequence_by)
    for message in messages:
        if message is None:
            continue
        before, after = message.get("before"), message.get("after")
        if before is None and after is None:
            raise InvalidStatementError(
                f"A change has neither a row before nor one after it: {message!r:.80}."
            )
        sequence = envelope_value(message, sequence_by)
        found.events.append(Event(after, before, sequence=sequence))
    return found
