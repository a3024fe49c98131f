"""Parsed deletes, cached per process within a byte limit.

A worker process runs many tasks of one scan, and a delete file may apply to many data files:
each is parsed once while it is in use. Delete files never change, so nothing ever gets stale.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Held = TypeVar("Held")

LIMIT_IN_BYTES = 256 * 1024 * 1024


class ByteLimitedCache(Generic[Held]):
    """The most recently used values, up to a sum of sizes; safe to share between threads."""

    def __init__(self, limit_in_bytes: int, size_of: Callable[[Held], int]) -> None:
        self.limit_in_bytes, self._size_of = limit_in_bytes, size_of
        self._held: OrderedDict[Hashable, tuple[Held, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.size_in_bytes = 0

    def get_or_make(self, key: Hashable, make: Callable[[], Held]) -> Held:
        """Return the value of a key, made on first use.

        Threads that ask at the same time may each make it: that wastes work, but holds no lock.
        """
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found[0]
        made = make()
        self._put(key, made, self._size_of(made))
        return made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()
            self.size_in_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def _put(self, key: Hashable, value: Held, size: int) -> None:
        if size > self.limit_in_bytes:
            return
        with self._lock:
            replaced = self._held.pop(key, None)
            self.size_in_bytes += size - (replaced[1] if replaced else 0)
            self._held[key] = (value, size)
            while self.size_in_bytes > self.limit_in_bytes:
                _, (_, freed) = self._held.popitem(last=False)
                self.size_in_bytes -= freed
