"""For tests of what once hung: an action with a limit of time."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def failure_in_time(action: Callable[[], Any], seconds: float = 5.0) -> BaseException | None:
    """Return what an action raises; fails where it hangs (its thread is left behind)."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)
        else:
            raised.append(None)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert raised, "it hangs"
    return raised[0]
