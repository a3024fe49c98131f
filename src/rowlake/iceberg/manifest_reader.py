"""Manifests to tables of files, with the values that entries inherit filled in.

Comes in: rows of a manifest list (`MANIFESTS`). Goes out: `files_schema` tables, one per spec.
Fields are found by id, whatever the writer called them. A manifest that does not hold what the
manifest list says raises CorruptTableError. What was parsed is cached: manifests never change.

Nothing here needs PyIceberg, so that Spark tasks can read manifests too (`manifest_tasks`).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_file import decode_file, is_local
from rowlake.errors import CorruptTableError
from rowlake.iceberg.cache import ManifestKey, default_cache
from rowlake.iceberg.manifest_entries import REQUIRED, Entries, Manifest
from rowlake.iceberg.manifest_schema import FIELD_IDS
from rowlake.model.files import Status, files_schema
from rowlake.model.schema import children, field_id
from rowlake.model.transform import partition_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowlake.iceberg.cache import ManifestCache
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

# Decoding keeps cores busy; reading from afar mostly waits.
REMOTE_THREADS = 16
# Fewer bytes than these on a local disk are decoded in Python, one manifest after the other
# whatever the number of threads; to start those would take longer.
NEARBY_BYTES = 256 * 1024


def read_manifests(
    manifests: pa.Table,
    view: TableView,
    storage: Storage,
    *,
    columns: Iterable[str] | None = None,
    live_only: bool = True,
) -> dict[int, pa.Table]:
    """Return the entries of manifests by spec id, in the order of the manifests.

    `columns` selects columns of `files_schema` (in its order; `status` is always there): maps of
    metrics that are not asked for are not decoded. `live_only` leaves DELETED entries out.
    """
    types = partition_types(manifests, view)
    wanted = None if columns is None else tuple(columns)
    return read_by_spec(manifests, types, storage, columns=wanted, live_only=live_only)


def partition_types(manifests: pa.Table, view: TableView) -> dict[int, pa.StructType]:
    """Return the types of partitions by spec id, for the specs that manifests are of."""
    types = {}
    for spec_id in pc.unique(manifests["partition_spec_id"]).to_pylist():
        if spec_id not in view.specs:
            of_spec = manifests.filter(pc.equal(manifests["partition_spec_id"], spec_id))
            raise CorruptTableError(
                of_spec["location"][0].as_py(), f"{view.name} has no partition spec {spec_id}"
            )
        types[spec_id] = partition_type(view.specs[spec_id], view.schema, view.schemas.values())
    return types


def read_by_spec(
    manifests: pa.Table,
    partition_types: Mapping[int, pa.StructType],
    storage: Storage,
    *,
    columns: Sequence[str] | None = None,
    live_only: bool = True,
    cache: ManifestCache | None = None,
) -> dict[int, pa.Table]:
    """`read_manifests` for callers that have the specs' partition types instead of a view."""
    found = cache or default_cache()
    rows = manifest_rows(manifests)

    def read(manifest: Manifest) -> pa.Table:
        of = partition_types[manifest.partition_spec_id]
        entries = _cached(manifest, of, storage, columns, found)
        return _live(entries) if live_only else entries

    threads = _threads(storage, rows)
    if threads == 1:
        tables = [read(manifest) for manifest in rows]
    else:
        with ThreadPoolExecutor(threads) as pool:
            tables = list(pool.map(read, rows))
    by_spec: dict[int, list[pa.Table]] = {}
    for manifest, table in zip(rows, tables, strict=True):
        by_spec.setdefault(manifest.partition_spec_id, []).append(table)
    return {spec_id: pa.concat_tables(parts) for spec_id, parts in by_spec.items()}


def _threads(storage: Storage, rows: Sequence[Manifest]) -> int:
    if len(rows) <= 1:
        return 1
    if not is_local(storage.resolve(rows[0].location)[0]):
        return min(REMOTE_THREADS, len(rows))
    is_small = sum(row.manifest_length for row in rows) < NEARBY_BYTES
    return 1 if is_small else min(max(2, os.cpu_count() or 2), len(rows))


def manifest_rows(manifests: pa.Table) -> list[Manifest]:
    """Return rows of a manifest list as objects (there is one per manifest, not per file)."""
    names = list(Manifest.__dataclass_fields__)
    return [Manifest(**row) for row in manifests.select(names).to_pylist()]


def _live(entries: pa.Table) -> pa.Table:
    # Looked at whatever the manifest list counts: it costs little, and a wrong count brings no
    # removed file back.
    live = pc.not_equal(entries["status"], int(Status.DELETED))
    return entries if pc.all(live).as_py() else entries.filter(live)


def _cached(
    manifest: Manifest,
    partition: pa.StructType,
    storage: Storage,
    columns: Sequence[str] | None,
    cache: ManifestCache,
) -> pa.Table:
    layout = selected(files_schema(partition), columns)
    key = manifest_key(manifest, partition)
    if manifest.sequence_number is None:
        return read_manifest(manifest, partition, storage, layout)
    found = cache.find(key, layout)
    if found is not None:
        return found
    table = read_manifest(manifest, partition, storage, layout)
    cache.put(key, table, on_disk=not is_local(storage.resolve(manifest.location)[0]))
    return table


def manifest_key(manifest: Manifest, partition: pa.StructType) -> ManifestKey:
    """Return what the parsed manifest is cached by."""
    return ManifestKey(
        manifest.location,
        manifest.manifest_length,
        manifest.sequence_number,
        manifest.first_row_id,
        str([(field_id(part), part.name, str(part.type)) for part in children(partition)]),
    )


def selected(layout: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the wanted columns of a layout, in its order; `status` is always there."""
    if columns is None:
        return layout
    wanted = {*columns, "status"}
    return pa.schema([part for part in layout if part.name in wanted])


def read_manifest(
    manifest: Manifest, partition: pa.StructType, storage: Storage, layout: pa.Schema
) -> pa.Table:
    """Read one manifest, without caches: all entries, inherited values filled in."""
    needed = {*layout.names, *REQUIRED, "content"}
    keep = {FIELD_IDS[name] for name in needed if name in FIELD_IDS}
    raw, header = decode_file(
        manifest.location, storage, keep=keep, length=manifest.manifest_length
    )
    expected = manifest.expected_entries
    if expected is not None and raw.num_rows < expected:
        raise CorruptTableError(
            manifest.location,
            f"it has {raw.num_rows} entries where the manifest list says {expected}",
        )
    entries = Entries(raw, header, manifest)
    return entries.table(layout, partition)
