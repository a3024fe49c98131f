"""A commit stopped between two of its phases, while others do something."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowlake.commit import loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def stopped_at(monkeypatch: Any, phase: str, other: Callable[[], Any]) -> Iterator[None]:
    """Run `other` once, when a commit inside the block has passed the phase."""
    whole = getattr(loop, phase)
    with monkeypatch.context() as patch:

        def passed(*args: Any, **kwargs: Any) -> Any:
            answer = whole(*args, **kwargs)
            patch.setattr(loop, phase, whole)
            other()
            return answer

        patch.setattr(loop, phase, passed)
        yield
