"""When versions were committed.

With in-commit timestamps a commit says it itself; otherwise it is when its file was modified, moved
on by a millisecond where clocks went back (PROTOCOL.md, "In-Commit Timestamps").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rowlake.delta.commits import Commit, read_commit
from rowlake.delta.log_files import CommitFile
from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.history_rows import LATEST_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.log_files import LogFiles
    from rowlake.delta.metadata import Metadata
    from rowlake.storage.files import Storage

ENABLED = "delta.enableInCommitTimestamps"
SINCE = "delta.inCommitTimestampEnablementVersion"
SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


@dataclass(frozen=True)
class CommitTimes:
    """The times of a log's versions; commits are read only where they hold their time."""

    log: LogFiles
    metadata: Metadata
    table: str
    storage: Storage

    @cached_property
    def versions(self) -> list[int]:
        """The versions that can be read, in ascending order."""
        known = {*self.log.commits, *self.log.checkpoints}
        return sorted(one for one in known if one >= self.log.oldest)

    def has(self, version: int) -> bool:
        """Return whether a version can be read."""
        known = version in self.log.commits or version in self.log.checkpoints
        return known and version >= self.log.oldest

    @cached_property
    def _in_commits_since(self) -> int | None:
        """The first version that says its own time; None where none does."""
        if not self.metadata.is_set(ENABLED):
            return None
        since = self.metadata.configuration.get(SINCE, "0")
        return int(since) if since.isdecimal() else 0

    @cached_property
    def _by_files(self) -> Mapping[int, int]:
        """The times of files, each later than the one before."""
        found: dict[int, int] = {}
        last = 0
        for version in self.versions:
            file = self.log.commits.get(version) or self.log.checkpoints[version].files[0]
            last = max(file.modified_ms, last + 1)
            found[version] = last
        return found

    def of(self, version: int) -> int:
        """Return when a version was committed, in ms since 1970."""
        since = self._in_commits_since
        if since is None or version < since or version not in self.log.commits:
            return self._by_files[version]
        return self._stated(self.read(version))

    def read(self, version: int) -> Commit:
        """Return the commit of a version."""
        file = self.log.commits.get(version)
        if file is None:
            raise CorruptTableError(self.log.location(version), "the commit is missing")
        return read_commit(CommitFile(version, file, version), self.table, self.storage)

    def of_commit(self, commit: Commit) -> int:
        """Return when a commit was made that is read already."""
        since = self._in_commits_since
        if since is None or commit.version < since:
            return self._by_files[commit.version]
        return self._stated(commit)

    def _stated(self, commit: Commit) -> int:
        found = (commit.other.commit_info or {}).get("inCommitTimestamp")
        if not isinstance(found, int) or not 0 <= found <= LATEST_MS:
            cause = "its commitInfo has no inCommitTimestamp, which the table asks for"
            raise CorruptTableError(self.log.location(commit.version), cause)
        return found

    def version_as_of(self, as_of_ms: int, name: str) -> int:
        """Return the last version that was committed at a time or before; times only rise."""
        low, high = 0, len(self.versions)
        while low < high:
            middle = (low + high) // 2
            if self.of(self.versions[middle]) <= as_of_ms:
                low = middle + 1
            else:
                high = middle
        if not low:
            raise InvalidStatementError(
                f"Table {name} has no version as old as {as_of_ms} ms since 1970."
            )
        return self.versions[low - 1]
