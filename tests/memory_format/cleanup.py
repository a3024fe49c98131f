"""What maintenance asks of tables in memory: what expires, what is named, whose files are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.expiry import Expiry
from rowlake.model.files import Content
from rowlake.model.handle import MAIN
from rowlake.model.properties import whole_number
from rowlake.model.reachable import REACHABLE, LeftBehind, distinct, without
from rowlake.storage.ownership import Neighbours, Ownership, given_folders
from tests.memory_format.files import each_once, locations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rowlake.model.expiry import Asked
    from rowlake.model.handle import Ref, TableHandle
    from rowlake.model.view import SnapshotInfo
    from tests.memory_format.handle import MemoryHandle
    from tests.memory_format.state import Files, MemoryTable, SnapshotFiles

FIVE_DAYS_MS = 5 * 24 * 60 * 60 * 1000
FOR_EVER_MS = 2**63 - 1
PATH_PROPERTIES = ("write.data.path",)


@dataclass(frozen=True)
class MemoryHistory:
    """The files of all snapshots; no file holds the metadata."""

    handle: MemoryHandle

    def metadata_files(self) -> pa.Table:
        return REACHABLE.empty_table()

    def reachable(self, *, since: TableHandle | None = None) -> Iterator[pa.Table]:
        yield _reachable(self.handle.table)

    def files(self, columns: Iterable[str]) -> dict[int, pa.Table]:
        parts: dict[int, list[pa.Table]] = {}
        for files in _live(self.handle.table):
            for spec_id, table in files.items():
                parts.setdefault(spec_id, []).append(table)
        wanted = list(columns)
        found = {spec_id: each_once(pa.concat_tables(some)) for spec_id, some in parts.items()}
        return {spec_id: table.select(wanted) for spec_id, table in found.items()}

    def snapshots_naming(self, wanted: Collection[str]) -> list[int]:
        # Not those that removed them: nothing could make the head forget that it did.
        return [
            snapshot_id
            for snapshot_id, files in self.handle.table.files.items()
            if not (locations(files.data) | locations(files.deletes)).isdisjoint(wanted)
        ]

    def left_behind(self, after: TableHandle) -> LeftBehind:
        left = {one.snapshot_id for one in after.snapshots}
        gone = {key: files for key, files in self.handle.table.files.items() if key not in left}
        found = _reachable(replace(self.handle.table, files=gone))
        others = {key: files for key, files in self.handle.table.files.items() if key in left}
        return LeftBehind(without(found, _reachable(replace(self.handle.table, files=others))))


def _live(table: MemoryTable) -> Iterator[Files]:
    for files in table.files.values():
        yield files.data
        yield files.deletes


def _reachable(table: MemoryTable) -> pa.Table:
    parts = [
        pa.table([some["location"].cast(pa.large_string()), some["content"]], schema=REACHABLE)
        for files in _live(table)
        for some in files.values()
    ]
    return distinct(pa.concat_tables([REACHABLE.empty_table(), *parts]))


def expiry_of(handle: MemoryHandle, asked: Asked) -> Expiry:
    """Return what expires, by the rules of Iceberg's `history.expire.*`."""
    rules = _Rules(handle, asked)
    refs = {name: ref for name, ref in handle.refs.items() if name == MAIN or rules.is_young(ref)}
    for name, ref in refs.items():
        if ref.snapshot_id in asked.snapshot_ids:
            raise InvalidStatementError(
                f"Cannot expire snapshot {ref.snapshot_id} of {handle.name}: {name} points to it."
            )
    kept = rules.kept(refs) - asked.snapshot_ids
    gone = tuple(one.snapshot_id for one in handle.snapshots if one.snapshot_id not in kept)
    found = Expiry(gone, tuple(name for name in handle.refs if name not in refs))
    return _with_metadata(handle.table, found) if asked.clean_metadata else found


