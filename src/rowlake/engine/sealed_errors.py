"""Errors as plain data, sealed, so that they can cross from a task to the driver.

What Spark carries home is the text of an exception, and such texts quote rows, paths and messages
of other machines: anything in them may have been written by a stranger. So an error crosses as a
class name from a closed list, its text and simple fields, authenticated with a key that this
driver process drew at random and gave to its tasks. Reading it loads no code, and text without a
valid seal is nothing but text.

- mark: `[rowlake-error <JSON in base64> <seal>]`, the whole error (`as_marked_text`, `from_marks`);
- signature: `[rowlake <seal>]` behind an error's own text, for exceptions that users may read
  themselves; class and text come home, fields do not (`signed`, `from_signatures`).
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from rowlake import errors
from rowlake.errors import RowlakeError

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: dict[str, type[RowlakeError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, RowlakeError)
}
_MARK = re.compile(r"\[rowlake-error ([A-Za-z0-9+/=]+) ([0-9a-f]{64})\]")
_RAISED = re.compile(r"^rowlake\.errors\.(\w{1,40}): ", re.MULTILINE)
_SIGNATURE = re.compile(r" \[rowlake ([0-9a-f]{32})\]")
# How many places in a text are tried: a text may be full of what only looks like ours.
_MOST_TRIED = 64


@dataclass(frozen=True)
class Seal:
    """A key that only the driver and its tasks know."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def of(self, purpose: str, text: str) -> str:
        """Return the seal of a text; texts of different purposes have different ones."""
        return hmac.new(
            self.key, f"{purpose}\0{text}".encode(errors="replace"), "sha256"
        ).hexdigest()

    def fits(self, found: str, purpose: str, text: str) -> bool:
        """Return whether a seal, or the beginning of one, is that of a text."""
        return hmac.compare_digest(found, self.of(purpose, text)[: len(found)])


DRIVER_SEAL = Seal()


def _as_plain(error: RowlakeError) -> dict[str, Any]:
    """Return an error as class name, text and fields, all of types that JSON has."""
    kind = next(kind for kind in type(error).__mro__ if KINDS.get(kind.__name__) is kind)
    return {"kind": kind.__name__, "text": str(error), "fields": _plain(error.__dict__)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def _from_plain(told: dict[str, Any]) -> RowlakeError:
    """Return the error that `_as_plain` was given; lists come back as tuples."""
    return _made(told["kind"], told["text"], _frozen(told["fields"]))


def _made(kind: str, text: str, fields: dict[str, Any]) -> RowlakeError:
    # The text is rendered already, so no constructor runs.
    error = KINDS[kind].__new__(KINDS[kind])
    error.args = (text,)
    error.__dict__.update(fields)
    return error


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def as_marked_text(error: RowlakeError, seal: Seal) -> str:
    """Return the error's text with a mark behind it that holds the whole error."""
    packed = base64.b64encode(json.dumps(_as_plain(error)).encode()).decode()
    return f"{error} [rowlake-error {packed} {seal.of('mark', packed)}]"


def from_marks(text: str, seal: Seal) -> RowlakeError | None:
    """Return the first error that a sealed mark in this text holds, None where there is none."""
    for found in islice(_MARK.finditer(text), _MOST_TRIED):
        packed, mark = found.groups()
        if seal.fits(mark, "mark", packed):
            return _from_plain(json.loads(base64.b64decode(packed)))
    return None


def signed(error: RowlakeError, seal: Seal) -> RowlakeError:
    """Return the error with a signature behind its text."""
    plain = _as_plain(error)
    mark = seal.of(plain["kind"], plain["text"])[:32]
    return _made(plain["kind"], f"{plain['text']} [rowlake {mark}]", error.__dict__)


def from_signatures(text: str, seal: Seal) -> RowlakeError | None:
    """Return the first signed error of a Python traceback in this text: class and message."""
    for raised in islice(_RAISED.finditer(text), _MOST_TRIED):
        for message, mark in _signed_texts(text, raised.end()):
            if raised[1] in KINDS and seal.fits(mark, raised[1], message):
                return _made(raised[1], message, {})
    return None


def _signed_texts(text: str, start: int) -> Iterator[tuple[str, str]]:
    for found in islice(_SIGNATURE.finditer(text, start), _MOST_TRIED):
        yield text[start : found.start()], found[1]
