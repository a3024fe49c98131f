"""A fence around a process: it can change files below some folders and nowhere else.

Cases run operations that delete files, on tables that name any path of the machine. What a defect
would delete must not be more than what the case was given. The fence is Linux's Landlock, which
needs no privileges and holds for everything that the process loads or starts.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, on every architecture
_VERSION_FLAG = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
# What changes files, by version: write; remove, make and link; move to other folders; truncate.
_WRITE = 1 << 1
_CHANGE = _WRITE | sum(1 << bit for bit in range(4, 13))
_MOVE, _TRUNCATE = 1 << 13, 1 << 14


class FenceError(RuntimeError):
    """There can be no fence on this machine."""


def can_fence() -> bool:
    """Tell whether this machine has Landlock."""
    return _version() >= 2


def fence(folders: Iterable[Path]) -> None:
    """Let this process, and what it forks, change files below these folders only, for good."""
    version = _version()
    if version < 2:
        raise FenceError("this machine has no Landlock, without which no case is run")
    handled = _CHANGE | _MOVE | (_TRUNCATE if version >= 3 else 0)
    ruleset = _call(_CREATE_RULESET, struct.pack("Q", handled), 8, 0)
    for folder in folders:
        _allow(ruleset, str(folder), handled)
    _allow(ruleset, os.devnull, _WRITE)
    if _library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise FenceError(os.strerror(ctypes.get_errno()))
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", access, place), 0)
    finally:
        os.close(place)


def _version() -> int:
    if not os.path.exists("/proc/self/fd"):  # noqa: PTH110
        return 0
    return max(0, int(_library().syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def _call(number: int, *arguments: object) -> int:
    found = int(_library().syscall(number, *arguments))
    if found < 0:
        raise FenceError(os.strerror(ctypes.get_errno()))
    return found


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
