"""rewrite_table_path: a copy of a table's metadata in which all paths have another prefix.

Comes in: a table, the prefix of its files and the one that they shall have. Goes out: rewritten
metadata files, manifest lists, manifests and delete files in a staging folder, and a list of what
to copy where (`source,target` lines); the table stays as it is, and copying is up to the user. With
a start version only what came after it is staged and listed.
"""

from __future__ import annotations

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import (
    InvalidStatementError,
    RowlakeError,
    UnsupportedFeatureError,
    shown,
)
from rowlake.iceberg.manifest_entries import one_array
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import partition_types
from rowlake.iceberg.manifest_rewrite import UnwrittenStorage
from rowlake.iceberg.metadata_files import read_metadata
from rowlake.iceberg.path_rewrite import (
    REWRITTEN_DELETES,
    RawManifest,
    moved_metadata,
    read_raw_manifest,
    stage_manifest,
    stage_manifest_list,
)
from rowlake.iceberg.prefixes import Prefixes
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.iceberg.handles import iceberg_handle
from rowlake.maintain.iceberg.path_kernel import PathTask, new_name, path_kernel
from rowlake.model.files import MANIFESTS, Content, Status
from rowlake.model.report import Report
from rowlake.plan.delete_index import FACTS, delete_file
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.engine.spark import Engine
    from rowlake.model.files import DeleteFile
    from rowlake.model.handle import TableHandle

VERB = "rewrite_table_path"
NOT_APPLICABLE = "N/A"
FILE_LIST = "file-list"
_FILES_PER_TASK = 32


@dataclass(frozen=True)
class RewriteTablePathReport(Report):
    """What was staged; `files` are the (source, target) pairs of the file list."""

    always_shown: ClassVar[tuple[str, ...]] = ("latest_version", "file_list_location")

    latest_version: str
    file_list_location: str
    rewritten_manifest_file_paths_count: int = 0
    rewritten_delete_file_paths_count: int = 0
    staging_location: str = ""
    dry_run: bool = False
    files: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    def rows(self) -> list[tuple[str, str]]:
        """Return what is worth showing: of the pairs only how many there are."""
        kept = [(name, value) for name, value in super().rows() if name != "files"]
        return [*kept, ("files to copy", f"{len(self.files):,}")]


@dataclass(frozen=True)
class Versions:
    """Metadata files to rewrite, newest first; those of the end and of the start by themselves."""

    end: IcebergHandle
    start: IcebergHandle | None
    locations: tuple[str, ...]


def rewrite_table_path(
    handle: TableHandle,
    engine: Engine,
    *,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
    dry_run: bool = False,
) -> tuple[TableHandle, RewriteTablePathReport]:
    """Stage the table's metadata with `source_prefix` replaced by `target_prefix`.

    Versions are names (or locations) of metadata files; all by default. A failure removes what was
    staged. A dry run lists the files and stages nothing.
    """
    own = iceberg_handle(handle, VERB)
    check_outside_transaction(handle, VERB)
    started = time.perf_counter()
    prefixes = _prefixes(own, source_prefix, target_prefix, staging_location)
    versions = _versions(own, start_version, end_version)
    staging = _Staging(own, engine, prefixes, versions, dry_run=dry_run)
    try:
        staging.run()
        listed = _file_list(staging) if create_file_list else NOT_APPLICABLE
    except BaseException:
        if not dry_run:
            staging.storage.delete(staging.written)
        raise
    return handle, RewriteTablePathReport(
        latest_version=_file_name(versions.locations[0]),
        file_list_location=listed,
        rewritten_manifest_file_paths_count=staging.manifests,
        rewritten_delete_file_paths_count=staging.delete_files,
        staging_location=f"{prefixes.staging}/",
        dry_run=dry_run,
        files=tuple(sorted(staging.pairs)),
        seconds=time.perf_counter() - started,
    )


def _prefixes(
    handle: IcebergHandle, source: str, target: str, staging_location: str | None
) -> Prefixes:
    for name, value in (("source_prefix", source), ("target_prefix", target)):
        if not isinstance(value, str) or not value.rstrip("/"):
            raise InvalidStatementError(f"{name} of rewrite_table_path must not be empty.")
    if source.rstrip("/") == target.rstrip("/"):
        raise InvalidStatementError(
            f"Cannot rewrite the paths of {handle.name}: source_prefix and target_prefix are the "
            f"same, {source}."
        )
    staging = staging_location
    if staging is None:
        view = handle.view()
        folder = view.properties.get("write.metadata.path") or f"{view.location}/metadata"
        staging = f"{folder.rstrip('/')}/copy-table-staging-{uuid.uuid4()}"
    if not staging.rstrip("/"):
        raise InvalidStatementError("staging_location of rewrite_table_path must not be empty.")
    return Prefixes(source.rstrip("/"), target.rstrip("/"), staging.rstrip("/"))


