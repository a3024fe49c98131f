"""The isolation checks of a change against what landed since it read the table.

Comes in: a `Change` with its `Requirements`, and the table at its newest head. Goes out: None where
the change may land, else the `Breach` that forbids it. The rules are those of Iceberg's Java
library (`validateAddedDataFiles`, `validateNoNewDeletes…`, `validateDataFilesExist`): compactions
(`replace`) add no rows, so they never break "no new data".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.history import files_landed
from rowlake.model.format import FileAction
from rowlake.prune.bind import bind
from rowlake.prune.match import deletes_may_match, may_match

if TYPE_CHECKING:
    from rowlake.commit.history import LandedFiles
    from rowlake.model.change import Change, Requirements
    from rowlake.model.format import LandedCommit
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo, TableView

ADDS_DATA = frozenset({"append", "overwrite"})
ADDS_DELETES = frozenset({"overwrite", "delete"})
REMOVES_DATA = frozenset({"overwrite", "replace", "delete"})
REPLACE = "replace"


@dataclass(frozen=True)
class Breach:
    """Why a change may not land: what another snapshot did to which files.

    `same_rows`: the table's rows are what they were, only in other files.
    """

    cause: str
    snapshot_id: int | None = None
    files: tuple[str, ...] = ()
    same_rows: bool = False


@dataclass(frozen=True)
class _Since:
    """What the checks look at: the commits that landed, and what must hold."""

    view: TableView
    commits: list[LandedCommit]
    needs: Requirements
    every: list[LandedCommit]  # with those that were checked before


class MergesDeletes(Protocol):
    """A change whose deletes can be merged with those of others."""

    @property
    def mergeable(self) -> frozenset[str]:
        """The data files whose new deletes are not looked at here: `rebase` does it row by row."""


def find_breach(
    handle: TableHandle,
    change: Change,
    *,
    merging: MergesDeletes | None = None,
    checked: int | None = None,
) -> Breach | None:
    """Return the first requirement of the change that does not hold at the head, None if all do.

    Snapshots up to `checked`, if that is one of the branch, were found to be no breach before.
    """
    needs = change.requirements
    by_filter = needs.no_new_data or needs.no_new_deletes
    by_file = needs.no_new_deletes_for or needs.files_exist or needs.no_rows_lost_from
    # Deletes that were found to apply to nothing may apply to something in another history.
    by_history = needs.no_data_older_than is not None or change.removed_deletes
    if not (by_filter or by_file or by_history):
        return None
    since = handle.format.commits_since(handle, change.branch, needs.starting_snapshot_id)
    if since is None:
        return Breach(
            f"snapshot {needs.starting_snapshot_id}, which it read, is no longer in the history of "
            f"{change.branch} (rolled back or expired)"
        )
    every, since = since, _after(since, checked)
    if not since:
        return None
    if merging is not None:
        needs = replace(needs, no_new_deletes_for=needs.no_new_deletes_for - merging.mergeable)
    view = handle.view(ref=change.branch)
    checks = (
        _new_data,
        _new_deletes,
        _removed_data,
        _new_deletes_for_files,
        _files_gone,
        _rows_lost,
        _older_data,
    )
    seen = _Since(view, since, needs, every)
    return next((found for check in checks if (found := check(seen))), None)


def _after(since: list[LandedCommit], checked: int | None) -> list[LandedCommit]:
    ids = [commit.snapshot.snapshot_id for commit in since]
    return since[ids.index(checked) + 1 :] if checked in ids else since


def _matching(landed: LandedFiles, since: _Since, action: FileAction) -> pa.Table:
    view, needs = since.view, since.needs
    if needs.conflict_detection_filter is None:
        return landed.entries
    bound = bind(needs.conflict_detection_filter, view.schema)
    # The metrics of a delete file are of deleted keys or of paths, so pruning reads them otherwise.
    prune = deletes_may_match if action is FileAction.ADDED_DELETES else may_match
    mask = prune(landed.entries, bound, view.specs[landed.spec_id], view.schema)
    return landed.entries.filter(mask)


def _first_matching(
    since: _Since,
    *,
    action: FileAction,
    operations: frozenset[str],
    what: str,
) -> Breach | None:
    for landed in files_landed(since.commits, action, operations):
        found = _matching(landed, since, action)
        if found.num_rows:
            return _breach(landed.snapshot, what, found["location"].to_pylist())
    return None


def _breach(snapshot: SnapshotInfo, what: str, files: list[str]) -> Breach:
    cause = f"snapshot {snapshot.snapshot_id} ({snapshot.operation}) {what}"
    return Breach(cause, snapshot.snapshot_id, tuple(files))


def _new_data(since: _Since) -> Breach | None:
    if not since.needs.no_new_data:
        return None
    action = FileAction.ADDED_DATA
    found = [
        (landed.snapshot, files)
        for landed in files_landed(since.commits, action, ADDS_DATA)
        if (files := _matching(landed, since, action)).num_rows
    ]
    check = since.needs.row_check
    if not found or (check is not None and not check.are_in(since.view, _sizes(found))):
        return None
    snapshot, files = found[0]
    what = "added data files that may hold rows of its filter"
    return _breach(snapshot, what, files["location"].to_pylist())


def _sizes(found: list[tuple[SnapshotInfo, pa.Table]]) -> pa.Table:
    return pa.concat_tables(
        [files.select(["location", "file_size_in_bytes"]) for _, files in found]
    )


def _new_deletes(since: _Since) -> Breach | None:
    if not since.needs.no_new_deletes:
        return None
    return _first_matching(
        since,
        action=FileAction.ADDED_DELETES,
        operations=ADDS_DELETES,
        what="added delete files that may apply to rows of its filter",
    )


def _removed_data(since: _Since) -> Breach | None:
    if not since.needs.no_new_deletes:
        return None
    return _first_matching(
        since,
        action=FileAction.REMOVED_DATA,
        operations=frozenset({"overwrite", "delete"}),
        what="removed data files that may hold rows of its filter",
    )


def _new_deletes_for_files(since: _Since) -> Breach | None:
    if not since.needs.no_new_deletes_for:
        return None
    wanted = pa.array(sorted(since.needs.no_new_deletes_for), pa.string())
    for landed in files_landed(since.commits, FileAction.ADDED_DELETES, ADDS_DELETES):
        found = landed.entries.filter(_may_be_of(landed.entries, wanted, FileAction.ADDED_DELETES))
        if found.num_rows:
            what = "added deletes for data files that it replaces"
            return _breach(landed.snapshot, what, found["location"].to_pylist())
    return None


def _files_gone(since: _Since) -> Breach | None:
    if not since.needs.files_exist:
        return None
    wanted = pa.array(sorted(since.needs.files_exist), pa.string())
    replaced: Breach | None = None
    for landed in files_landed(since.commits, FileAction.REMOVED_DATA, REMOVES_DATA):
        found = landed.entries.filter(pc.is_in(landed.entries["location"], wanted))
        if not found.num_rows:
            continue
        what = f"removed {found.num_rows} data files that it read"
        breach = _breach(landed.snapshot, what, found["location"].to_pylist())
        if landed.snapshot.operation != REPLACE:
            return breach
        replaced = replaced or replace(breach, same_rows=True)
    return replaced


def _rows_lost(since: _Since) -> Breach | None:
    if not since.needs.no_rows_lost_from:
        return None
    # Where a compaction moved the rows to is not known, so that any later delete may be of them.
    wanted, moved = pa.array(sorted(since.needs.no_rows_lost_from), pa.string()), False
    for commit in since.every:
        is_replace = commit.snapshot.operation == REPLACE
        for action in (FileAction.REMOVED_DATA, FileAction.ADDED_DELETES):
            if is_replace and (moved or action is FileAction.ADDED_DELETES):
                continue
            for landed in files_landed([commit], action, REMOVES_DATA):
                lost = _matching(landed, since, action)
                lost = lost if moved else lost.filter(_may_be_of(lost, wanted, action))
                if not lost.num_rows:
                    continue
                if not is_replace:
                    what = "deleted rows of data files that it matched"
                    return _breach(commit.snapshot, what, lost["location"].to_pylist())
                moved = True
    return None


def _may_be_of(files: pa.Table, wanted: pa.Array, action: FileAction) -> pa.ChunkedArray:
    if action is FileAction.REMOVED_DATA:
        return pc.is_in(files["location"], wanted)
    referenced = files["referenced_data_file"]
    # A delete file that names no single data file may apply to any of them.
    return pc.or_(pc.is_null(referenced), pc.is_in(referenced, wanted))


def _older_data(since: _Since) -> Breach | None:
    if since.needs.no_data_older_than is None:
        return None
    for landed in files_landed(since.commits, FileAction.ADDED_DATA, ADDS_DATA | REMOVES_DATA):
        older = pc.less(landed.entries["data_sequence_number"], since.needs.no_data_older_than)
        found = landed.entries.filter(pc.fill_null(older, True))
        if found.num_rows:
            what = "added data files that deletes which it removes apply to"
            return _breach(landed.snapshot, what, found["location"].to_pylist())
    return None


def were_replaced(handle: TableHandle, change: Change, locations: tuple[str, ...]) -> bool:
    """Return whether files went by `replace` commits alone since the change read the table."""
    start = change.requirements.starting_snapshot_id
    since = handle.format.commits_since(handle, change.branch, start) or []
    replaced: set[str] = set()
    for action in (FileAction.REMOVED_DATA, FileAction.REMOVED_DELETES):
        for landed in files_landed(since, action, frozenset({REPLACE})):
            replaced.update(landed.entries["location"].to_pylist())
    return replaced.issuperset(locations)
