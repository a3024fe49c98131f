"""Tools to change the log of a sample Delta table: its commits, action by action.

Checksum files of versions would tell of a change before its meaning does, so they go first.
"""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.hostile.delta_tables import FIRST, LAST, LOG
from tests.hostile.mutation import Mutation
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.scene import Scene

Action = dict[str, Any]
SAME, REFUSED, EITHER, ANY = (
    Verdict.SAME,
    Verdict.REFUSED,
    Verdict.SAME_OR_ERROR,
    Verdict.ANY,
)
KIND = "commit"


def commit_path(scene: Scene, version: int = LAST) -> Path:
    return scene.table / LOG / f"{version:020d}.json"


def forget_checksums(scene: Scene) -> None:
    for path in (scene.table / LOG).glob("*.crc"):
        path.unlink()


def read_actions(path: Path) -> list[Action]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_actions(path: Path, actions: list[Any]) -> None:
    lines = [json.dumps(one) + "\n" for one in actions]
    path.write_bytes("".join(lines).encode("utf-8", "surrogatepass"))


def action_of(scene: Scene, kind: str) -> Any:
    """Return what an action of this kind says, of the last commit that has one; else nothing."""
    for version in range(LAST, FIRST - 1, -1):
        for action in read_actions(commit_path(scene, version)):
            if kind in action:
                return copy.deepcopy(action[kind])
    return {}


def edit_action(kind: str, edit: Callable[[Any, Scene], Any], scene: Scene) -> None:
    """Edit the first action of a kind in the last commit, which gets one where it has none.

    An edit changes the action, or returns what stands in its place.
    """
    forget_checksums(scene)
    path = commit_path(scene)
    actions = read_actions(path)
    found = next((one for one in actions if kind in one), None)
    if found is None:
        found = {kind: action_of(scene, kind)}
        actions.append(found)
    instead = edit(found[kind], scene)
    found[kind] = found[kind] if instead is None else instead
    write_actions(path, actions)


def edit_actions(edit: Callable[[list[Any]], object], scene: Scene) -> None:
    """Edit all actions of the last commit."""
    forget_checksums(scene)
    path = commit_path(scene)
    actions = read_actions(path)
    edit(actions)
    write_actions(path, actions)


def put(place: tuple[Any, ...], value: Any) -> Callable[[Any, Scene], None]:
    """Return an edit that sets a value at a place; it may be made of the scene."""

    def edit(action: Any, scene: Scene) -> None:
        for step in place[:-1]:
            action = action[step]
        action[place[-1]] = value(scene) if callable(value) else value

    return edit


def drop(key: str) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        action.pop(key, None)

    return edit


def made(
    kind: str, name: str, verdict: Verdict, edit: Callable[[Any, Scene], Any], **more: Any
) -> Mutation:
    """Return a mutation of one action of the last commit."""
    return Mutation(f"{kind}: {name}", KIND, verdict, partial(edit_action, kind, edit), **more)


def values(
    kind: str, place: tuple[Any, ...], verdict: Verdict, *odd: Any, **more: Any
) -> list[Mutation]:
    """Return mutations that set each of these values at one place."""
    path = ".".join(map(str, place))
    return [
        made(kind, f"{path} is {_told(value)}", verdict, put(place, value), **more) for value in odd
    ]


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:30]}… of {len(text):,}"


def rewritten(name: str, verdict: Verdict, edit: Callable[[list[Any]], object]) -> Mutation:
    """Return a mutation of the list of actions of the last commit."""
    return Mutation(f"commit: {name}", KIND, verdict, partial(edit_actions, edit))
