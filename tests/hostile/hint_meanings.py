"""The version hint of the file-system catalog, and what stands beside it.

A hint that lies costs time, not truth: the rows stay the same.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from tests.hostile.mutation import Mutation
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.scene import Scene

TEXTS = {
    "nothing": b"",
    "zero": b"0",
    "less than nothing": b"-7",
    "an earlier version": b"1",
    "a later version": b"70",
    "many digits": b"9" * 10_000,
    "a float": b"1e5",
    "underscores": b"1_0",
    "digits of another script": "٣".encode(),
    "a superscript": "²".encode(),
    "no UTF-8": b"\xff\xfe\x00",
    "a NUL": b"3\0",
    "a path": b"../../../victim/metadata/v1",
}
LONG = b"1" * (1 << 20)


def _text(data: bytes, scene: Scene) -> None:
    scene.path("version hint").write_bytes(data)


def _instead(make: Callable[[Path], object], scene: Scene) -> None:
    path = scene.path("version hint")
    path.unlink()
    make(path)


def _beside(name: str, data: bytes, scene: Scene) -> None:
    (scene.path("version hint").parent / name).write_bytes(data)


def _folder_beside(name: str, scene: Scene) -> None:
    (scene.path("version hint").parent / name).mkdir()


def _link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def _made(name: str, apply: Callable[[Scene], object], verdict: Verdict = Verdict.SAME) -> Mutation:
    return Mutation(f"version hint: {name}", "version hint", verdict, apply)


MUTATIONS = [
    *(_made(f"holds {name}", partial(_text, data)) for name, data in TEXTS.items()),
    _made("is a megabyte", partial(_text, LONG), Verdict.SAME_OR_ERROR),
    _made("is a pipe", partial(_instead, os.mkfifo), Verdict.SAME_OR_ERROR),
    _made("is a folder", partial(_instead, os.mkdir), Verdict.SAME_OR_ERROR),
    _made("is a link to /dev/zero", partial(_instead, _link_to_zero), Verdict.SAME_OR_ERROR),
    _made("is a link to itself", partial(_instead, _link_to_itself), Verdict.SAME_OR_ERROR),
    _made("a version of many digits beside", partial(_beside, f"v{'9' * 200}.metadata.json", b"")),
    _made("a version of letters beside", partial(_beside, "vx.metadata.json", b"{}")),
    _made(
        "an empty next version beside",
        partial(_beside, "v9.metadata.json", b""),
        Verdict.SAME_OR_ERROR,
    ),
    _made(
        "a folder as next version beside",
        partial(_folder_beside, "v9.metadata.json"),
        Verdict.SAME_OR_ERROR,
    ),
]
