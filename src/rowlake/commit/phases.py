"""The phases of a write, by name, for whoever must stop or change something between two of them.

planned -> written -> validated -> produced -> swapped; after a lost race again from validated.
Tests put other writers' commits, failures and Ctrl-C
between phases through `at_phase`; nothing in rowlake itself does.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.model.handle import TableHandle

    Hook = Callable[["TableHandle"], None]


class Phase(enum.Enum):
    """What a write has done so far."""

    PLANNED = "which files and rows change is known; nothing is written"
    WRITTEN = "the files of the change are written; the table is as it was"
    VALIDATED = "the change may land on this head, and was rebased onto it"
    PRODUCED = "all is written for this head; the next step is the swap"
    SWAPPED = "the catalog has answered, whatever the answer is"


_hooks: ContextVar[tuple[tuple[Phase, Hook], ...]] = ContextVar("rowlake_phase_hooks", default=())


def reached(phase: Phase, handle: TableHandle) -> None:
    """Announce that a write to a table has reached a phase."""
    for wanted, hook in _hooks.get():
        if wanted is phase:
            hook(handle)


@contextmanager
def at_phase(phase: Phase, hook: Hook) -> Iterator[None]:
    """Call a hook each time a write of this context reaches a phase."""
    token = _hooks.set((*_hooks.get(), (phase, hook)))
    try:
        yield
    finally:
        _hooks.reset(token)
