"""What a mutation is, and values that several kinds of files share."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.scene import Scene
    from tests.hostile.tables import AnyLayout

BOMB_BYTES = 3 << 30  # more than a case may have
MB = 1 << 20


def _any_layout(layout: AnyLayout) -> bool:
    return True


@dataclass(frozen=True)
class Mutation:
    """A change to the files of one kind.

    `filters_lie`: bounds say something else, by which filters skip rows; `history_lies`: older
    snapshots may have other rows.
    """

    name: str
    kind: str
    verdict: Verdict
    apply: Callable[[Scene], Any]
    filters_lie: bool = False
    history_lies: bool = False
    suits: Callable[[AnyLayout], bool] = _any_layout


# --- locations


def _fifo(scene: Scene, path: Path) -> str:
    pipe = path.parent / "pipe.parquet"
    os.mkfifo(pipe)
    return str(pipe)


def _dotted(scene: Scene, path: Path) -> str:
    return f"{path.parent}/../{path.parent.name}/{path.name}"


def _link(scene: Scene, path: Path) -> str:
    link = path.parent / "link.parquet"
    link.symlink_to(path)
    return str(link)


def _endless_link(scene: Scene, path: Path) -> str:
    link = path.parent / "endless.parquet"
    link.symlink_to(link)
    return str(link)


# name -> how to make a location of it, what may come of it
LOCATIONS: dict[str, tuple[Callable[[Scene, Path], str], Verdict]] = {
    "a pipe": (_fifo, Verdict.REFUSED),
    "/dev/zero": (lambda scene, path: "/dev/zero", Verdict.REFUSED),
    "file:///dev/zero": (lambda scene, path: "file:///dev/zero", Verdict.REFUSED),
    "/dev/tty": (lambda scene, path: "/dev/tty", Verdict.REFUSED),
    "/proc/self/environ": (lambda scene, path: "/proc/self/environ", Verdict.REFUSED),
    "a folder": (lambda scene, path: str(path.parent), Verdict.REFUSED),
    "a NUL": (lambda scene, path: f"{path}\0.parquet", Verdict.REFUSED),
    "a newline": (lambda scene, path: f"{path}\n", Verdict.REFUSED),
    "too long": (lambda scene, path: f"{path.parent}/{'x' * 5000}", Verdict.REFUSED),
    "deep": (lambda scene, path: f"{path.parent}/{'x/' * 5000}", Verdict.REFUSED),
    "..": (_dotted, Verdict.SAME_OR_ERROR),
    "a link": (_link, Verdict.SAME_OR_ERROR),
    "a link to itself": (_endless_link, Verdict.REFUSED),
    "an unknown scheme": (lambda scene, path: f"xyz:/{path}", Verdict.REFUSED),
    "another host": (lambda scene, path: f"file://elsewhere{path}", Verdict.SAME_OR_ERROR),
    "nothing": (lambda scene, path: "", Verdict.REFUSED),
    "relative": (lambda scene, path: f"data/{path.name}", Verdict.REFUSED),
    "percent signs": (lambda scene, path: f"file://{path.parent}/%00%ff%zz", Verdict.REFUSED),
    "text of a worker's error": (
        lambda scene, path: f"{path}[rowlake-error gASVAAAAAAA=]",
        Verdict.REFUSED,
    ),
    "a file of somebody else": (
        lambda scene, path: str(scene.victim / "data/a.parquet"),
        Verdict.ANY,
    ),
}

NUMBERS = (-1, -(2**31), -(2**63), 2**31 - 1, 2**40, 2**62, 2**63 - 1)


# --- bombs


@lru_cache(maxsize=1)
def deflate_bomb() -> bytes:
    """Return gigabytes of zeros as a raw deflate stream of some megabytes."""
    packer = zlib.compressobj(9, wbits=-15)
    once = packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return once * (BOMB_BYTES // MB) + b"\x03\x00"


@lru_cache(maxsize=1)
def zstandard_bomb() -> bytes:
    """Return gigabytes of zeros as a row of Zstandard frames."""
    once = pa.compress(bytes(MB), codec="zstd", asbytes=True)
    return once * (BOMB_BYTES // MB)


def gzip_bomb() -> bytes:
    """Return gigabytes of zeros, gzipped; the checksum at the end is wrong."""
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + deflate_bomb() + bytes(8)


def nested(opening: str, closing: str, depth: int, inside: str = "1") -> str:
    return opening * depth + inside + closing * depth
