"""One operation on storage whose calls fail one after the other: what may be left behind.

After an error the table and its files are as before. After an unknown outcome the table is as
before or as after, and only then files may lie around. An operation that gets through although a
call failed has done all of its work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.errors import CommitStateUnknownError, RowlakeError
from tests.parts.failing import READS, WRITES, Faults, failing, files_below

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_CALLS = 400


@dataclass(frozen=True)
class Scene:
    """An operation, and how its table is made and looked at; each takes the table's folder.

    `state` is everything that is read of the table, `version` a cheap sign that it changed,
    `strays` are files that nothing refers to.
    """

    make: Callable[[Path], Any]
    run: Callable[[Path], Any]
    state: Callable[[Path], Any]
    version: Callable[[Path], Any]
    strays: Callable[[Path], set[str]]


def check_every_call(scene: Scene, folder: Path, monkeypatch: Any, *, after: bool) -> None:
    """Let each call fail once, before or after its effect, until one run meets no fault."""
    # After the effect only writes can fail: a read that fails either way is the same.
    names = WRITES if after else READS + WRITES
    before, wanted = _states(scene, folder / "whole")
    place, files, version = _fresh(scene, folder, 0)
    for at in range(1, MOST_CALLS):
        with failing(monkeypatch, Faults(at, after=after), names) as faults:
            raised = error_of(scene.run, place)
        where = f"{faults.calls[at - 1] if faults.has_struck else 'no fault'} ({at}): {raised!r}"
        if raised is None:
            assert scene.state(place) == wanted, where
            assert scene.strays(place) == set(), where
            if not faults.has_struck:
                return
        elif isinstance(raised, CommitStateUnknownError):
            assert scene.state(place) in (before, wanted), where
        else:
            # Files never change under their name: the same ones are the same table.
            assert scene.version(place) == version, where
            assert files_below(place) == files, where
            continue
        place, files, version = _fresh(scene, folder, at)
    raise AssertionError(f"more than {MOST_CALLS} calls")


def _states(scene: Scene, place: Path) -> tuple[Any, Any]:
    """Return what is read before and after the operation where nothing fails."""
    scene.make(place)
    before = scene.state(place)
    scene.run(place)
    after = scene.state(place)
    assert after != before
    return before, after


def _fresh(scene: Scene, folder: Path, number: int) -> tuple[Path, set[str], Any]:
    place = folder / str(number)
    scene.make(place)
    return place, files_below(place), scene.version(place)


def error_of(run: Callable[[Path], Any], place: Path) -> RowlakeError | None:
    try:
        run(place)
    except RowlakeError as error:
        return error
    return None
