"""The process tree, read from /proc: who is in it, and what each process has used.

CPU of a process that ended is in its parent's `cutime` once the parent has waited for it. A
parent that ignores SIGCHLD never does (PySpark's worker daemon is one): the kernel forgets what
its children used. `Forgotten` watches such children while they live, so that only what they
used between the last look and their end is lost.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """What one process has used; its CPU includes that of children that it waited for."""

    cpu_s: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.cpu_s + other.cpu_s,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
        )


class Tree:
    """This process and all that descend from it; parents are read once per process."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def pids(self) -> list[int]:
        """Return the ids of live processes, parents before their children."""
        living = [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208
        for pid in living:
            if pid not in self._parents:
                self._parents[pid] = parent_of(pid)
        children: dict[int, list[int]] = {}
        for pid in living:
            children.setdefault(self._parents[pid], []).append(pid)
        found = [os.getpid()]
        for pid in found:
            found.extend(children.get(pid, ()))
        return found

    def children_of(self, parent: int, pids: list[int]) -> list[int]:
        """Return those of the processes whose parent this is."""
        return [pid for pid in pids if self._parents.get(pid) == parent]


def _stat(pid: int) -> list[str]:
    """Return the fields of a process's stat after its name, which is in brackets."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def parent_of(pid: int) -> int:
    """Return the id of a process's parent; 0 where the process has ended."""
    try:
        return int(_stat(pid)[1])
    except OSError:
        return 0


def usage(pid: int) -> Usage | None:
    """Return what a process has used; None where it has ended."""
    try:
        fields = _stat(pid)
        lines = (PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return None
    io = dict(line.split(": ") for line in lines)
    ticks = sum(int(field) for field in fields[11:15])
    return Usage(ticks / TICKS, int(io["rchar"]), int(io["wchar"]))


def unshared_bytes(pid: int) -> int:
    """Return a process's resident memory without mapped files; 0 where it has ended."""
    try:
        fields = (PROC / str(pid) / "statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE


def program_of(pid: int) -> str:
    """Return the name of the program that a process runs; empty where it has ended."""
    try:
        return (PROC / str(pid) / "exe").readlink().name
    except OSError:
        return ""


def memory_of(tree: Tree, pids: list[int]) -> int:
    """Return the resident memory of processes, that of a JVM once.

    A JVM that is about to start a program (Hadoop sets permissions so) is for a moment two
    processes with one memory.
    """
    java = {pid for pid in pids if program_of(pid) == "java"}
    forks = {pid for parent in java for pid in tree.children_of(parent, pids) if pid in java}
    return sum(unshared_bytes(pid) for pid in pids if pid not in forks)


def forgets_children(pid: int) -> bool:
    """True where a process ignores SIGCHLD, so that its ended children are not accounted."""
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    mask = next((line for line in status.splitlines() if line.startswith("SigIgn:")), "SigIgn: 0")
    return bool(int(mask.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)


class Forgotten:
    """Children of processes that forget them, with what each was last seen to have used."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._seen: dict[int, Usage] = {}

    def look(self, pids: list[int]) -> None:
        """Note what the children of processes that ignore SIGCHLD have used so far."""
        for parent in pids:
            children = self._tree.children_of(parent, pids)
            if children and forgets_children(parent):
                for child in children:
                    seen = usage(child)
                    if seen is not None:
                        self._seen[child] = seen

    def used_by_the_ended(self) -> Usage:
        """Return what ended processes used, from their start, as far as they were seen."""
        living = set(self._tree.pids())
        ended = [seen for pid, seen in self._seen.items() if pid not in living]
        return sum(ended, Usage())
