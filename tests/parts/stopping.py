"""A write stopped at one of its phases, while others do something."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowlake.commit.phases import Phase, at_phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rowlake.model.handle import TableHandle


@contextmanager
def stopped_at(phase: Phase, *others: Callable[[], Any]) -> Iterator[None]:
    """Run the next of `others` each time that the write inside the block reaches the phase."""
    waiting, busy = list(others), []

    def hook(_: TableHandle) -> None:
        if waiting and not busy:
            busy.append(True)
            waiting.pop(0)()
            busy.clear()

    with at_phase(phase, hook):
        yield
    assert not waiting


def meanwhile(*others: Callable[[], Any]) -> AbstractContextManager[None]:
    """Run all of the others before the first attempt of the next commit inside the block."""

    def run() -> None:
        for other in others:
            other()

    return stopped_at(Phase.WRITTEN, run)
