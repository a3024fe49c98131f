"""Mutations of bytes: of any file, with no regard to what it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.hostile.mutation import Mutation
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.hostile.scene import Scene
    from tests.hostile.tables import AnyLayout

EDGE = 64  # headers and footers are short, and say how the rest is read


def place(random: Random, size: int) -> int:
    """Return an offset: in the first bytes, in the last, or anywhere."""
    edge = min(EDGE, size)
    return random.choice(
        [random.randrange(edge), size - 1 - random.randrange(edge), random.randrange(size)]
    )


def stretch(random: Random, size: int) -> slice:
    first = place(random, size)
    return slice(first, min(size, first + random.choice([1, 2, 4, 8, 64, 1024])))


def flip_a_bit(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    changed[place(random, len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def flip_many(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice([2, 5, 20])):
        data = flip_a_bit(data, random)
    return data


def set_bytes(data: bytes, random: Random) -> bytes:
    """Write bytes that lengths and counts are large with."""
    where = stretch(random, len(data))
    value = random.choice([b"\xff", b"\x7f", b"\x80", b"\x00"])
    return data[: where.start] + value * (where.stop - where.start) + data[where.stop :]


def zero(data: bytes, random: Random) -> bytes:
    where = stretch(random, len(data))
    return data[: where.start] + bytes(where.stop - where.start) + data[where.stop :]


def insert(data: bytes, random: Random) -> bytes:
    where = place(random, len(data))
    return data[:where] + random.randbytes(random.choice([1, 3, 16, 500])) + data[where:]


def remove(data: bytes, random: Random) -> bytes:
    where = stretch(random, len(data))
    return data[: where.start] + data[where.stop :]


def double(data: bytes, random: Random) -> bytes:
    where = stretch(random, len(data))
    return data[: where.stop] + data[where] + data[where.stop :]


def garbage(data: bytes, random: Random) -> bytes:
    return random.randbytes(len(data))


def cut(data: bytes, random: Random) -> bytes:
    return data[: place(random, len(data))]


def append_bytes(data: bytes, random: Random) -> bytes:
    return data + random.randbytes(random.choice([1, 8, 4096]))


CHANGES: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip a bit": flip_a_bit,
    "flip many bits": flip_many,
    "set bytes": set_bytes,
    "zero": zero,
    "insert": insert,
    "remove": remove,
    "double": double,
    "append": append_bytes,
}
LOSSES = {"cut": cut, "garbage": garbage}


def mutations(layout: AnyLayout) -> list[Mutation]:
    """Return the mutations of bytes for tables of a layout."""
    found = []
    for kind in sorted(layout.kinds):
        lies = kind in _OLD or kind in _SHARED
        for name, change in CHANGES.items():
            apply = partial(_rewrite, kind, change)
            verdict = _after_change(kind, layout)
            found.append(Mutation(f"{name} of {kind}", kind, verdict, apply, True, lies))
        for name, change in LOSSES.items():
            apply = partial(_rewrite, kind, change)
            verdict = _after_loss(kind)
            found.append(Mutation(f"{name} of {kind}", kind, verdict, apply, True, lies))
        for name, apply in (("no bytes", _empty), ("another file", _swap)):
            verdict = _after_swap(kind, name)
            found.append(
                Mutation(f"{name} for {kind}", kind, verdict, partial(apply, kind), True, lies)
            )
    return found


def _rewrite(kind: str, change: Callable[[bytes, Random], bytes], scene: Scene) -> None:
    path = scene.any_path(kind)
    before = path.read_bytes()
    after = change(before, scene.random)
    path.write_bytes(after)
    scene.notes.append(f"{path.name}: {len(before)} bytes, now {len(after)}")


def _empty(kind: str, scene: Scene) -> None:
    scene.any_path(kind).write_bytes(b"")


def _swap(kind: str, scene: Scene) -> None:
    kinds = [one for one in scene.sample.files if one.removeprefix("old ") != kind]
    other = scene.any_path(scene.random.choice(sorted(kinds)))
    scene.any_path(kind).write_bytes(other.read_bytes())
    scene.notes.append(f"{other.name} in its place")


# --- what may come of it

_OLD = ("old manifest list", "old commit")
_SHARED = ("checkpoint", "sidecar", "delta vectors", "delta data")  # by several versions
_NEVER_READ = (
    "statistics",
    "partition statistics",
    "version hint",
    "last checkpoint",
    "change data",
    *_OLD,
)

_CHECKED = ("vectors", "delta vectors", "checksum")
# The samples' logs are whole without it, so that the table is read without a damaged one.
SPARED = "checkpoint"
_SWAPPED = ("data", "equality deletes", "delta data", "sidecar")


def _after_change(kind: str, layout: AnyLayout) -> Verdict:
    """Return what counts where some bytes differ.

    Files with a checksum are found out. Values of data files have none, but rows are counted; an
    equality delete may hit another value. Manifests and plain metadata have neither.
    """
    if kind in _NEVER_READ:
        return Verdict.SAME
    if kind in _CHECKED or (kind == "metadata" and getattr(layout, "codec", "") == "gzip"):
        return Verdict.SAME_OR_ERROR
    if kind in ("data", "delta data") and "equality" not in getattr(layout, "deletes", ()):
        return Verdict.COUNT
    return Verdict.ANY


def _after_loss(kind: str) -> Verdict:
    if kind in _NEVER_READ:
        return Verdict.SAME
    if kind == "commit":
        return Verdict.ANY  # it may end with a line
    return Verdict.SAME_OR_ERROR if kind in (*_CHECKED, SPARED) else Verdict.REFUSED


def _after_swap(kind: str, name: str) -> Verdict:
    if kind in _NEVER_READ:
        return Verdict.SAME
    if kind in ("checksum", "delta vectors"):  # one of an older version, perhaps
        return Verdict.SAME_OR_ERROR
    if kind == "commit":
        return Verdict.ANY  # no actions, or those of another version
    if name == "another file" and kind in _SWAPPED:
        return Verdict.ANY  # it may have columns of these ids, or no files at all
    return Verdict.SAME_OR_ERROR if kind == SPARED else Verdict.REFUSED
