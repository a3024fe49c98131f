"""The state of a table at one version: its log, reconciled (PROTOCOL.md, "Action Reconciliation").

The newest action of a kind wins: of protocol and metadata altogether, of files by location and
deletion vector. Files are reconciled as columns. Everything is read when it is first asked for;
states of a few versions are kept per process, since a log never changes.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.actions import FILES, Actions
from rowlake.delta.checkpoints import CheckpointState, read_checkpoint, read_other_actions
from rowlake.delta.commits import Commit, read_commit
from rowlake.delta.protocol import Protocol, validate_readable
from rowlake.errors import CorruptTableError, RowlakeError

if TYPE_CHECKING:
    from rowlake.delta.log_files import Segment
    from rowlake.delta.metadata import Metadata
    from rowlake.storage.files import Storage

# How many states are kept, and of how many files together; the newest one is always kept.
KEPT_STATES, KEPT_FILES = 8, 4_000_000
READING_THREADS, ENOUGH_FOR_THREADS = 8, 4
_NO_VERSIONS = pa.array([], pa.int64())


@dataclass(frozen=True)
class LogState:
    """A version of the table in the folder `table`."""

    table: str
    segment: Segment
    storage: Storage

    @property
    def version(self) -> int:
        """The version."""
        return self.segment.version

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """The commits after the checkpoint."""
        read = partial(read_commit, table=self.table, storage=self.storage)
        files = self.segment.commits
        if len(files) < ENOUGH_FOR_THREADS:
            return tuple(map(read, files))
        with ThreadPoolExecutor(READING_THREADS) as pool:
            return tuple(pool.map(read, files))

    @cached_property
    def actions(self) -> Actions:
        """The actions that are not of files, reconciled."""
        found = self._checkpoint_actions
        for commit in self.commits:
            found = commit.other.after(found)
        return found

    @cached_property
    def _checkpoint_actions(self) -> Actions:
        checkpoint = self.segment.checkpoint
        if checkpoint is None:
            return Actions()
        return read_other_actions(checkpoint, self.table, self.storage)

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol; raises UnsupportedFeatureError where it asks for what is not known."""
        found = self.actions.protocol
        if found is None:
            raise self._lacks("protocol")
        validate_readable(found, self.table)
        return found

    @cached_property
    def metadata(self) -> Metadata:
        """The table's definition, of a table that can be read."""
        _ = self.protocol
        if self.actions.metadata is None:
            raise self._lacks("metaData")
        return self.actions.metadata

    def _lacks(self, action: str) -> CorruptTableError:
        return CorruptTableError(
            self.segment.folder, f"version {self.version} of the log has no {action} action"
        )

    @cached_property
    def checkpoint(self) -> CheckpointState | None:
        """The live files of the checkpoint."""
        checkpoint = self.segment.checkpoint
        if checkpoint is None:
            return None
        known = _states.checkpoint_like(self)
        return known or read_checkpoint(
            checkpoint, self._checkpoint_actions, self.table, self.storage
        )

    @property
    def loaded_files(self) -> int:
        """How many files are in memory."""
        read = self.__dict__.get("files") or self.__dict__.get("checkpoint")
        return 0 if read is None else int(getattr(read, "files", read).num_rows)

    @cached_property
    def files(self) -> pa.Table:
        """The live files, as a table of `FILES`."""
        recent = last_actions([commit.files for commit in self.commits])
        added = recent.filter(recent["is_add"])
        if self.checkpoint is None:
            found = added
        else:
            old = self.checkpoint.files
            if recent.num_rows:
                replaced = pc.is_in(file_keys(old), value_set=file_keys(recent))
                old = old.filter(pc.invert(replaced))
            found = pa.concat_tables([old, added])
        if pc.count_distinct(found["location"]).as_py() < found.num_rows:
            found = self._each_once(found)
        self._validate_checksum(found)
        return found

    def _each_once(self, files: pa.Table) -> pa.Table:
        """Return files that are listed twice once; with different vectors they are refused."""
        once = last_actions([files])
        counts = once.group_by("location").aggregate([([], "count_all")])
        repeated = counts.filter(pc.greater(counts["count_all"], 1))
        if repeated.num_rows:
            raise CorruptTableError(
                self.segment.folder,
                f"version {self.version} has {repeated['location'][0].as_py()} more than once, "
                "with different deletion vectors",
                advice="Restore the log from a backup, or read an earlier version.",
            )
        return once

    @cached_property
    def added_at(self) -> pa.Table:
        """Where files were added by the commits after the checkpoint, and by which version."""
        parts = [pa.table({"location": pa.array([], pa.string()), "version": _NO_VERSIONS})]
        for file, commit in zip(self.segment.commits, self.commits, strict=True):
            if not file.is_compacted:
                added = commit.files.filter(commit.files["is_add"])["location"]
                versions = pa.repeat(pa.scalar(commit.version, pa.int64()), len(added))
                parts.append(pa.table({"location": added, "version": versions}))
        every = pa.concat_tables(parts)
        last = every.group_by("location").aggregate([("version", "max")])
        return last.rename_columns(["location", "version"])

    def _validate_checksum(self, files: pa.Table) -> None:
        """Compare the files with the version's checksum file, where there is one to read."""
        crc = self.segment.crc
        expected = None if crc is None else _checksum(crc.location, self.storage)
        if crc is None or expected is None:
            return
        facts = {
            "numFiles": files.num_rows,
            "tableSizeBytes": pc.sum(files["size"]).as_py() or 0,
        }
        for name, value in facts.items():
            stated = expected.get(name)
            if isinstance(stated, int) and stated != value:
                raise CorruptTableError(
                    self.segment.folder,
                    f"version {self.version} has {name} {value:,}, its checksum file "
                    f"{crc.location} says {stated:,}",
                    advice="Restore the log from a backup, or read an earlier version.",
                )


