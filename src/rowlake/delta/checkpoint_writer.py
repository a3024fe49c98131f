"""Checkpoints of a version: classic, and v2 with sidecars (PROTOCOL.md, "Checkpoints").

Comes in: a state. Goes out: the files of a checkpoint of it, and `_last_checkpoint`. Files are
written by columns, a batch at a time, so that a million adds take no more memory than their
checkpoint. A checkpoint holds what the version is made of: protocol, metaData, live adds, removes
that VACUUM may still need, transactions and domains.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.delta.checkpoint_rows import OTHERS, REMOVE, V2_OTHERS, FileRows, file_rows, other_rows
from rowlake.delta.checkpoints import STATS_ROWS, read_removes
from rowlake.delta.durations import duration_ms
from rowlake.delta.last_checkpoint import write_last_checkpoint
from rowlake.delta.live_files import file_batches
from rowlake.delta.log_files import LOG_FOLDER, SIDECAR_FOLDER
from rowlake.delta.metadata import metadata_action
from rowlake.delta.protocol import protocol_action
from rowlake.delta.schema import columns_of
from rowlake.delta.state import last_actions
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rowlake.delta.state import LogState

POLICY, V2_FEATURE = "delta.checkpointPolicy", "v2Checkpoint"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
SIDECAR_ROWS = 2 * STATS_ROWS
# Columns whose texts repeat; of others a dictionary is only in the way.
_REPEATING = [
    "add.partitionValues.key_value.key",
    "add.partitionValues.key_value.value",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "add.clusteringProvider",
]


@dataclass(frozen=True)
class _Written:
    """A file that was written, and how many actions it holds."""

    name: str
    size_in_bytes: int
    actions: int


def write_checkpoint(state: LogState, now_ms: int) -> None:
    """Write a checkpoint of a version, in the form that the table asks for, and the hint to it."""
    columns = columns_of(state.metadata, state.segment.folder)
    writer = _Writer(state, FileRows(state, columns), now_ms)
    fields = writer.write_v2() if is_v2(state) else writer.write_classic()
    write_last_checkpoint(state.table, fields, state.storage)


def is_v2(state: LogState) -> bool:
    """Return whether checkpoints of a table are to be v2 ones."""
    policy = state.metadata.configuration.get(POLICY, "classic").lower()
    return policy == "v2" and V2_FEATURE in state.protocol.writer_features


@dataclass(frozen=True)
class _Writer:
    state: LogState
    rows: FileRows
    now_ms: int

    @property
    def _folder(self) -> str:
        return join(self.state.table, LOG_FOLDER)

    def write_classic(self) -> dict[str, Any]:
        """Write one file with everything."""
        layout = self._layout()
        name = f"{self.state.version:020d}.checkpoint.parquet"
        batches = chain([other_rows(self._others(), layout)], self._file_rows(layout))
        written = self._write(join(self._folder, name), layout, batches)
        return self._hint(written.actions, written.size_in_bytes)

    def write_v2(self) -> dict[str, Any]:
        """Write sidecars with the file actions, then a file that names them."""
        layout = pa.schema([pa.field("add", self.rows.add_type), pa.field("remove", REMOVE)])
        sidecars = [
            self._write(join(self._folder, SIDECAR_FOLDER, f"{uuid.uuid4()}.parquet"), layout, some)
            for some in _grouped(self._file_rows(layout), SIDECAR_ROWS)
        ]
        actions = self._others() + self._v2_actions(sidecars)
        top = self._layout(V2_OTHERS)
        name = f"{self.state.version:020d}.checkpoint.{uuid.uuid4()}.parquet"
        written = self._write(join(self._folder, name), top, [other_rows(actions, top)])
        size = sum(one.size_in_bytes for one in sidecars) + written.size_in_bytes
        hint = self._hint(sum(one.actions for one in sidecars) + written.actions, size)
        described = {
            "path": name,
            "sizeInBytes": written.size_in_bytes,
            "modificationTime": self.now_ms,
        }
        return {**hint, "v2Checkpoint": described}

    def _layout(self, more: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
        """Return the columns of a checkpoint; Delta on Spark wants those of files in every one."""
        kinds = {"add": self.rows.add_type, "remove": REMOVE, **OTHERS, **(more or {})}
        return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])

    def _v2_actions(self, sidecars: list[_Written]) -> list[tuple[str, Mapping[str, Any]]]:
        tags = {
            "sidecarNumActions": str(sum(one.actions for one in sidecars)),
            "sidecarSizeInBytes": str(sum(one.size_in_bytes for one in sidecars)),
            "numOfAddFiles": str(self.state.files.num_rows),
        }
        top: list[tuple[str, Mapping[str, Any]]]
        top = [("checkpointMetadata", {"version": self.state.version, "tags": tags})]
        return top + [
            (
                "sidecar",
                {
                    "path": one.name,
                    "sizeInBytes": one.size_in_bytes,
                    "modificationTime": self.now_ms,
                },
            )
            for one in sidecars
        ]

    def _hint(self, actions: int, size_in_bytes: int) -> dict[str, Any]:
        return {
            "version": self.state.version,
            "size": actions,
            "sizeInBytes": size_in_bytes,
            "numOfAddFiles": self.state.files.num_rows,
        }

    def _others(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the actions that are not of files."""
        state = self.state
        found: list[tuple[str, Mapping[str, Any]]] = [
            ("protocol", protocol_action(state.protocol)),
            ("metaData", metadata_action(state.metadata)),
        ]
        found += [("txn", one) for one in live_transactions(state, self.now_ms)]
        return found + [("domainMetadata", one) for one in live_domains(state)]

    def _file_rows(self, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in file_batches(self.state):
            yield file_rows(self.rows.adds(batch), "add", layout)
        removed = live_removes(self.state, self.now_ms)
        for start in range(0, removed.num_rows, STATS_ROWS):
            some = removed.slice(start, STATS_ROWS)
            yield file_rows(self.rows.removes(some), "remove", layout)

    def _write(
        self, location: str, layout: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> _Written:
        """Write a file that nobody sees before it is complete; one that is there stays."""
        out, count = pa.BufferOutputStream(), 0
        options = {"compression": "snappy", "use_dictionary": _REPEATING}
        with pq.ParquetWriter(out, layout, **options) as writer:
            for batch in batches:
                writer.write_batch(batch)
                count += batch.num_rows
        data = out.getvalue()
        self.state.storage.create(location, data.to_pybytes())
        return _Written(location.rsplit("/", 1)[-1], data.size, count)


def _grouped(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in groups of at least this many rows."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(one.num_rows for one in group) >= rows:
            yield group
            group = []
    if group:
        yield group


def live_transactions(state: LogState, now_ms: int) -> list[dict[str, Any]]:
    """Return the transactions of a state, without those that its property lets expire."""
    properties = state.metadata.configuration
    oldest = None
    if TRANSACTION_RETENTION in properties:
        oldest = now_ms - duration_ms(properties, TRANSACTION_RETENTION, "interval 1 week")
    found = []
    for name, version in state.actions.transactions.items():
        at = state.actions.transaction_times.get(name)
        if oldest is None or at is None or at > oldest:
            found.append({"appId": name, "version": version, "lastUpdated": at})
    return found


def live_domains(state: LogState) -> list[dict[str, Any]]:
    """Return the domains of a state."""
    return [
        {"domain": name, "configuration": text, "removed": False}
        for name, text in state.actions.domains.items()
    ]


def live_removes(state: LogState, now_ms: int) -> pa.Table:
    """Return the removes (`FILES`) of files that VACUUM must not forget yet."""
    recent = [commit.files for commit in state.commits]
    if state.segment.checkpoint is not None and state.checkpoint is not None:
        other = state.checkpoint.other
        old = read_removes(state.segment.checkpoint, other, state.table, state.storage)
        recent.insert(0, old)
    last = last_actions(recent)
    retention = duration_ms(state.metadata.configuration, FILE_RETENTION, "interval 1 week")
    is_young = pc.greater(pc.fill_null(last["deletion_time"], 0), now_ms - retention)
    return last.filter(pc.and_(pc.invert(last["is_add"]), is_young))
