"""Files of a Delta log that are no commits, missing ones, and what stands beside them."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.hostile.delta_commit_meanings import DEEP, HUGE
from tests.hostile.delta_commits import (
    ANY,
    EITHER,
    KIND,
    REFUSED,
    SAME,
    commit_path,
    forget_checksums,
    rewritten,
)
from tests.hostile.delta_tables import CHECKPOINT, LAST, LOG
from tests.hostile.mutation import NUMBERS, Mutation, nested

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.scene import Scene
    from tests.hostile.verdicts import Verdict

_next, _last, _crc = f"{LAST + 1:020d}.json", f"{LAST:020d}.json", f"{LAST:020d}.crc"


# --- lines


def _text(change: Callable[[str], str | bytes], scene: Scene) -> None:
    forget_checksums(scene)
    path = commit_path(scene)
    data = change(path.read_text())
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def _line(name: str, line: str | bytes, verdict: Verdict) -> Mutation:
    """Return a mutation that adds a line to the last commit."""
    raw = line if isinstance(line, bytes) else line.encode()
    apply = partial(_text, lambda text: text.encode() + raw + b"\n")
    return Mutation(f"commit: a line {name}", KIND, verdict, apply)


def _made(name: str, verdict: Verdict, change: Callable[[str], str | bytes]) -> Mutation:
    return Mutation(f"commit: {name}", KIND, verdict, partial(_text, change))


LINES = [
    *(_line(f"is {text}", text, REFUSED) for text in ("x", "5", "[]", "null", "{", '"add"', "NaN")),
    *(
        _line(f"is {text!r}", text, SAME)
        for text in ("", "  ", "{}", '{"odd": 5}', '{"add": null}')
    ),
    _line("nested too deep", nested("[", "]", DEEP), REFUSED),
    _line("of objects nested too deep", nested('{"add":', "}", DEEP), REFUSED),
    _line("of an unknown action nested too deep", '{"odd":' + nested("[", "]", DEEP) + "}", EITHER),
    _line(
        "of a number of many digits", '{"add": {"path": "x", "size": ' + "9" * 9999 + "}}", REFUSED
    ),
    _line("that is no UTF-8", b'{"odd": "\xff\xfe"}', EITHER),
    _line("of NULs", b"\0" * 100, REFUSED),
    _line("of ten megabytes", '{"odd": "' + "x" * 10_000_000 + '"}', SAME),
    _made("has a BOM", EITHER, lambda text: text.encode("utf-8-sig")),
    _made("is UTF-16", REFUSED, lambda text: text.encode("utf-16")),
    _made("has Windows line ends", EITHER, lambda text: text.replace("\n", "\r\n")),
    _made("has all in one line", REFUSED, lambda text: text.replace("\n", " ")),
    _made(
        "is pretty-printed",
        REFUSED,
        lambda text: "\n".join(
            json.dumps(json.loads(line), indent=1) for line in text.splitlines()
        ),
    ),
    _made("has 100,000 blank lines", SAME, lambda text: text + "\n" * 100_000),
    _made("has an unknown action 50,000 times", SAME, lambda text: text + '{"odd": {}}\n' * 50_000),
    rewritten("is backwards", EITHER, lambda actions: actions.reverse()),
    rewritten("has every action twice", EITHER, lambda actions: actions.extend(list(actions))),
    rewritten(
        "has an add twice",
        EITHER,
        lambda actions: actions.extend([one for one in actions if "add" in one]),
    ),
    rewritten(
        "has all actions in one object",
        EITHER,
        lambda actions: actions.append({k: v for one in actions for k, v in one.items()}),
    ),
    rewritten(
        "has an add 20,000 times",
        EITHER,
        lambda actions: actions.extend([one for one in actions if "add" in one] * 20_000),
    ),
    rewritten(
        "lacks its removes",
        ANY,
        lambda actions: actions.__setitem__(
            slice(None), [one for one in actions if "remove" not in one]
        ),
    ),
    rewritten(
        "removes what it adds",
        ANY,
        lambda actions: actions.extend(
            {"remove": one["add"]} for one in list(actions) if "add" in one
        ),
    ),
]


# --- which files there are


def _log(scene: Scene, name: str = "") -> Path:
    return scene.table / LOG / name


def _without(pattern: str, scene: Scene) -> None:
    forget_checksums(scene)
    for path in _log(scene).glob(pattern):
        path.unlink()


def _beside(name: str, data: bytes, scene: Scene) -> None:
    _log(scene, name).write_bytes(data)


def _instead(name: str, make: Callable[[Path], object], scene: Scene) -> None:
    forget_checksums(scene)
    path = _log(scene, name)
    path.unlink(missing_ok=True)
    make(path)


def _linked(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _other_commit(scene: Scene) -> None:
    """Put the actions of another commit into the next version."""
    _log(scene, _next).write_bytes(commit_path(scene, 1).read_bytes())


def _compacted(scene: Scene) -> None:
    """Let a compaction of the last two commits say nothing."""
    _log(scene, f"{LAST - 1:020d}.{LAST:020d}.compacted.json").write_bytes(b"")


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link to /dev/zero": _linked("/dev/zero"),
    "a link to nothing": _linked("/nowhere/at/all"),
    "a link to itself": lambda path: path.symlink_to(path),
}
BESIDE = {
    "a version of 20 digits": f"{'9' * 20}.json",
    "a later version": f"{LAST + 7:020d}.json",
    "the last version": f"{2**63 - 1:020d}.json",
    "a checkpoint of the last version": f"{2**63 - 1:020d}.checkpoint.parquet",
}
HARMLESS = {
    "a short name": "7.json",
    "a version of letters": f"{'x' * 20}.json",
    "a version of other digits": f"{'٣' * 20}.json",
    "a temporary file": f".{_next}.tmp",
    "a part of a checkpoint": f"{LAST:020d}.checkpoint.{1:010d}.{10**10 - 1:010d}.parquet",
    "a checksum of a later version": f"{LAST + 7:020d}.crc",
    "a compaction of later versions": f"{LAST + 1:020d}.{2**63 - 1:020d}.compacted.json",
    "a compaction backwards": f"{LAST:020d}.{0:020d}.compacted.json",
}


def _there(
    name: str, verdict: Verdict, apply: Callable[[Scene], Any], kind: str = KIND
) -> Mutation:
    return Mutation(f"log: {name}", kind, verdict, apply, history_lies=True)


FILES = [
    _there("no last commit", ANY, partial(_without, _last)),
    _there("no commit before the last", REFUSED, partial(_without, f"{LAST - 1:020d}.json")),
    _there("no commits after the checkpoint", ANY, partial(_without, "0*[45].json")),
    _there("no commits at all", ANY, partial(_without, "*.json")),
    _there("no first commit", SAME, partial(_without, f"{0:020d}.json")),
    _there("no old commits", SAME, partial(_without, f"*[012{CHECKPOINT}].json")),
    _there("no checkpoint", SAME, partial(_without, "*.checkpoint.*")),
    _there("neither checkpoint nor old commits", REFUSED, partial(_without, "*[013].*")),
    _there("nothing", REFUSED, partial(_without, "*.*")),
    _there("another commit as the next version", ANY, _other_commit),
    _there("an empty next version", EITHER, partial(_beside, _next, b"")),
    _there("an empty compaction", ANY, _compacted),
    *(
        _there(f"{name} beside", EITHER, partial(_beside, each, b""))
        for name, each in BESIDE.items()
    ),
    *(
        _there(f"{name} beside", SAME, partial(_beside, each, b"{"))
        for name, each in HARMLESS.items()
    ),
    *(
        _there(f"the next version is {name}", EITHER, partial(_instead, _next, make))
        for name, make in SPECIAL.items()
    ),
    # As if it had been deleted: nobody can know.
    *(
        _there(f"the last version is {name}", ANY, partial(_instead, _last, make))
        for name, make in SPECIAL.items()
    ),
]


# --- the hint to the checkpoint, and checksums: what they say is no reason to refuse or to believe


def _hint(data: bytes, scene: Scene) -> None:
    scene.path("last checkpoint").write_bytes(data)


def _hint_field(key: str, value: Any, scene: Scene) -> None:
    path = scene.path("last checkpoint")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))


TEXTS = {
    "nothing": b"",
    "no JSON": b"{",
    "null": b"null",
    "a list": b"[]",
    "a number": b"5",
    "an object": b"{}",
    "no UTF-8": b"\xff\xfe",
    "nested too deep": nested("[", "]", DEEP).encode(),
    "many digits": b'{"version": ' + b"9" * 9999 + b"}",
    "a megabyte": b'{"version": 3, "x": "' + b"x" * (1 << 20) + b'"}',
}
_hints = partial(_there, kind="last checkpoint")
_sums = partial(_there, kind="checksum")
HINTS = [
    *(
        _hints(f"_last_checkpoint is {name}", SAME, partial(_hint, data))
        for name, data in TEXTS.items()
    ),
    *(
        _hints(f"_last_checkpoint.{key} is {value!r:.20}", SAME, partial(_hint_field, key, value))
        for key in (
            "version",
            "size",
            "parts",
            "checkpointSchema",
            "v2Checkpoint",
            "checksum",
            "sizeInBytes",
        )
        for value in (None, "x", -1, 10**30, [], {}, 1)
    ),
    *(
        _hints(f"_last_checkpoint is {name}", SAME, partial(_instead, "_last_checkpoint", make))
        for name, make in SPECIAL.items()
    ),
]


def _sum(data: bytes, scene: Scene) -> None:
    scene.path("checksum").write_bytes(data)


def _sum_field(key: str, value: Any, scene: Scene) -> None:
    path = scene.path("checksum")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))


SUMS = [
    *(_sums(f"checksum is {name}", EITHER, partial(_sum, data)) for name, data in TEXTS.items()),
    *(
        _sums(f"checksum.{key} is {value!r:.20}", EITHER, partial(_sum_field, key, value))
        for key in (
            *("numFiles", "tableSizeBytes", "numMetadata", "numProtocol", "txnId", "metadata"),
            *("protocol", "setTransactions", "domainMetadata", "histogramOpt", "allFiles"),
            *("fileSizeHistogram", "numDeletedRecordsOpt", "inCommitTimestampOpt"),
        )
        for value in (None, "x", HUGE, [], [5], {}, 1.5, *NUMBERS[:3])
    ),
    *(
        _sums(f"checksum is {name}", SAME, partial(_instead, _crc, make))
        for name, make in SPECIAL.items()
    ),
]

MUTATIONS = [*LINES, *FILES, *HINTS, *SUMS]