def _versions(handle: IcebergHandle, start: str | None, end: str | None) -> Versions:
    logged = [entry.metadata_file for entry in handle.metadata.metadata_log]
    known = [*logged, str(handle.metadata_location)]
    last = known[-1] if end is None else _version(handle, end, known)
    first = None if start is None else _version(handle, start, known)
    until = known.index(last)
    begin = 0 if first is None else known.index(first) + 1
    if begin > until:
        raise InvalidStatementError(
            f"Cannot rewrite the paths of {handle.name}: version {start} is not before "
            f"{end or last}."
        )
    locations = tuple(reversed(known[begin : until + 1]))
    return Versions(_at(handle, last), None if first is None else _at(handle, first), locations)


def _version(handle: IcebergHandle, wanted: str, known: list[str]) -> str:
    found = [one for one in known if wanted in (one, _file_name(one))]
    if not found:
        raise InvalidStatementError(
            f"Table {handle.name} has no version {wanted} in its metadata log. It has: "
            f"{shown(_file_name(one) for one in reversed(known))}."
        )
    return found[-1]


def _at(handle: IcebergHandle, location: str) -> IcebergHandle:
    if location == handle.metadata_location:
        return handle
    metadata = read_metadata(location, Storage(handle.io_properties))
    return replace(handle, metadata=metadata, metadata_location=location)


def _file_name(location: str) -> str:
    return location.rsplit("/", 1)[-1]


def _file_list(staging: _Staging) -> str:
    location = f"{staging.prefixes.staging}/{FILE_LIST}"
    lines = "".join(f"{source},{target}\n" for source, target in sorted(staging.pairs))
    staging.written.append(location)
    staging.sink.write(location, lines.encode())
    return location


