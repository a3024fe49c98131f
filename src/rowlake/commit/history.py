"""The files that commits since an operation's start added or removed.

Comes in: the commits of `Format.commits_since`. Goes out: tables of files, each with the commit
that did it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from rowlake.model.format import FileAction, LandedCommit
    from rowlake.model.view import SnapshotInfo


@dataclass(frozen=True)
class LandedFiles:
    """The files that one commit added or removed; all of one spec."""

    snapshot: SnapshotInfo
    spec_id: int
    entries: pa.Table


def files_landed(
    commits: Iterable[LandedCommit], action: FileAction, operations: frozenset[str]
) -> Iterator[LandedFiles]:
    """Yield the files of one action; commits of other operations are passed over."""
    for commit in commits:
        if commit.snapshot.operation in operations:
            for spec_id, entries in commit.read(action).items():
                yield LandedFiles(commit.snapshot, spec_id, entries)
