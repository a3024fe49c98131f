"""How many bytes a row-level operation reads and writes, estimated from the table's metadata.

Reads are the sizes of the columns that each step needs (`column_sizes` of manifests; whole files
where they are not kept): those that decide over matches of all files looked at, those of new rows
of files that change. Pages that are skipped count too. New rows are as large as the file's rows are
on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.model.merge import Action, When
from rowlake.model.predicate import leaves
from rowlake.model.schema import children, field_id
from rowlake.model.task import size_of_rows
from rowlake.prune.metrics import map_value
from rowlake.rowlevel.rows import target_columns
from rowlake.rowlevel.strategy import Way

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask
    from rowlake.plan.files import FilePlan
    from rowlake.rowlevel.task import ChangeTask

# What files of deletes take, as measured: the smallest one, and each position.
_VECTOR_BYTES, _BYTES_PER_POSITION, _ROWS_PER_BITMAP_BYTE = 350, 2, 8
_DELETES_BYTES, _BYTES_PER_DELETE = 900, 2.5


@dataclass(frozen=True)
class Estimates:
    """Sizes of the files of a plan that has `column_sizes`."""

    task: ChangeTask
    plan: FilePlan

    # --- reading

    def read_to_match(self, file: FileTask) -> int:
        """Return what is read of a file to find its matches, the deletes that apply included."""
        deletes = sum(old.content_size_in_bytes or old.file_size_in_bytes for old in file.deletes)
        return deletes + self._read(file, self._deciding)

    def read_to_change(self, file: FileTask, outcome: Mapping[str, Any]) -> int:
        """Return what is read of a file with matches after these are found."""
        tested = self._read(file, self._tested)
        if outcome["way"] == Way.REWRITE.value:
            return tested + self._read(file, self._ids(self.task.write.schema.arrow))
        return tested + (self._read(file, self._kept) if outcome["updated"] else 0)

    @cached_property
    def _deciding(self) -> frozenset[int]:
        """The columns that are read of every file."""
        task, schema = self.task, self.task.context.table_schema.arrow
        if task.matching.position is not None:
            return frozenset()
        keys = self._ids(schema.field(target) for target, _ in task.matching.keys)
        tests = [clause.predicate for _, clause in task.of(When.NOT_MATCHED_BY_SOURCE)]
        return keys.union(*map(self._of_predicate, [task.context.predicate, *tests]))

    @cached_property
    def _tested(self) -> frozenset[int]:
        """The columns that decide what is done with matches."""
        task, schema = self.task, self.task.context.table_schema.arrow
        matched = [clause for _, clause in task.of(When.MATCHED)]
        tests = [self._of_predicate(clause.predicate) for clause in matched]
        compared = {one.column for clause in matched for one in clause.comparisons}
        compared |= {
            name
            for clause in task.clauses
            if task.skips_unchanged and clause.action is Action.UPDATE
            for name in clause.values
        }
        return self._ids(schema.field(name) for name in compared).union(*tests)

    @cached_property
    def _kept(self) -> frozenset[int]:
        """The columns of updated rows that stay as they are."""
        updates = [clause for clause in self.task.clauses if clause.action is Action.UPDATE]
        return self._ids(target_columns(self.task.write.schema.arrow, updates))

    def _ids(self, fields: Iterable[pa.Field]) -> frozenset[int]:
        return frozenset(number for field in fields for number in _leaf_ids(field))

    def _of_predicate(self, predicate: Predicate | None) -> frozenset[int]:
        found = () if predicate is None else leaves(predicate)
        return frozenset(leaf.field_id for leaf in found if leaf.field_id is not None)

    def _read(self, file: FileTask, columns: frozenset[int]) -> int:
        if not columns:
            return 0
        row = self._rows.get(file.location)
        if row is None or not self._is_sized[row]:
            return file.file_size_in_bytes
        size = int(sum(self._sizes(number)[row] for number in columns))
        if file.only is None:
            return size
        return size_of_rows(size, file.record_count, len(file.only))

    @cached_property
    def _column_sizes(self) -> pa.ChunkedArray:
        chunks = [c for table in self.plan.data.values() for c in table["column_sizes"].chunks]
        return pa.chunked_array(chunks, pa.map_(pa.int32(), pa.int64()))

    @cached_property
    def _rows(self) -> dict[str, int]:
        names = (name for t in self.plan.data.values() for name in t["location"].to_pylist())
        return {name: row for row, name in enumerate(names)}

    @cached_property
    def _is_sized(self) -> np.ndarray[Any, Any]:
        return np.asarray(self._column_sizes.is_valid())

    def _sizes(self, number: int) -> np.ndarray[Any, Any]:
        if number not in self._known:
            sizes = map_value(self._column_sizes, number).fill_null(0)
            self._known[number] = np.asarray(sizes)
        return self._known[number]

    @cached_property
    def _known(self) -> dict[int, np.ndarray[Any, Any]]:
        return {}

    # --- writing

    def written_for(self, file: FileTask, outcome: Mapping[str, Any]) -> int:
        """Return what is written for a file that changes: new rows, and deletes."""
        way = Way(outcome["way"])
        new: int = outcome["updated"] + outcome["copied"]
        rows = new * file.file_size_in_bytes / max(file.record_count, 1)
        return round(rows + (self._deletes(file, outcome) if way is Way.DELETE_FILE else 0))

    def _deletes(self, file: FileTask, outcome: Mapping[str, Any]) -> float:
        older: int = file.record_count - outcome["live"]
        count: int = older + outcome["updated"] + outcome["deleted"]
        if not self.task.as_vectors:
            return _DELETES_BYTES + _BYTES_PER_DELETE * count
        dense = file.record_count / _ROWS_PER_BITMAP_BYTE
        return _VECTOR_BYTES + min(_BYTES_PER_POSITION * count, dense)

    def written_for_inserts(self, rows: int, staged: pa.Table | None) -> int:
        """Return what new rows take: as much as those of the table, or as those of the source."""
        size, count = self.plan.size_in_bytes, self.plan.record_count
        if not count and staged is not None:
            size, count = sum(staged["size_in_bytes"].to_pylist()), sum(staged["rows"].to_pylist())
        return round(rows * size / count) if count else 0


def _leaf_ids(field: pa.Field) -> list[int]:
    below = [number for child in children(field.type) for number in _leaf_ids(child)]
    number = field_id(field)
    return below or ([] if number is None else [number])
