"""Read manifests by threads of the driver, or by tasks of an engine where there are many.

Tasks only read manifests that the driver has not cached, and only where a session is in use
already; what they find is cached, so that the next plan needs neither.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.cache import ManifestCache, default_cache
from rowlake.iceberg.manifest_reader import (
    manifest_key,
    manifest_rows,
    partition_types,
    read_by_spec,
    read_manifests,
    selected,
)
from rowlake.iceberg.manifest_tasks import (
    entries_by_place,
    manifest_tasks,
    read_manifest_task,
    task_schema,
)
from rowlake.model.files import files_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowlake.iceberg.cache import ManifestKey
    from rowlake.model.format import TaskRunner
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

MANY_MANIFESTS = 256
MANY_BYTES = 64 * 1024 * 1024
TASKS_PER_SLOT = 2
# One table shall not push all others out of the cache.
LARGEST_SHARE = 0.5


def read_live_entries(
    manifests: pa.Table,
    view: TableView,
    storage: Storage,
    *,
    columns: Iterable[str] | None = None,
    runner: TaskRunner | None = None,
) -> dict[int, pa.Table]:
    """Return the live entries of manifests by spec id; `runner` may run tasks for them."""
    wanted = None if columns is None else tuple(columns)
    if runner is None or not (runner.has_session and _is_much(manifests)):
        return read_manifests(manifests, view, storage, columns=wanted)
    types = partition_types(manifests, view)
    layouts = {spec_id: selected(files_schema(of), wanted) for spec_id, of in types.items()}
    keys, known = [], []
    for row in manifest_rows(manifests):
        keys.append(manifest_key(row, types[row.partition_spec_id]))
        known.append(default_cache().has(keys[-1], layouts[row.partition_spec_id]))
    missing = manifests.filter(pc.invert(pa.array(known)))
    if not _is_much(missing):
        return read_manifests(manifests, view, storage, columns=wanted)
    found = _by_tasks(runner, missing, view, types, wanted)
    return read_by_spec(manifests, types, storage, columns=wanted, cache=_with(found, keys))


def _is_much(manifests: pa.Table) -> bool:
    size = pc.sum(manifests["manifest_length"]).as_py() or 0
    return manifests.num_rows > MANY_MANIFESTS or size > MANY_BYTES


def _by_tasks(
    runner: TaskRunner,
    manifests: pa.Table,
    view: TableView,
    types: Mapping[int, pa.StructType],
    columns: tuple[str, ...] | None,
) -> dict[ManifestKey, pa.Table]:
    tasks = manifest_tasks(
        manifests,
        types,
        view.io_properties,
        columns=columns,
        tasks=runner.slots * TASKS_PER_SLOT,
    )
    label = f"reading manifests of {view.name}"
    found = runner.run(read_manifest_task, tasks, task_schema(columns), label=label)
    rows = manifest_rows(manifests)
    by_place = entries_by_place(found, [row.partition_spec_id for row in rows], types)
    return {
        manifest_key(rows[place], types[rows[place].partition_spec_id]): entries
        for place, entries in by_place
    }


def _with(found: Mapping[ManifestKey, pa.Table], keys: Iterable[ManifestKey]) -> ManifestCache:
    """Return a cache for one plan: what tasks found, and what the driver had."""
    lasting = default_cache()
    size = sum(table.nbytes for table in found.values())
    for_now = ManifestCache(memory_bytes=sys.maxsize, folder=lasting.folder)
    for key, table in found.items():
        for_now.put(key, table, on_disk=False)
        if size <= lasting.memory_bytes * LARGEST_SHARE:
            lasting.put(key, table, on_disk=False)
    for key in keys:
        held = None if key in found else lasting.held(key)
        if held is not None:
            for_now.put(key, held, on_disk=False)
    return for_now
