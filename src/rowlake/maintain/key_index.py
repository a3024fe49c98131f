"""The key index of a table: create it, fill in what is missing, drop it.

Comes in: a table and the columns of its key. Goes out: the property that makes every write index
its data files, and an index file beside each data file of the head. Other engines know nothing of
it: what they write has no index until the next row-level operation by key, or `optimize`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.key_hash import family_of
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.maintain.guard import check_outside_transaction
from rowlake.model.files import Content
from rowlake.model.key_index import KEYS_PROPERTY, index_location, key_names
from rowlake.model.predicate import TRUE
from rowlake.model.report import Report
from rowlake.plan.files import plan_files
from rowlake.plan.key_lookup import names_of
from rowlake.plan.tasks import whole_files
from rowlake.scan.key_index import has_rows_indexed
from rowlake.storage.files import Storage
from rowlake.storage.places import are_below
from rowlake.verbs.alter import set_properties, unset_properties
from rowlake.verbs.key_index import build_indexes, own_folders
from rowlake.write.key_index import index_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.task import FileTask
    from rowlake.model.view import TableView
    from rowlake.write.key_index import IndexKeys


@dataclass(frozen=True)
class KeyIndexReport(Report):
    """What was indexed: files that have an index now, and those too small to be worth one."""

    always_shown: ClassVar[tuple[str, ...]] = ("keys", "files_indexed")

    keys: tuple[str, ...] = ()
    files_indexed: int = 0
    files_present: int = 0
    files_small: int = 0
    files_removed: int = 0
    failed_files: tuple[str, ...] = ()
    seconds: float = 0.0


def create_index(
    handle: TableHandle, engine: Engine, keys: Sequence[str]
) -> tuple[TableHandle, KeyIndexReport]:
    """Index a table by some columns, its existing files included; it replaces another index."""
    names = _checked(handle.view(), keys)
    if key_names(handle.properties) != names:
        handle = set_properties(handle, {KEYS_PROPERTY: ",".join(names)})
    return fill_index(handle, engine)


def fill_index(handle: TableHandle, engine: Engine) -> tuple[TableHandle, KeyIndexReport]:
    """Write the indexes that data files of the head lack."""
    started, view = time.perf_counter(), handle.view()
    keys = index_keys(view)
    if keys is None:
        return handle, KeyIndexReport()
    missing, small, count = missing_indexes(view, engine, keys)
    built = build_indexes(handle, engine, missing, keys)
    return handle, KeyIndexReport(
        keys.names,
        files_indexed=built.num_rows,
        files_present=count - small - len(missing),
        files_small=small,
        seconds=time.perf_counter() - started,
    )


def missing_indexes(
    view: TableView, engine: Engine, keys: IndexKeys
) -> tuple[list[FileTask], int, int]:
    """Return the data files that lack an index, how many are too small for one, and all."""
    storage = Storage(view.io_properties)
    plan = plan_files(view, TRUE, storage, runner=engine)
    missing: list[FileTask] = []
    small = 0
    for spec_id, table in plan.data.items():
        for name, file in zip(names_of(table), whole_files(plan, spec_id), strict=True):
            if not keys.is_for(name.record_count):
                small += 1
            elif not has_rows_indexed(*name, keys, storage):
                missing.append(file)
    return missing, small, plan.file_count


def drop_index(handle: TableHandle, engine: Engine) -> tuple[TableHandle, KeyIndexReport]:
    """Drop the index of a table, and delete its files beside data files of all snapshots."""
    check_outside_transaction(handle, "drop_index")
    started, names = time.perf_counter(), key_names(handle.properties)
    if not names:
        raise InvalidStatementError(f"Cannot drop the index of {handle.name}: it has none.")
    handle = unset_properties(handle, [KEYS_PROPERTY])
    own_places = own_folders(handle.view())
    removed, failed = 0, list[str]()
    for locations in _data_files(handle, engine):
        own = locations.filter(pa.array(are_below(locations, own_places)))
        indexes = [index_location(place) for place in own.to_pylist()]
        there = [place for place in indexes if handle.storage.exists(place)]
        left = handle.storage.delete(there)
        failed += left
        removed += len(there) - len(left)
    return handle, KeyIndexReport(
        names,
        files_removed=removed,
        failed_files=tuple(failed),
        seconds=time.perf_counter() - started,
    )


def _data_files(handle: TableHandle, engine: Engine) -> Iterator[pa.ChunkedArray]:
    """Yield the data files of all snapshots; of the head alone where VACUUM removes the others."""
    if not handle.can.snapshot_expiry:
        plan = plan_files(handle.view(), TRUE, handle.storage, runner=engine)
        yield from (table["location"] for table in plan.data.values())
        return
    history = handle.format.file_history(handle, runner=engine)
    for files in history.files(("location", "content")).values():
        yield files["location"].filter(pc.equal(files["content"], int(Content.DATA)))


def _checked(view: TableView, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of an index under their own names."""
    given = [keys] if isinstance(keys, str) else list(keys)
    if not given:
        raise InvalidStatementError(f"Cannot index {view.name}: name at least one column.")
    names = []
    for name in given:
        field = view.schema.find((name,), case_sensitive=False) if isinstance(name, str) else None
        if field is None:
            raise InvalidStatementError(
                f"Cannot index {view.name} by {name}: it has no such column (columns: "
                f"{', '.join(view.schema.arrow.names)})."
            )
        if family_of(field.type) is None or "," in field.name:
            raise UnsupportedFeatureError(
                f"Cannot index {view.name} by {field.name}: keys of an index are numbers, dates, "
                f"times, text or bytes, and their names have no comma; it is {field.type}."
            )
        names.append(field.name)
    if len(set(names)) < len(names):
        raise InvalidStatementError(f"Cannot index {view.name}: a column is named twice.")
    return tuple(names)
