"""The manifests of a new snapshot: which are kept, which are rewritten, which are merged.

Comes in: the manifest list of the branch's head as a table, and the files to add and to remove.
Goes out: the manifest list of the new snapshot as a table, new manifests written. Invariants
(spec, "Manifests" and "Snapshots"):

- an entry that lives on keeps its snapshot id, both sequence numbers and its first row id;
- a removed file is an entry of status DELETED with the new snapshot's id, once;
- DELETED entries of older snapshots are not carried on.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.manifest_writer import write_manifests
from rowlake.model.files import MANIFESTS, Status, files_schema
from rowlake.model.transform import partition_type
from rowlake.model.values import decode_partitions, encode_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rowlake.iceberg.manifest_writer import ManifestHeader
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

DATA_MANIFEST, DELETE_MANIFEST = 0, 1

SUMMARY_COLUMNS = [
    "content",
    "location",
    "file_format",
    "spec_id",
    "record_count",
    "file_size_in_bytes",
    "content_offset",
    "content_size_in_bytes",
]


@dataclass
class ManifestSet:
    """Builds the manifests of one snapshot; `written` names every manifest that it wrote.

    `header_for(spec_id, content)` gives what a manifest's Avro header says.
    """

    view: TableView
    snapshot_id: int
    storage: Storage
    header_for: Callable[[int, int], ManifestHeader]
    target_size_in_bytes: int
    written: list[str] = field(default_factory=list)

    def new_location(self) -> str:
        """Return a fresh location for a manifest."""
        folder = self.view.properties.get("write.metadata.path") or f"{self.view.location}/metadata"
        return f"{folder.rstrip('/')}/{uuid.uuid4()}-m{len(self.written)}.avro"

    def write(self, entries: pa.Table, spec_id: int, content: int) -> pa.Table:
        """Write entries as one manifest, or several near the target size; return their rows."""

        def next_location() -> str:
            self.written.append(self.new_location())
            return self.written[-1]

        return write_manifests(
            next_location,
            entries,
            self.header_for(spec_id, content),
            self.storage,
            target_size_in_bytes=self.target_size_in_bytes,
        )

    def entries_of(self, manifest: pa.Table) -> pa.Table:
        """Return the live entries of one manifest (a table of one row)."""
        spec_id = manifest["partition_spec_id"][0].as_py()
        found = read_manifests(manifest, self.view, self.storage)
        return found[spec_id] if spec_id in found else self.empty_entries(spec_id)

    def empty_entries(self, spec_id: int) -> pa.Table:
        """Return no entries of a spec."""
        return files_schema(self.partition_type(spec_id)).empty_table()

    def carried_entries(self, manifest: pa.Table) -> pa.Table:
        """Return what of one manifest goes on into this snapshot when manifests are merged.

        Of a manifest that this snapshot wrote, everything; of an older one, what lives.
        """
        if manifest["added_snapshot_id"][0].as_py() == self.snapshot_id:
            found = read_manifests(manifest, self.view, self.storage, live_only=False)
            return found[manifest["partition_spec_id"][0].as_py()]
        entries = self.entries_of(manifest)
        return self.rewritten_entries(entries, _repeat(False, entries.num_rows, pa.bool_()))

    def partition_type(self, spec_id: int) -> pa.StructType:
        """Return the type of the partition struct of a spec."""
        return partition_type(
            self.view.specs[spec_id], self.view.schema, self.view.schemas.values()
        )

    def add(
        self,
        files: pa.Table,
        content: int,
        sequence_number: int | Mapping[str, int] | None = None,
    ) -> pa.Table:
        """Write manifests for new files (`WRITTEN_FILES`), one or more per spec."""
        rows = [MANIFESTS.empty_table()]
        for spec_id in pc.unique(files["spec_id"]).to_pylist():
            of_spec = files.filter(pc.equal(files["spec_id"], spec_id))
            entries = self.added_entries(of_spec, spec_id, sequence_number)
            rows.append(self.write(entries, spec_id, content))
        return pa.concat_tables(rows)

    def added_entries(
        self, files: pa.Table, spec_id: int, sequence_number: int | Mapping[str, int] | None = None
    ) -> pa.Table:
        """Return new files of one spec as ADDED entries.

        Sequence numbers stay null (the snapshot's are inherited), unless the files keep the data
        sequence number of what they replace: one for all, or by location.
        """
        count = files.num_rows
        to = self.partition_type(spec_id)
        encoded = files["partition"].combine_chunks()
        columns: dict[str, Any] = {name: files[name] for name in files.column_names}
        columns["partition"] = decode_partitions(encoded, to)
        columns["status"] = _repeat(int(Status.ADDED), count, pa.int8())
        columns["snapshot_id"] = _repeat(self.snapshot_id, count, pa.int64())
        columns["data_sequence_number"] = _kept_numbers(files, sequence_number)
        columns["file_sequence_number"] = _repeat(None, count, pa.int64())
        layout = files_schema(to)
        return pa.table([columns[name] for name in layout.names], schema=layout)

    def remove(
        self,
        manifests: pa.Table,
        is_removed: Callable[[pa.Table], pa.Array],
        untouched: set[str],
    ) -> tuple[pa.Table, pa.Table]:
        """Rewrite every manifest that holds a removed file; those that hold no other become one.

        `is_removed` marks the rows of a table of entries. `untouched` names manifests that are
        known to hold none of them, and is added to. Returns the manifests of the new snapshot and
        what was removed (`SUMMARY_COLUMNS` + `partition_key`).
        """
        kept, removed = [MANIFESTS.empty_table()], [no_summary_rows()]
        emptied: dict[tuple[int, int], list[pa.Table]] = {}
        for index, location in enumerate(manifests["location"].to_pylist()):
            manifest = manifests.slice(index, 1)
            if location in untouched:
                kept.append(manifest)
                continue
            entries = self.entries_of(manifest)
            mask = is_removed(entries)
            if not pc.any(mask).as_py():
                untouched.add(location)
                kept.append(manifest)
                continue
            removed.append(summary_rows(entries.filter(mask)))
            kind = manifest["partition_spec_id"][0].as_py(), manifest["content"][0].as_py()
            rewritten = self.rewritten_entries(entries, mask)
            if pc.all(mask).as_py():
                emptied.setdefault(kind, []).append(rewritten)
            else:
                kept.append(self.write(rewritten, *kind))
        kept += [self.write(pa.concat_tables(all_of), *kind) for kind, all_of in emptied.items()]
        return pa.concat_tables(kept), pa.concat_tables(removed)

    def rewritten_entries(self, entries: pa.Table, removed: pa.Array) -> pa.Table:
        """Return live entries as EXISTING, the removed ones as DELETED by this snapshot."""
        status = pc.if_else(removed, int(Status.DELETED), int(Status.EXISTING)).cast(pa.int8())
        snapshot_ids = pc.if_else(removed, self.snapshot_id, entries["snapshot_id"])
        changed = _with_column(entries, "status", status)
        return _with_column(changed, "snapshot_id", snapshot_ids)


def _kept_numbers(files: pa.Table, given: int | Mapping[str, int] | None) -> pa.Array:
    if given is None or isinstance(given, int):
        return _repeat(given, files.num_rows, pa.int64())
    return pa.array([given.get(place) for place in files["location"].to_pylist()], pa.int64())


def _with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(name), values)


def _repeat(value: Any, count: int, of: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, of), count)


def no_summary_rows() -> pa.Table:
    """Return an empty table of what a summary counts."""
    layout = files_schema(pa.null())
    fields = [layout.field(name) for name in SUMMARY_COLUMNS]
    return pa.schema([*fields, pa.field("partition_key", pa.string())]).empty_table()


def summary_rows(files: pa.Table) -> pa.Table:
    """Return the columns that a summary counts, with a text that tells partitions apart."""
    partitions = files["partition"].combine_chunks()
    if pa.types.is_struct(partitions.type):  # entries read back; new files have them encoded
        partitions = encode_partitions(partitions)
    keys = [str(value) for value in partitions.to_pylist()]
    return files.select(SUMMARY_COLUMNS).append_column("partition_key", pa.array(keys, pa.string()))


def is_data(manifests: pa.Table) -> pa.Array:
    """Return which manifests of a list are data manifests."""
    return pc.equal(manifests["content"], DATA_MANIFEST)


def removed_by_location(locations: Iterable[str]) -> Callable[[pa.Table], pa.Array]:
    """Return a marker of entries with one of these locations."""
    wanted = pa.array(list(locations), pa.string())
    return lambda entries: pc.is_in(entries["location"], wanted)


def removed_deletes_marker(
    keys: Iterable[tuple[str, int | None]],
    data_locations: Iterable[str],
    older_than_sequence_number: int,
) -> Callable[[pa.Table], pa.Array]:
    """Return a marker of the delete entries that go.

    Those named by key; those that refer to one data file which goes (they would dangle); and
    those older than every data file that stays, which can apply to nothing.
    """
    named = pa.array([_key_text(location, offset) for location, offset in keys], pa.string())
    gone = pa.array(list(data_locations), pa.string())

    def is_removed(entries: pa.Table) -> pa.Array:
        texts = pc.binary_join_element_wise(
            entries["location"],
            pc.fill_null(entries["content_offset"].cast(pa.string()), ""),
            "#",
        )
        by_key = pc.is_in(texts, named)
        dangling = pc.fill_null(pc.is_in(entries["referenced_data_file"], gone), False)
        old = pc.less(entries["data_sequence_number"], older_than_sequence_number)
        return pc.or_(pc.or_(by_key, dangling), pc.fill_null(old, False))

    return is_removed


def _key_text(location: str, offset: int | None) -> str:
    return f"{location}#{'' if offset is None else offset}"
