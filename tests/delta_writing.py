"""Delta tables that the modules of `rowlake.delta` write, without a verb in between."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from rowlake.delta.add_actions import Adding, RowIds, add_actions, readd_actions, remove_actions
from rowlake.delta.after_commit import after_commit
from rowlake.delta.commit_file import write_commit
from rowlake.delta.commit_info import CommitInfo
from rowlake.delta.live_files import with_stats
from rowlake.delta.log_files import list_log
from rowlake.delta.row_tracking import high_water_mark, is_tracked, mark_action
from rowlake.delta.schema import columns_of
from rowlake.delta.state import LogState
from rowlake.delta.vector_file import write_vectors
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.schema import field_id
from rowlake.model.transform import partition_type
from rowlake.model.values import encode_partitions
from rowlake.storage.files import Storage
from rowlake.write.arrow_metrics import ArrowMetrics
from tests.delta_logs import COLUMNS, PROTOCOL, metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rowlake.delta.schema import TableColumns

NOW_MS = 1_700_000_000_000


@dataclass
class WrittenTable:
    """A table in a folder; each method that changes it makes one commit."""

    folder: Path
    storage: Storage = field(default_factory=Storage)
    now_ms: int = NOW_MS

    def create(
        self,
        fields: Any = COLUMNS,
        partition_by: tuple[str, ...] = (),
        *more: dict[str, Any],
        protocol: dict[str, Any] = PROTOCOL,
        **configuration: str,
    ) -> WrittenTable:
        self.commit(
            "CREATE TABLE", protocol, metadata(fields, partition_by, **configuration), *more
        )
        return self

    @property
    def name(self) -> str:
        return f"delta.`{self.folder}`"

    @property
    def log(self) -> Path:
        return self.folder / "_delta_log"

    @property
    def state(self) -> LogState:
        log = list_log(str(self.folder), self.storage)
        return LogState(str(self.folder), log.segment(), self.storage)

    @property
    def columns(self) -> TableColumns:
        return columns_of(self.state.metadata, str(self.folder))

    @property
    def adding(self) -> Adding:
        state = self.state
        return Adding(str(self.folder), self.columns, state.metadata.configuration, state.protocol)

    def commit(self, operation: str, *actions: dict[str, Any], **info: Any) -> int:
        """Commit actions to the next version, and do what is due after it."""
        log = list_log(str(self.folder), self.storage)
        version = -1 if log.is_empty else log.newest
        said = CommitInfo(
            operation,
            str(uuid.uuid4()),
            self.now_ms + version,
            read_version=version if version >= 0 else None,
            **info,
        )
        done = write_commit(str(self.folder), version + 1, [said.action(), *actions], self.storage)
        assert done
        after_commit(self.state, self.now_ms)
        return version + 1

    def write(self, rows: pa.Table, *, file: str | None = None, **partition: Any) -> pa.Table:
        """Write a data file of rows without partition columns; return it as `WRITTEN_FILES`."""
        columns = self.columns
        target = self.folder / (file or f"part-{uuid.uuid4()}.parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        fields = [columns.schema.find((name,)) for name in rows.column_names]
        typed = rows.cast(pa.schema([pa.field(one.name, one.type) for one in fields]))
        known = pa.Table.from_arrays(typed.columns, schema=pa.schema(fields))
        physical = [columns.physical[field_id(one)][0] for one in fields]
        pq.write_table(known.rename_columns(physical), target)
        metrics = ArrowMetrics(pa.schema(fields), {})
        for batch in known.to_batches():
            metrics.add(batch)
        kind = partition_type(columns.spec, columns.schema)
        values = {name: partition.get(name) for name in kind.names} if len(kind) else {}
        row = {
            "content": 0,
            "location": str(target),
            "file_format": "PARQUET",
            "spec_id": 0,
            "partition": encode_partitions(pa.array([values], kind))[0].as_py(),
            "record_count": rows.num_rows,
            "file_size_in_bytes": target.stat().st_size,
            **vars(metrics.result()),
        }
        return pa.Table.from_pylist([row], WRITTEN_FILES)

    def append(self, *written: pa.Table, **info: Any) -> int:
        """Commit data files that were written."""
        files, state = pa.concat_tables(written), self.state
        row_ids, marks = None, []
        if is_tracked(state.protocol, state.metadata):
            mark = high_water_mark(state.actions.domains)
            row_ids = RowIds(mark + 1, state.version + 1)
            marks = [mark_action(mark + sum(files["record_count"].to_pylist()))]
        adds = add_actions(files, self.adding, modified_ms=self.now_ms, row_ids=row_ids)
        parameters = {"mode": "Append", "partitionBy": []}
        return self.commit("WRITE", *adds, *marks, parameters=parameters, **info)

    def rows(self, rows: pa.Table, **partition: Any) -> int:
        """Commit one data file with these rows."""
        return self.append(self.write(rows, **partition), is_blind_append=True)

    def delete(self, positions: Mapping[str, Iterable[int]], **info: Any) -> int:
        """Mark rows of files (by location) as deleted with deletion vectors."""
        state = self.state
        some = pa.array(list(positions))
        files = state.files.filter(pc.is_in(state.files["location"], some))
        bitmaps = {place: BitMap64(list(rows)) for place, rows in positions.items()}
        _, vectors = write_vectors(bitmaps, str(self.folder), self.storage)
        folder, described = str(self.folder), with_stats(files, state, self.columns)
        removes = remove_actions(files, folder, deleted_ms=self.now_ms)
        adds = readd_actions(described, folder, vectors)
        return self.commit("DELETE", *removes, *adds, **info)

    def remove(self, *locations: str) -> int:
        """Remove whole files."""
        files = self.state.files
        gone = files.filter(pc.is_in(files["location"], pa.array(locations)))
        return self.commit(
            "DELETE", *remove_actions(gone, str(self.folder), deleted_ms=self.now_ms)
        )

    def forget_commits(self) -> None:
        """Delete the commits before the newest checkpoint, so that readers need it."""
        newest = max(list_log(str(self.folder), self.storage).checkpoints)
        for version in range(newest):
            for ending in ("json", "crc"):
                (self.log / f"{version:020d}.{ending}").unlink(missing_ok=True)

    def actions(self, version: int) -> list[dict[str, Any]]:
        """Return the actions of a commit."""
        text = (self.log / f"{version:020d}.json").read_text()
        return [json.loads(line) for line in text.splitlines()]