@dataclass(frozen=True)
class _Rules:
    handle: MemoryHandle
    asked: Asked

    def _number(self, name: str, default: int) -> int:
        return whole_number(self.handle.properties, f"history.expire.{name}", default)

    def is_young(self, ref: Ref) -> bool:
        snapshot = self.handle.snapshot(ref.snapshot_id)
        most = ref.max_ref_age_ms
        most = self._number("max-ref-age-ms", FOR_EVER_MS) if most is None else most
        return snapshot is not None and self.asked.now_ms - snapshot.timestamp_ms <= most

    @property
    def older_than_ms(self) -> int:
        given = self.asked.older_than_ms
        age = self._number("max-snapshot-age-ms", FIVE_DAYS_MS)
        return self.asked.now_ms - age if given is None else given

    def kept(self, refs: dict[str, Ref]) -> set[int]:
        kept = {ref.snapshot_id for ref in refs.values()}
        known = set(kept)
        for ref in refs.values():
            if not ref.is_tag:
                history = list(self.handle.ancestors(ref.snapshot_id))
                kept |= self._kept_in(ref, history)
                known |= {one.snapshot_id for one in history}
        loose = [one for one in self.handle.snapshots if one.snapshot_id not in known]
        young = {one.snapshot_id for one in loose if one.timestamp_ms >= self.older_than_ms}
        return kept | young

    def _kept_in(self, branch: Ref, history: list[SnapshotInfo]) -> set[int]:
        older_than = self.older_than_ms
        if branch.max_snapshot_age_ms is not None:
            older_than = self.asked.now_ms - branch.max_snapshot_age_ms
        least = branch.min_snapshots_to_keep
        if least is None:
            least = self.asked.retain_last
        if least is None:
            least = self._number("min-snapshots-to-keep", 1)
        kept: set[int] = set()
        for snapshot in history:
            if len(kept) >= least and snapshot.timestamp_ms < older_than:
                break
            kept.add(snapshot.snapshot_id)
        return kept


def _with_metadata(table: MemoryTable, expiry: Expiry) -> Expiry:
    """Add the specs and schemas that nothing uses which is left."""
    kept = [one for one in table.snapshots if one.snapshot_id not in expiry.snapshot_ids]
    files = [table.files[one.snapshot_id] for one in kept]
    specs = {table.default_spec_id, *(key for one in files for key in (*one.data, *one.deletes))}
    schemas = {table.schema_id, *(one.schema_id for one in kept)}
    if any(int(Content.EQUALITY_DELETES) in _contents(one) for one in files):
        schemas |= set(table.schemas)  # one may have the only word on a column that was dropped
    return replace(
        expiry,
        spec_ids=tuple(one for one in table.specs if one not in specs),
        schema_ids=tuple(one for one in table.schemas if one not in schemas),
    )


def _contents(files: SnapshotFiles) -> set[int]:
    return {one for table in files.deletes.values() for one in table["content"].to_pylist()}


def expired(table: MemoryTable, expiry: Expiry) -> MemoryTable:
    """Return a table without what expires."""
    gone = set(expiry.snapshot_ids)
    return replace(
        table,
        snapshots=tuple(one for one in table.snapshots if one.snapshot_id not in gone),
        files={key: files for key, files in table.files.items() if key not in gone},
        log=_log_after(table.log, gone),
        refs={name: ref for name, ref in table.refs.items() if name not in expiry.refs},
        schemas={key: one for key, one in table.schemas.items() if key not in expiry.schema_ids},
        specs={key: one for key, one in table.specs.items() if key not in expiry.spec_ids},
    )


def _log_after(log: tuple[tuple[int, int], ...], gone: set[int]) -> tuple[tuple[int, int], ...]:
    """Return the log from the last gap on: before it, nobody knows what was current when."""
    gaps = [number for number, (_, snapshot_id) in enumerate(log) if snapshot_id in gone]
    return log[gaps[-1] + 1 :] if gaps else log


def ownership_of(handle: MemoryHandle, also_below: Sequence[str] | str | None) -> Ownership:
    """Return the folder of a table, which is its own, and those that the caller allows."""

    def neighbours() -> Neighbours:
        others = {
            key: one for key, one in handle.catalog.tables.items() if key != handle.identifier
        }
        return Neighbours(tuple((".".join(key), _claimed(one)) for key, one in others.items()))

    folders = (handle.location, *given_folders(also_below))
    return Ownership(folders, (), _claimed(handle.table), neighbours)


def _claimed(table: MemoryTable) -> tuple[str, ...]:
    named = [table.properties[key] for key in PATH_PROPERTIES if key in table.properties]
    return (table.location, *named)
