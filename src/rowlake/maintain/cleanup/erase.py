"""erase: rows leave the table and its whole history, with a proof.

Comes in: an exact predicate. Goes out: a table of which no reachable file holds such a row.

1. `erase_search` finds every file, of any snapshot, that holds one, deleted or not.
2. On each branch the rows are deleted by rewriting their files; files of which the rows were only
   deleted by position are rewritten too, and equality deletes that hold the keys are folded in.
3. The snapshots that still reach a file found in step 1 expire, and no other: their files go.
4. The search runs again: what it finds is the proof, and where others wrote such rows meanwhile the
   work begins again.

A tag cannot be rewritten: where one holds such rows it has to be dropped, and only the user may say
so. Manifests keep the bounds of removed files, which may be such values: they are rewritten, and
snapshots that list old ones expire too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rowlake.commit.metadata import commit_metadata
from rowlake.errors import CommitConflictError, InvalidStatementError, shown
from rowlake.maintain.cleanup.erase_search import files_holding
from rowlake.maintain.cleanup.expire import ExpireSnapshotsReport, expire_snapshots
from rowlake.maintain.compact.rewrite import rewrite_files
from rowlake.maintain.deletes.dangling import remove_dangling_deletes
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.iceberg.manifests import forget_removed_files
from rowlake.model.metadata_change import DropRef
from rowlake.model.report import Report
from rowlake.plan.files import plan_files
from rowlake.rowlevel.delete import Selection, delete
from rowlake.storage.files import Storage
from rowlake.storage.ownership import NAMED
from rowlake.verbs.write import WriteOptions, view_for_write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.maintain.cleanup.erase_search import Held
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate

VERB = "erase"
MOST_ROUNDS = 3
_BY_REWRITING = "copy-on-write"


@dataclass(frozen=True)
class EraseReport(Report):
    """What went, and the proof: `files_holding` is how many reachable files hold such a row now.

    `left_foreign` are files of expired snapshots outside of the table's own folders: they are left
    alone, and may hold such rows. `files_searched` are all data and equality delete files that the
    remaining snapshots reach; of them `files_read` had to be opened, metadata told of the rest.
    """

    always_shown: ClassVar[tuple[str, ...]] = ("rows_deleted", "files_searched", "files_holding")

    rows_deleted: int = 0
    files_searched: int = 0
    files_read: int = 0
    files_holding: int = 0
    files_rewritten: int = 0
    files_deleted: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    dropped_tags: tuple[str, ...] = ()
    held_before: tuple[str, ...] = ()
    left_foreign: tuple[str, ...] = ()
    left_foreign_count: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False

    @property
    def is_proven(self) -> bool:
        """True where no reachable file holds such a row."""
        return not self.files_holding


def erase(
    handle: TableHandle,
    engine: Engine,
    predicate: Predicate,
    *,
    drop_tags: bool = False,
    also_below: Sequence[str] | str | None = (),
    dry_run: bool = False,
) -> tuple[TableHandle, EraseReport]:
    """Remove the rows of a predicate from all that the table's metadata reaches."""
    check_outside_transaction(handle, VERB)
    handle.format.ownership(handle, also_below)  # refuses before anything changes
    run = _Run(handle, engine, predicate, also_below)
    held = files_holding(run.handle, engine, predicate)
    tags = run.tags_reaching(held)
    if tags and not drop_tags and not dry_run:
        raise InvalidStatementError(
            f"Cannot erase from {handle.name}: tags {shown(tags)} keep snapshots that hold such "
            "rows, and tags cannot be rewritten. Drop them, or call erase with drop_tags=True."
        )
    if dry_run:
        return handle, run.foreseen(held, tags)
    report = EraseReport(held_before=tuple(sorted(held.locations)), dropped_tags=tuple(tags))
    for _ in range(MOST_ROUNDS):
        if not held.locations:
            break
        report = run.round(held, tags, report)
        held, tags = files_holding(run.handle, engine, predicate), []
    if held.locations:
        raise CommitConflictError(VERB, handle.name, "others went on writing such rows")
    return run.handle, replace(
        report,
        files_searched=held.files_considered,
        files_read=held.files_read,
        snapshot_id=run.handle.current_snapshot_id,
    )


