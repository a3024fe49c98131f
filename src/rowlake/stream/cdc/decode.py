"""Messages as users hand them in -> `Decoded`, by the name of their format.

Comes in: dicts, JSON texts, or a frame or table that holds them: a column `value` (and `key`, as
Kafka has it) of texts, or the fields of the messages as columns. Goes out: `Decoded`. Messages are
decoded in the driver; bound the batches of a stream by the options of its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.stream.cdc import debezium, images, pgoutput, wal2json

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.stream.cdc.messages import Decoded

FORMATS: dict[str, Callable[[Iterable[Any], str | None], Decoded]] = {
    "debezium": debezium.decode,
    "wal2json": wal2json.decode,
    "pgoutput": pgoutput.decode,
    "images": images.decode,
}


def decoded(rows: Any, name: str, sequence_by: str | None) -> Decoded:
    """Return messages of a format as events."""
    found = _messages(rows)
    if name == "pgoutput":
        return pgoutput.decode((_binary(one) for one in found), sequence_by)
    return FORMATS[name]((_document(one) for one in found), sequence_by)


def _messages(rows: Any) -> Iterator[Any]:
    """Yield what was handed in, message by message."""
    if isinstance(rows, (str, bytes)):
        raise InvalidStatementError("Messages come as a list or a frame, not as one text.")
    if hasattr(rows, "toArrow"):
        rows = rows.toArrow()
    elif hasattr(rows, "to_arrow"):
        rows = rows.to_arrow()
    elif hasattr(rows, "iloc"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, (pa.RecordBatch, pa.Table)):
        yield from rows.to_pylist()
    elif isinstance(rows, pa.RecordBatchReader):
        for batch in rows:
            yield from batch.to_pylist()
    else:
        yield from rows


def _document(message: Any) -> Mapping[str, Any] | None:
    """Return a message as a dict; None for a tombstone."""
    own = ("op", "payload", "before", "after", "action", "change")
    if (
        isinstance(message, Mapping)
        and "value" in message
        and not any(one in message for one in own)
    ):
        message = message["value"]
    if isinstance(message, (str, bytes, bytearray)):
        message = _json(message)
    if message is None or isinstance(message, Mapping):
        return message
    raise InvalidStatementError(
        f"A message is a dict or a JSON text, not a {type(message).__name__}: {message!r:.80}."
    )


def _json(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise InvalidStatementError(f"A message is no JSON: {text[:80]!r} ({error}).") from error


def _binary(message: Any) -> Any:
    if isinstance(message, Mapping) and "value" in message and "data" not in message:
        return {**message, "data": message["value"]}
    return message
