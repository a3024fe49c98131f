"""Which sessions have a lake attached.

A Spark session has one lake at most. Sessions are compared as Spark does, not as Python objects:
`SparkSession.getActiveSession()` makes a new object of a classic session at each call.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rowlake.engine.jobs import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.engine.attachments.drop_in import DropIn

_OWN = "rowlake"


@dataclass(frozen=True)
class Attachment:
    """A session and its lake."""

    session: Any
    lake: DropIn


_lock = threading.RLock()
_attached: list[Attachment] = []
# What was found for sessions before, by Python object; emptied at each change.
_found: WeakKeyDictionary[Any, DropIn | None] = WeakKeyDictionary()
_plain = threading.local()


def attach(session: Any, lake: DropIn) -> Attachment:
    """Give a session a lake, in place of one that it may have; return what `detach` takes."""
    from rowlake.engine.attachments import entry_points

    made = Attachment(session, lake)
    with _lock:
        _attached[:] = [each for each in _attached if not _is_same(each.session, session)]
        _attached.append(made)
        _found.clear()
        entry_points.install(remote=is_remote(session))
    return made


def detach(attachment: Attachment) -> None:
    """Take a lake from its session, unless it has another one by now."""
    from rowlake.engine.attachments import entry_points

    with _lock:
        _attached[:] = [each for each in _attached if each is not attachment]
        _found.clear()
        if not _attached:
            entry_points.uninstall()


def lake_of(session: Any) -> DropIn | None:
    """Return the lake of a session; None where it has none, or Spark itself is meant."""
    if getattr(_plain, "depth", 0):
        return None
    with _lock:
        if session not in _found:
            same = (each.lake for each in _attached if _is_same(each.session, session))
            _found[session] = next(same, None)
        return _found[session]


@contextmanager
def plain_spark() -> Iterator[None]:
    """Have the entry points mean Spark itself in this thread, for the block."""
    _plain.depth = getattr(_plain, "depth", 0) + 1
    try:
        yield
    finally:
        _plain.depth -= 1


def is_own_call(depth: int = 2) -> bool:
    """Return whether a module of rowlake calls what calls this."""
    name = str(sys._getframe(depth).f_globals.get("__name__", ""))
    return name.partition(".")[0] == _OWN


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if is_remote(one) != is_remote(other):
        return False
    if is_remote(one):
        return str(one.session_id) == str(other.session_id)
    try:
        return bool(one._jsparkSession == other._jsparkSession)
    except Exception:  # noqa: BLE001 - the JVM of a session that was stopped is gone
        return False
