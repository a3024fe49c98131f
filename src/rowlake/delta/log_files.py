"""The files of a table's log, and which of them make up a version.

Comes in: a listing of `_delta_log`. Goes out: `LogFiles`, and for a version a `Segment`: a
checkpoint, if there is one, and the commits after it. `_last_checkpoint` is a hint that a listing
makes unnecessary, so it is not read: it cannot be wrong then. Invariant: a segment has no holes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.storage.files import FileInfo, Storage

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = "_sidecars"
MOST_VERSION = 2**63 - 1
MOST_PARTS = 100_000

_NAME = re.compile(
    r"(?P<version>\d{20})\."
    r"(?:(?P<commit>json)|(?P<crc>crc)"
    r"|checkpoint\.(?P<classic>parquet)"
    r"|checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    r"|checkpoint\.(?P<uuid>[0-9A-Fa-f-]{36})\.(?P<kind>json|parquet)"
    r"|(?P<last>\d{20})\.compacted\.json)"
)


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: one file, or all parts of one in order."""

    version: int
    files: tuple[FileInfo, ...]

    @property
    def is_json(self) -> bool:
        """True for a v2 checkpoint whose top file is JSON."""
        return self.files[0].location.endswith(".json")


@dataclass(frozen=True)
class CommitFile:
    """A file of JSON actions: the commit of one version, or several compacted (`first` on)."""

    version: int
    file: FileInfo
    first: int

    @property
    def is_compacted(self) -> bool:
        """True where actions of several versions are in one file."""
        return self.first != self.version


@dataclass(frozen=True)
class Segment:
    """What makes up a version: a checkpoint or nothing, then commits in ascending order."""

    folder: str
    version: int
    checkpoint: Checkpoint | None
    commits: tuple[CommitFile, ...]
    crc: FileInfo | None = None


@dataclass(frozen=True)
class LogFiles:
    """The files of a log by what they are; versions are those that any file has."""

    folder: str
    commits: Mapping[int, FileInfo] = field(default_factory=dict)
    checkpoints: Mapping[int, Checkpoint] = field(default_factory=dict)
    compactions: Mapping[int, tuple[CommitFile, ...]] = field(default_factory=dict)
    checksums: Mapping[int, FileInfo] = field(default_factory=dict)
    missing_parts: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True where nothing here is of a Delta table."""
        return not (self.commits or self.checkpoints or self.missing_parts)

    @property
    def newest(self) -> int:
        """The newest version."""
        return max([*self.commits, *self.checkpoints, *self.missing_parts])

    @property
    def oldest(self) -> int:
        """The oldest version that can be reconstructed."""
        if 0 in self.commits:
            return 0
        return min(self.checkpoints, default=self.newest)

    def location(self, version: int, ending: str = "json") -> str:
        """Return where a file of a version is, or would be."""
        return join(self.folder, f"{version:020d}.{ending}")

    def segment(self, version: int | None = None) -> Segment:
        """Return what makes up a version, the newest one without an argument.

        Raises InvalidStatementError for a version that the log does not have (any more),
        CorruptTableError where files in between are missing.
        """
        wanted = self.newest if version is None else version
        self._validate_version(wanted)
        found = max((one for one in self.checkpoints if one <= wanted), default=None)
        checkpoint = None if found is None else self.checkpoints[found]
        start = 0 if found is None else found + 1
        self._validate_whole(start, wanted)
        commits = tuple(self._chain(start, wanted))
        return Segment(self.folder, wanted, checkpoint, commits, self.checksums.get(wanted))

    def _validate_version(self, wanted: int) -> None:
        if wanted > self.newest or wanted < self.oldest:
            raise InvalidStatementError(
                f"There is no version {wanted} of the table at {self.folder[: -len(LOG_FOLDER)]}: "
                f"its log has versions {self.oldest} to {self.newest}."
            )

    def _validate_whole(self, start: int, wanted: int) -> None:
        for version in range(start, wanted + 1):
            if version not in self.commits:
                raise self._hole(version, start)

    def _hole(self, version: int, start: int) -> CorruptTableError:
        part = self.missing_parts.get(version) or next(
            (name for at, name in self.missing_parts.items() if start <= at), None
        )
        missing = part or self.location(version)
        return CorruptTableError(
            missing,
            f"the file is missing, and the log has no complete checkpoint of version {version} "
            "or later",
            advice="Restore it from a backup, or read a version that does not need it.",
        )

    def _chain(self, start: int, wanted: int) -> list[CommitFile]:
        """Return commits that cover versions once; the longest compaction of each start is used."""
        found: list[CommitFile] = []
        version = start
        while version <= wanted:
            fitting = [one for one in self.compactions.get(version, ()) if one.version <= wanted]
            longest = max(fitting, key=lambda one: one.version, default=None)
            chosen = longest or CommitFile(version, self.commits[version], version)
            found.append(chosen)
            version = chosen.version + 1
        return found


def parse_name(location: str) -> re.Match[str] | None:
    """Return what the name of a file in a log says: its version, and by its groups what it is."""
    return _NAME.fullmatch(location.rsplit("/", 1)[-1])


def list_log(location: str, storage: Storage) -> LogFiles:
    """Return the files of a table's log; an empty one where there is no log."""
    folder = join(location, LOG_FOLDER)
    found = _Found()
    for file in storage.children(folder):
        match = parse_name(file.location)
        if match and int(match["version"]) <= MOST_VERSION:
            found.add(file, match)
    whole, missing = found.whole_parts(folder)
    return LogFiles(
        folder,
        found.commits,
        {**whole, **found.checkpoints},
        {first: tuple(some) for first, some in found.compactions.items()},
        found.checksums,
        {at: name for at, name in missing.items() if at not in found.checkpoints},
    )


@dataclass
class _Found:
    """Files of a listing as they come."""

    commits: dict[int, FileInfo] = field(default_factory=dict)
    checksums: dict[int, FileInfo] = field(default_factory=dict)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)
    compactions: dict[int, list[CommitFile]] = field(default_factory=dict)
    parts: dict[tuple[int, int], dict[int, FileInfo]] = field(default_factory=dict)

    def add(self, file: FileInfo, match: re.Match[str]) -> None:
        version = int(match["version"])
        if match["commit"]:
            self.commits[version] = file
        elif match["crc"]:
            self.checksums[version] = file
        elif match["part"]:
            self.parts.setdefault((version, int(match["parts"])), {})[int(match["part"])] = file
        elif match["last"]:
            self._add_compaction(version, int(match["last"]), file)
        else:
            self.checkpoints[version] = Checkpoint(version, (file,))

    def _add_compaction(self, first: int, last: int, file: FileInfo) -> None:
        if first < last <= MOST_VERSION:
            self.compactions.setdefault(first, []).append(CommitFile(last, file, first))

    def whole_parts(self, folder: str) -> tuple[dict[int, Checkpoint], dict[int, str]]:
        """Return the complete checkpoints of several parts, and a missing part of each other."""
        whole: dict[int, Checkpoint] = {}
        missing: dict[int, str] = {}
        for (version, count), some in self.parts.items():
            wanted = range(1, min(count, MOST_PARTS) + 1)
            absent = next((part for part in wanted if part not in some), None)
            if absent is None and count:
                whole[version] = Checkpoint(version, tuple(some[part] for part in wanted))
            else:
                name = f"{version:020d}.checkpoint.{absent or 1:010d}.{count:010d}.parquet"
                missing[version] = join(folder, name)
        return whole, {at: name for at, name in missing.items() if at not in whole}