class _Run:
    """One erasure; `handle` moves on with each commit."""

    def __init__(
        self,
        handle: TableHandle,
        engine: Engine,
        predicate: Predicate,
        also_below: Sequence[str] | str | None,
    ) -> None:
        self.handle, self.engine, self.predicate = handle, engine, predicate
        self.also_below = also_below

    def round(self, held: Held, tags: list[str], report: EraseReport) -> EraseReport:
        """Rewrite, expire."""
        deleted = rewritten = 0
        for branch in self._branches():
            deleted += self._delete(branch)
            rewritten += self._rewrite(branch, held)
            if self.handle.can.manifests:
                self.handle = forget_removed_files(self.handle, branch, VERB)
        for tag in tags:
            self._drop(tag)
        reaching = self._snapshots_reaching(held.locations)
        expired = ExpireSnapshotsReport()
        if reaching:
            # Nothing is older than the beginning of time: only what is named expires.
            self.handle, expired = expire_snapshots(
                self.handle,
                self.engine,
                older_than_ms=0,
                snapshot_ids=reaching,
                also_below=self.also_below,
            )
        return replace(
            report,
            rows_deleted=report.rows_deleted + deleted,
            files_rewritten=report.files_rewritten + rewritten,
            files_deleted=report.files_deleted + len(held.locations & set(expired.deleted_files)),
            left_foreign=(*report.left_foreign, *expired.left_foreign)[:NAMED],
            left_foreign_count=report.left_foreign_count + expired.left_foreign_count,
            expired_snapshot_ids=(*report.expired_snapshot_ids, *reaching),
        )

    def foreseen(self, held: Held, tags: list[str]) -> EraseReport:
        """Return what there is to do."""
        return EraseReport(
            files_searched=held.files_considered,
            files_read=held.files_read,
            files_holding=len(held.locations),
            held_before=tuple(sorted(held.locations)),
            expired_snapshot_ids=tuple(self._snapshots_reaching(held.locations)),
            dropped_tags=tuple(tags),
            snapshot_id=self.handle.current_snapshot_id,
            dry_run=True,
        )

    def tags_reaching(self, held: Held) -> list[str]:
        """Return the tags whose snapshots reach a file that holds such rows."""
        reaching = set(self._snapshots_reaching(held.locations))
        refs = self.handle.refs.items()
        return sorted(name for name, ref in refs if ref.is_tag and ref.snapshot_id in reaching)

    def _branches(self) -> list[str]:
        refs = self.handle.refs.items()
        return sorted(name for name, ref in refs if not ref.is_tag)

    def _delete(self, branch: str) -> int:
        options = WriteOptions(branch=branch, mode=_BY_REWRITING)
        selection = Selection(self.predicate)
        self.handle, result = delete(self.handle, self.engine, lambda _: selection, options)
        return result.rows_deleted

    def _rewrite(self, branch: str, held: Held) -> int:
        """Rewrite what of the branch holds such rows though deleted, and fold such deletes in."""
        view = view_for_write(self.handle, branch)
        plan = plan_files(
            view,
            None,
            Storage(view.io_properties),
            whole_files=True,
            runner=self.engine,
        )
        wanted: set[str] = set()
        for spec_id, table in plan.data.items():
            locations, applied = table["location"].to_pylist(), plan.applied[spec_id]
            wanted |= {at for at in locations if at in held.data_files}
            for row, location in enumerate(locations):
                deletes = (
                    plan.deletes.delete_files(applied.rows_of(row)) if held.delete_files else ()
                )
                if any(each.location in held.delete_files for each in deletes):
                    wanted.add(location)
        if wanted:
            self.handle = rewrite_files(self.handle, self.engine, frozenset(wanted), branch)
        if held.delete_files:
            self.handle, _ = remove_dangling_deletes(self.handle, self.engine, branch)
        return len(wanted)

    def _drop(self, tag: str) -> None:
        self.handle = commit_metadata(self.handle, f"drop {tag}", DropRef(tag, if_exists=True))

    def _snapshots_reaching(self, locations: frozenset[str]) -> list[int]:
        """Return the snapshots whose metadata names one of some files, as live or as removed."""
        return self.handle.format.file_history(self.handle).snapshots_naming(locations)