@dataclass
class _Staging:
    """One rewriting: what it stages, and the pairs of what to copy."""

    handle: IcebergHandle
    engine: Engine
    prefixes: Prefixes
    versions: Versions
    dry_run: bool
    pairs: set[tuple[str, str]] = field(default_factory=set)
    written: list[str] = field(default_factory=list)
    manifests: int = 0
    delete_files: int = 0

    def __post_init__(self) -> None:
        self.storage = Storage(self.handle.io_properties)
        self.sink = UnwrittenStorage(self.storage.properties) if self.dry_run else self.storage
        before = self.versions.start.snapshots if self.versions.start else ()
        self._old = {snapshot.snapshot_id for snapshot in before}

    def run(self) -> None:
        """Stage everything: delete files, manifests, manifest lists, metadata files."""
        documents = {place: self._document(place) for place in self.versions.locations}
        lists = self._lists()
        listed = [read_manifest_list(place, self.storage) for place in lists]
        raw = self._read(_distinct(pa.concat_tables([MANIFESTS.empty_table(), *listed])))
        chosen = [one for one in raw if self._is_new(one.row["added_snapshot_id"])]
        rewritten = self._rewritten_deletes(chosen)
        self.manifests = len(chosen)
        lengths = {one.location: self._staged_length(one, rewritten) for one in raw}
        for place in lists:
            self._pair_staged(place)
            stage_manifest_list(place, self.prefixes, lengths, self.sink)
        for place, data in documents.items():
            self._pair_staged(place)
            self.sink.write(self.prefixes.staged(place), data)

    def _is_new(self, snapshot_id: int) -> bool:
        return snapshot_id not in self._old

    def _pair_staged(self, location: str) -> None:
        """List a file that is staged; it is removed again when something fails."""
        self.written.append(self.prefixes.staged(location))
        self.pairs.add((self.prefixes.staged(location), self.prefixes.moved(location)))

    def _document(self, location: str) -> bytes:
        """Return a rewritten metadata file, and list the statistics files that it names."""
        metadata = _at(self.handle, location).metadata
        for named in (*metadata.statistics, *metadata.partition_statistics):
            place = named.statistics_path
            self.pairs.add((place, self.prefixes.moved(place)))
        return moved_metadata(self.storage.read(location), self.prefixes)

    def _lists(self) -> list[str]:
        """Return the manifest lists of the snapshots that came after the start."""
        found = []
        for snapshot in self.versions.end.snapshots:
            if not self._is_new(snapshot.snapshot_id):
                continue
            if not snapshot.manifest_list:
                raise UnsupportedFeatureError(
                    f"Cannot rewrite the paths of {self.handle.name}: snapshot "
                    f"{snapshot.snapshot_id} has no manifest list (an early table of version 1). "
                    "Expire it first."
                )
            found.append(snapshot.manifest_list)
        return found

    def _read(self, manifests: pa.Table) -> list[RawManifest]:
        types = partition_types(manifests, self.versions.end.view())

        def read(row: dict[str, Any]) -> RawManifest:
            return read_raw_manifest(row, types[row["partition_spec_id"]], self.storage)

        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            return list(pool.map(read, manifests.to_pylist()))

    def _rewritten_deletes(self, manifests: list[RawManifest]) -> pa.Table:
        """Rewrite the delete files that name data files; return what became of them."""
        found: dict[tuple[str, int | None], DeleteFile] = {}
        for one in manifests:
            live = one.entries.filter(_live_positions(one.entries))
            for facts in live.select(FACTS).to_pylist():
                delete = delete_file(facts)
                found[delete.key] = delete
        self.delete_files = len(found)
        files = list({delete.location: delete for delete in found.values()}.values())
        if self.dry_run or not files:
            return pa.Table.from_pylist([self._planned(one) for one in files], REWRITTEN_DELETES)
        self.written += [self._staged_delete(one) for one in files]
        tasks = [
            PathTask(
                tuple(files[at : at + _FILES_PER_TASK]), self.prefixes, self.storage.properties
            )
            for at in range(0, len(files), _FILES_PER_TASK)
        ]
        return self.engine.run(
            path_kernel,
            tasks,
            REWRITTEN_DELETES,
            size_in_bytes=sum(one.file_size_in_bytes for one in files),
            label=f"rewriting delete files of {self.handle.name}",
        )

    def _staged_delete(self, delete: DeleteFile) -> str:
        return self.prefixes.staged(new_name(delete.location, delete.file_format))

    def _planned(self, delete: DeleteFile) -> dict[str, Any]:
        return {
            "location": delete.location,
            "new_location": self.prefixes.moved(new_name(delete.location, delete.file_format)),
            "file_format": "PUFFIN" if delete.is_vector else "PARQUET",
            "file_size_in_bytes": delete.file_size_in_bytes,
        }

    def _staged_length(self, manifest: RawManifest, rewritten: pa.Table) -> int:
        """Stage a manifest, list its files, and return its length.

        One that is older than the start was copied before: its length is what it has there.
        """
        if not self._is_new(manifest.row["added_snapshot_id"]):
            moved = self.prefixes.moved(manifest.location)
            try:
                with self.storage.open_input(moved) as stream:
                    return int(stream.size())
            except RowlakeError:  # not there (yet): as long as it would become
                nowhere = UnwrittenStorage(self.storage.properties)
                return stage_manifest(manifest, self.prefixes, rewritten, nowhere)
        self._pair_staged(manifest.location)
        self._pair_files(manifest.entries, rewritten)
        return stage_manifest(manifest, self.prefixes, rewritten, self.sink)

    def _pair_files(self, entries: pa.Table, rewritten: pa.Table) -> None:
        """List the live files of a manifest that came after the start."""
        is_old = pc.is_in(entries["snapshot_id"], pa.array(sorted(self._old), pa.int64()))
        live = pc.not_equal(entries["status"], int(Status.DELETED))
        places = one_array(entries.filter(pc.and_(live, pc.invert(is_old)))["location"]).unique()
        copied = places.filter(pc.invert(pc.is_in(places, one_array(rewritten["location"]))))
        moved = self.prefixes.moved_column(copied)
        self.pairs.update(zip(copied.to_pylist(), moved.to_pylist(), strict=True))
        staged = rewritten.filter(pc.is_in(rewritten["location"], places))
        targets = staged["new_location"]
        staged_at = pc.replace_substring(
            targets, f"{self.prefixes.target}/", f"{self.prefixes.staging}/", max_replacements=1
        )
        self.pairs.update(zip(staged_at.to_pylist(), targets.to_pylist(), strict=True))


def _distinct(manifests: pa.Table) -> pa.Table:
    """Return each manifest of several lists once."""
    positions = pa.array(range(manifests.num_rows), pa.int64())
    numbered = pa.table({"location": manifests["location"], "at": positions})
    first = numbered.group_by("location", use_threads=False).aggregate([("at", "min")])
    return manifests.take(first["at_min"].combine_chunks())


def _live_positions(entries: pa.Table) -> pa.ChunkedArray:
    live = pc.not_equal(entries["status"], int(Status.DELETED))
    return pc.and_(live, pc.equal(entries["content"], int(Content.POSITION_DELETES)))