@dataclass(frozen=True)
class PendingState(LogState):
    """A version that is not in the log yet: the newest one after a change of its definition.

    `segment` is that of the newest version, of no commit for a table that is to be created.
    """

    changed: Actions
    keeps_files: bool = True

    @cached_property
    def actions(self) -> Actions:
        """The actions that are not of files, those of the change on top."""
        if not self.segment.commits and self.segment.checkpoint is None:
            return self.changed
        return self.changed.after(state_of(self.table, self.segment, self.storage).actions)

    @cached_property
    def files(self) -> pa.Table:
        """The live files: none where the change removes all."""
        if not self.keeps_files:
            return FILES.empty_table()
        return state_of(self.table, self.segment, self.storage).files


def last_actions(tables: list[pa.Table]) -> pa.Table:
    """Return the last action of each file, of tables of `FILES` in the order of their commits."""
    every = pa.concat_tables([FILES.empty_table(), *tables])
    if not every.num_rows:
        return every
    numbered = pa.table({"key": file_keys(every), "row": pa.array(np.arange(every.num_rows))})
    kept = numbered.group_by("key").aggregate([("row", "max")])["row_max"]
    return every.take(kept.take(pc.sort_indices(kept)))


def file_keys(files: pa.Table) -> pa.ChunkedArray:
    """Return what identifies a logical file: its location and its deletion vector."""
    if files["storage_type"].null_count == files.num_rows:
        return files["location"]
    parts = [files["storage_type"], files["vector_path"], files["vector_offset"].cast(pa.string())]
    vector = pc.binary_join_element_wise(*parts, "@", null_handling="replace", null_replacement="")
    keyed = pc.binary_join_element_wise(files["location"], vector, "\0")
    return pc.if_else(pc.is_null(files["storage_type"]), files["location"], keyed)


def _checksum(location: str, storage: Storage) -> dict[str, Any] | None:
    """Return the content of a checksum file; a damaged one says nothing about the table."""
    try:
        found = json.loads(storage.read(location))
    except (RowlakeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _States:
    """States of a few versions; the least recently used goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, LogState] = OrderedDict()
        self._lock = threading.Lock()

    def state(self, table: str, segment: Segment, storage: Storage) -> LogState:
        """Return the state of a version, the one that is kept where there is one."""
        key = (table, segment, tuple(sorted(storage.properties.items())))
        with self._lock:
            found = self._kept.pop(key, None) or LogState(table, segment, storage)
            self._kept[key] = found
            while len(self._kept) > 1 and self._are_too_many():
                self._kept.popitem(last=False)
        return found

    def _are_too_many(self) -> bool:
        files = sum(one.loaded_files for one in self._kept.values())
        return len(self._kept) > KEPT_STATES or files > KEPT_FILES

    def checkpoint_like(self, state: LogState) -> CheckpointState | None:
        """Return the checkpoint of another version that began with the same one."""
        with self._lock:
            for one in self._kept.values():
                same = (
                    one.table == state.table and one.storage.properties == state.storage.properties
                )
                if same and one.segment.checkpoint == state.segment.checkpoint:
                    found: CheckpointState | None = one.__dict__.get("checkpoint")
                    if found is not None:
                        return found
        return None

    def clear(self) -> None:
        """Forget all states."""
        with self._lock:
            self._kept.clear()


_states = _States()
state_of = _states.state
forget_states = _states.clear
