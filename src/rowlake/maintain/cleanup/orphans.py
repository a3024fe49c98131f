"""remove_orphan_files: files below a table that no metadata of it names.

Order is what makes it safe: the storage is listed first and the newest metadata read after, so
that a file that was committed while the listing ran is known; before each batch of deletions the
metadata is looked at again, and what it names by then stays. Metadata that cannot be read whole
ends the work with nothing removed. Only folders that belong to the table, or that the caller names,
are looked into, and nothing goes that a symbolic link leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.engine.progress import reporting
from rowlake.errors import CommitConflictError, InvalidStatementError
from rowlake.maintain.cleanup.identity import equality
from rowlake.maintain.cleanup.links import link_targets
from rowlake.maintain.cleanup.orphan_candidates import Sieve, foreign_among, newly_known, sifted
from rowlake.maintain.cleanup.orphan_places import given_place, own_places, paths_of
from rowlake.maintain.cleanup.orphan_search import (
    Search,
    age_limit,
    checked_mode,
    file_list,
    search,
)
from rowlake.maintain.guard import GC_ENABLED, check_outside_transaction, may_delete_files
from rowlake.model.report import Report
from rowlake.storage.ownership import NAMED
from rowlake.storage.places import are_below_without_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle

VERB = "remove_orphan_files"
# Files of one batch; before each the metadata is looked at.
BATCH = 5_000
# As many locations are in the report of a run that streams its results.
STREAMED = 20_000


@dataclass(frozen=True)
class RemoveOrphanFilesReport(Report):
    """What was found and removed; with `dry_run` what would be.

    `failures` could not be deleted; `skipped_folders` were not looked into, with the reason.
    `left_foreign` are the first of `left_foreign_count` symbolic links, and of files that are
    reached only through one: they are left alone.
    """

    always_shown: ClassVar[tuple[str, ...]] = ("orphan_files_count", "dry_run")

    orphan_file_location: tuple[str, ...] = field(default=(), repr=False)
    orphan_files_count: int = 0
    size_in_bytes: int = 0
    deleted_files_count: int = 0
    snapshot_id: int | None = None
    dry_run: bool = True
    skipped_folders: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    left_foreign: tuple[str, ...] = ()
    left_foreign_count: int = 0


@dataclass(frozen=True)
class Found:
    """Orphans of a table as of one metadata, with what it takes to look again."""

    handle: TableHandle
    sieve: Sieve
    skipped: tuple[str, ...]
    foreign: tuple[str, ...] = ()

    @property
    def locations(self) -> pa.ChunkedArray:
        """The orphans, sorted."""
        return self.sieve.files["location"]

    @property
    def size_in_bytes(self) -> int:
        """Their size, as far as it is known."""
        return int(pc.sum(self.sieve.files["size_in_bytes"]).as_py() or 0)


def remove_orphan_files(
    handle: TableHandle,
    engine: Engine,
    *,
    older_than: Any = None,
    location: str | None = None,
    dry_run: bool = True,
    max_concurrent_deletes: int | None = None,
    file_list_view: pa.Table | None = None,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str = "ERROR",
    prefix_listing: bool = False,
    stream_results: bool = False,
    force: bool = False,
    also_below: Sequence[str] | str | None = (),
) -> tuple[TableHandle, RemoveOrphanFilesReport]:
    """Find the files below a table that its metadata does not name, and remove them.

    `older_than` defaults to three days ago. `location` defaults to the table's own and to those
    that its properties name, where they are its own or below `also_below`. `file_list_view` has
    file_path and last_modified, and is looked at instead of a listing. Raises InvalidStatementError
    for arguments, for a table that must keep its files, and where it cannot be told whose a file
    is; CorruptTableError where the metadata is damaged. Files are removed in the last step only.
    """
    check_outside_transaction(handle, VERB)
    _check_deletes(max_concurrent_deletes)
    equal = equality(equal_schemes, equal_authorities)
    owned = handle.format.ownership(handle, also_below)
    wanted = Search(
        older_than_ms=age_limit(older_than, force=force),
        where=own_places(handle, equal, owned)
        if location is None
        else given_place(handle, location, equal, owned),
        equal=equal,
        mismatch_mode=checked_mode(prefix_mismatch_mode),
        is_flat=prefix_listing,
        file_list=None if file_list_view is None else file_list(file_list_view),
        force=force,
    )
    found = find_orphans(handle, engine, wanted)
    if dry_run:
        return found.handle, _report(found, streamed=stream_results)
    removed, left = remove_found(found, engine, threads=max_concurrent_deletes)
    report = _report(removed, streamed=stream_results, left=left, dry_run=False)
    return removed.handle, report


def _check_deletes(threads: int | None) -> None:
    if threads is not None and (not isinstance(threads, int) or threads <= 0):
        raise InvalidStatementError(
            f"max_concurrent_deletes should have value > 0, value: {threads}"
        )


def check_gc(handle: TableHandle) -> None:
    """Check that files of the table may be removed: they may belong to another table too."""
    if not may_delete_files(handle):
        raise InvalidStatementError(
            f"Cannot remove orphan files of {handle.name}: {GC_ENABLED} is false, since removing "
            f"files may corrupt other tables. Set the property first if they are this table's."
        )


def find_orphans(handle: TableHandle, engine: Engine, wanted: Search) -> Found:
    """List, then read the metadata, and return what it does not name. Removes nothing."""
    check_gc(handle)
    with reporting("listing files", engine.progress) as reporter:
        candidates = search(handle, wanted, reporter)
    newest = _refreshed(handle)
    check_gc(newest)
    foreign = foreign_among(newest, candidates, wanted)
    targets = link_targets(candidates.links, wanted.where.places)
    folders = (*foreign, *wanted.where.protected, *paths_of(targets, wanted.equal))
    with reporting("comparing with metadata", engine.progress):
        sieve = sifted(newest, engine, candidates.files, wanted, folders)
    named = (f"{folder}: another table's" for folder in foreign)
    found = Found(newest, sieve, (*wanted.where.skipped, *named), candidates.links)
    return _without_linked(found)


def _without_linked(found: Found) -> Found:
    """Return the orphans that are where they seem to be, with no link on the way."""
    places = found.sieve.wanted.where.places
    is_straight = are_below_without_links(found.locations, places)
    if is_straight.all():
        return found
    linked = found.locations.filter(pa.array(~is_straight)).to_pylist()
    foreign = (*found.foreign, *linked)
    return replace(found, sieve=found.sieve.where(is_straight), foreign=foreign)


def remove_found(
    found: Found, engine: Engine, *, threads: int | None = None
) -> tuple[Found, list[str]]:
    """Remove orphans, batch by batch; return what was still one, and what could not be removed.

    What came to be named by the metadata in the meantime stays.
    """
    removed: list[pa.Table] = []
    left: list[str] = []
    rest, done = found, 0
    total = found.sieve.files.num_rows
    with reporting("removing orphan files", engine.progress) as reporter:
        while rest.sieve.files.num_rows:
            rest = _without_linked(_looked_at_again(rest, engine))
            batch = rest.sieve.files.slice(0, BATCH)
            left += rest.handle.storage.delete(batch["location"].to_pylist(), threads=threads)
            removed.append(batch)
            rest = replace(rest, sieve=rest.sieve.after(BATCH))
            done += batch.num_rows
            reporter.update(done, total)
    files = pa.concat_tables([found.sieve.files.slice(0, 0), *removed])
    return replace(rest, sieve=found.sieve.of(files)), left


def _looked_at_again(found: Found, engine: Engine) -> Found:
    newest = _refreshed(found.handle)
    if newest.version == found.handle.version:
        return found
    check_gc(newest)
    sieve = newly_known(found.sieve, found.handle, newest, engine)
    return replace(found, handle=newest, sieve=sieve)


def _refreshed(handle: TableHandle) -> TableHandle:
    newest = handle.format.refresh(handle)
    if newest.uuid != handle.uuid:
        raise CommitConflictError(
            VERB, handle.name, "another table was created in its place meanwhile"
        )
    return newest


def _report(
    found: Found, *, streamed: bool, left: list[str] | None = None, dry_run: bool = True
) -> RemoveOrphanFilesReport:
    files = found.locations
    failures = tuple(left or ())
    return RemoveOrphanFilesReport(
        orphan_file_location=tuple((files.slice(0, STREAMED) if streamed else files).to_pylist()),
        orphan_files_count=len(files),
        size_in_bytes=found.size_in_bytes,
        deleted_files_count=0 if dry_run else len(files) - len(failures),
        snapshot_id=found.handle.current_snapshot_id,
        dry_run=dry_run,
        skipped_folders=found.skipped,
        failures=failures,
        left_foreign=found.foreign[:NAMED],
        left_foreign_count=len(found.foreign),
    )
