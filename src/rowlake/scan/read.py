"""One data file, or a split of it, read to output batches.

Comes in: an open file, the deletes that apply and the scan's context. Goes out: batches of the
output schema, in file order, without deleted rows (or with them, told apart by `_deleted`) and
without rows that the predicate does not select. Units that cannot match are not read; of the
others, with a selective predicate, the predicate's columns are read first and the rest only where a
row matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.model.predicate import leaves
from rowlake.model.schema import field_id
from rowlake.model.task import DELETED_COLUMN_ID, PARTITION_COLUMN_ID
from rowlake.scan.filter import mask as mask_of
from rowlake.scan.output import METADATA_IDS, Output, Rows, output_schema, stored_fields
from rowlake.scan.parquet import ParquetSource
from rowlake.scan.project import Columns, identity_constants, same_schema
from rowlake.scan.shape import restricted
from rowlake.scan.source import in_split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext
    from rowlake.scan.deletes import Deletes
    from rowlake.scan.project import BoundColumns
    from rowlake.scan.source import DataFileSource, Unit

    Numbers = NDArray[np.int64]

# If more than this share of a unit matched, all columns of the next one are read at once.
_DENSE = 0.5
_SPARSE = 0.1


@dataclass(frozen=True)
class Raw:
    """Rows as a file has them; `batch` is None where no column of the file is needed.

    `positions` where they do not follow one another.
    """

    batch: pa.RecordBatch | None
    first_row: int
    num_rows: int
    positions: Numbers | None = None


@dataclass(frozen=True)
class Chosen:
    """Which of some rows come out, and which are deleted; None for all and none."""

    mask: NDArray[np.bool_] | None
    deleted: NDArray[np.bool_] | None


class FileScan:
    """The scan of one data file; `only` are sorted positions of the rows that are wanted."""

    def __init__(
        self,
        context: ScanContext,
        task: FileTask,
        source: DataFileSource,
        deletes: Deletes,
        only: NDArray[np.int64] | None = None,
    ) -> None:
        self._context, self._task, self._source, self._deletes = context, task, source, deletes
        self.schema = output_schema(context)
        fields = list(self.schema)
        self._output = Output(fields, task, _type_of(fields, PARTITION_COLUMN_ID))
        self._keeps_deleted = _type_of(fields, DELETED_COLUMN_ID) is not None
        if only is not None and len(deletes.positions) and not self._keeps_deleted:
            only = only[~np.isin(only, deletes.positions)]
        self._only = only
        self._constants = identity_constants(context, task)
        self._stored = self._shared("stored", stored_fields(fields))
        self._tested_fields = _predicate_fields(context)
        self._tested = self._shared("tested", stored_fields(self._tested_fields))
        self._keys = [self.columns(matcher.fields) for matcher in deletes.matchers]
        self._batch_rows = max(
            context.batch_rows, *(matcher.preferred_rows for matcher in deletes.matchers), 0
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the file's output."""
        units = self._units()
        if not units:
            return
        picked = self._picked(units)
        if picked is not None:
            yield from picked
            return
        late = _late(self)
        current: _Direct | _Late = late or self._direct
        for unit in units:
            matched = 0
            for batch in current.batches(unit):
                matched += batch.num_rows
                if batch.num_rows:
                    yield batch
            share = matched / unit.num_rows
            if late is not None and not _SPARSE <= share <= _DENSE:
                current = self._direct if share > _DENSE else late

    def _picked(self, units: list[Unit]) -> list[pa.RecordBatch] | None:
        """Return the wanted rows alone, where the file can be read that way."""
        if self._only is None or not isinstance(self._source, ParquetSource):
            return None
        direct = self._direct
        edges = np.array([(unit.first_row, unit.first_row + unit.num_rows) for unit in units])
        places = np.searchsorted(self._only, edges)
        wanted = np.concatenate([self._only[low:high] for low, high in places.tolist()])
        found = direct.picked(units, wanted)
        return None if found is None else [each for each in found if each.num_rows]

    @cached_property
    def _direct(self) -> _Direct:
        return _Direct(self)

    def columns(self, targets: Sequence[pa.Field]) -> Columns:
        """Return table columns of this file."""
        task, source = self._task, self._source
        return Columns(task.location, source.schema, tuple(targets), self._constants)

    def _shared(self, role: str, targets: Sequence[pa.Field]) -> Columns:
        """Return columns that files of the same schema share in this scan: bound once for all."""
        if self._constants:
            return self.columns(targets)
        found = same_schema(self._context.held, self._source.schema)
        if role not in found:
            found[role] = self.columns(targets)
        columns: Columns = found[role]
        return columns

    @property
    def stored(self) -> Columns:
        """The columns of the output that a file may hold."""
        return self._stored

    @property
    def deciding_leaves(self) -> frozenset[int]:
        """The leaves that say which rows come out."""
        return self._tested.leaves.union(*(keys.leaves for keys in self._keys))

    @property
    def has_predicate(self) -> bool:
        """True where rows are filtered by a predicate."""
        return self._context.predicate is not None

    def raws(self, unit: Unit, kept: frozenset[int]) -> Iterator[Raw]:
        """Yield a unit's rows with these leaves."""
        first, end = unit.first_row, unit.first_row + unit.num_rows
        if not kept:
            for start in range(first, end, self._batch_rows):
                yield Raw(None, start, min(self._batch_rows, end - start))
            return
        for batch in self._source.read(unit, kept, self._batch_rows):
            yield Raw(batch, first, batch.num_rows)
            first += batch.num_rows
        if first != end:  # the positions of all that follow would be wrong
            found = unit.num_rows + first - end
            raise ValueError(f"part {unit.index} has {found} rows, the footer says {unit.num_rows}")

    def rows_at(
        self, units: list[Unit], kept: frozenset[int], positions: Numbers
    ) -> pa.RecordBatch | None:
        """Return the rows at some positions; None where the file cannot be read that way."""
        if not kept or not isinstance(self._source, ParquetSource):
            return None
        return self._source.rows_at(units, kept, positions)

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are read."""
        return self._source.kept(leaves) if leaves else leaves

    def chooser(self, kept: frozenset[int]) -> _Chooser:
        """Return what chooses rows of batches with these leaves."""
        return _Chooser(
            self._context,
            self._deletes,
            self._output_of_tested(),
            self._tested.bind(kept),
            [keys.bind(kept) for keys in self._keys],
            keeps_deleted=self._keeps_deleted,
            only=self._only,
        )

    def emitted(self, stored: Sequence[pa.Array], rows: Rows) -> pa.RecordBatch:
        """Return an output batch."""
        arrays = self._output.arrays(stored, rows)
        if not arrays:  # only a struct can count rows without columns
            empty = pa.Array.from_buffers(pa.struct([]), rows.count, [None])
            return pa.RecordBatch.from_struct_array(empty)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _output_of_tested(self) -> tuple[pa.Schema, Output]:
        partition = _type_of(self._tested_fields, PARTITION_COLUMN_ID)
        output = Output(self._tested_fields, self._task, partition)
        return pa.schema(list(self._tested_fields)), output

    def _units(self) -> list[Unit]:
        """Return the split's units that have a row to give."""
        units = in_split(self._source.units, self._task)
        predicate = self._context.predicate
        if predicate is not None and units:
            may = self._source.may_match(units, predicate, self._tested)
            units = [unit for unit, matches in zip(units, may, strict=True) if matches]
        return [
            unit
            for unit in units
            if unit.num_rows and not self._all_deleted(unit) and self._is_wanted(unit)
        ]

    def _is_wanted(self, unit: Unit) -> bool:
        if self._only is None:
            return True
        first, end = unit.first_row, unit.first_row + unit.num_rows
        low, high = np.searchsorted(self._only, (first, end))
        return bool(low < high)

    def _all_deleted(self, unit: Unit) -> bool:
        if self._keeps_deleted or not len(self._deletes.positions):
            return False
        return len(self._deletes.in_range(unit.first_row, unit.num_rows)) == unit.num_rows


class _Chooser:
    """Chooses the rows that come out: by deletes and by the predicate."""

    def __init__(
        self,
        context: ScanContext,
        deletes: Deletes,
        tested: tuple[pa.Schema, Output],
        columns: BoundColumns,
        keys: list[BoundColumns],
        *,
        keeps_deleted: bool,
        only: NDArray[np.int64] | None,
    ) -> None:
        self._context, self._deletes, self._tested, self._only = context, deletes, tested, only
        self._columns, self._keys, self._keeps_deleted = columns, keys, keeps_deleted

    def choose(self, raw: Raw) -> Chosen:
        """Return which rows come out."""
        deleted = self._deleted(raw)
        mask = self._selected(raw, deleted)
        if deleted is not None and not self._keeps_deleted:
            mask = ~deleted if mask is None else mask & ~deleted
        if self._only is not None and raw.positions is None:
            wanted = self._wanted(raw)
            mask = wanted if mask is None else mask & wanted
        if mask is not None and mask.all():
            mask = None
        return Chosen(mask, deleted)

    def _wanted(self, raw: Raw) -> NDArray[np.bool_]:
        assert self._only is not None
        low, high = np.searchsorted(self._only, (raw.first_row, raw.first_row + raw.num_rows))
        mask = np.zeros(raw.num_rows, np.bool_)
        mask[self._only[low:high] - raw.first_row] = True
        return mask

    def _deleted(self, raw: Raw) -> NDArray[np.bool_] | None:
        deleted = self._deleted_positions(raw)
        for matcher, columns in zip(self._deletes.matchers, self._keys, strict=True):
            found = matcher.matches(columns.arrays(raw.batch, raw.num_rows))
            deleted = found if deleted is None else deleted | found
        return deleted

    def _deleted_positions(self, raw: Raw) -> NDArray[np.bool_] | None:
        if raw.positions is not None:
            found = np.isin(raw.positions, self._deletes.positions)
            return found if found.any() else None
        positions = self._deletes.in_range(raw.first_row, raw.num_rows)
        if not len(positions):
            return None
        deleted = np.zeros(raw.num_rows, np.bool_)
        deleted[positions] = True
        return deleted

    def _selected(self, raw: Raw, deleted: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        predicate = self._context.predicate
        if predicate is None:
            return None
        schema, output = self._tested
        if not len(schema):  # TRUE or FALSE
            batch = pa.RecordBatch.from_arrays([pa.nulls(raw.num_rows)], names=[""])
        else:
            rows = Rows(raw.first_row, raw.num_rows, None, deleted, raw.positions)
            arrays = output.arrays(self._columns.arrays(raw.batch, raw.num_rows), rows)
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return np.asarray(mask_of(batch, predicate))


class _Direct:
    """Reads all columns at once."""

    def __init__(self, scan: FileScan) -> None:
        self._scan = scan
        self._kept = scan.kept(scan.stored.leaves | scan.deciding_leaves)
        self._chooser = scan.chooser(self._kept)
        self._columns = scan.stored.bind(self._kept)

    def picked(self, units: list[Unit], positions: Numbers) -> list[pa.RecordBatch] | None:
        """Return the output of some rows; None where whole units must be read."""
        batch = self._scan.rows_at(units, self._kept, positions)
        if batch is None:
            return None
        raw = Raw(batch, 0, len(positions), positions)
        chosen = self._chooser.choose(raw)
        rows = Rows(0, raw.num_rows, chosen.mask, chosen.deleted, positions)
        if not rows.count:
            return []
        arrays = self._columns.arrays(raw.batch, rows.count, chosen.mask)
        return [self._scan.emitted(arrays, rows)]

    def batches(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield a unit's output."""
        for raw in self._scan.raws(unit, self._kept):
            chosen = self._chooser.choose(raw)
            rows = Rows(raw.first_row, raw.num_rows, chosen.mask, chosen.deleted)
            if rows.count:
                arrays = self._columns.arrays(raw.batch, rows.count, chosen.mask)
                yield self._scan.emitted(arrays, rows)


def _late(scan: FileScan) -> _Late | None:
    """Return late materialisation, None where it cannot save anything."""
    if not scan.has_predicate:
        return None
    kept = scan.kept(scan.deciding_leaves)
    late = [not leaves <= kept for leaves in scan.stored.leaves_by_target]
    return _Late(scan, kept, late) if any(late) else None


class _Late:
    """Reads the deciding columns first, and the others only of units where rows remain."""

    def __init__(self, scan: FileScan, kept: frozenset[int], late: list[bool]) -> None:
        self._scan, self._first_kept, self._is_late = scan, kept, late
        targets = scan.stored.targets
        early = [target for target, is_late in zip(targets, late, strict=True) if not is_late]
        rest = scan.columns([target for target, wait in zip(targets, late, strict=True) if wait])
        self._chooser = scan.chooser(kept)
        self._early = scan.columns(early).bind(kept)
        self._early_names = [str(at) for at in range(len(early))]
        self._second_kept = scan.kept(rest.leaves)
        self._rest = rest.bind(self._second_kept)

    def batches(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield a unit's output."""
        masks, deleted, early = [], [], []
        for raw in self._scan.raws(unit, self._first_kept):
            chosen = self._chooser.choose(raw)
            mask = np.ones(raw.num_rows, np.bool_) if chosen.mask is None else chosen.mask
            count = int(np.count_nonzero(mask))
            masks.append(mask)
            deleted.append(
                np.zeros(raw.num_rows, np.bool_) if chosen.deleted is None else chosen.deleted
            )
            if count and self._early_names:
                early.append(self._early.arrays(raw.batch, count, chosen.mask))
        mask = np.concatenate(masks)
        if mask.any():
            yield from self._rest_of(unit, mask, np.concatenate(deleted), self._table(early))

    def _table(self, early: list[list[pa.Array]]) -> pa.RecordBatch | None:
        if not early:
            return None
        batches = [pa.RecordBatch.from_arrays(one, names=self._early_names) for one in early]
        return pa.concat_batches(batches)

    def _rest_of(
        self,
        unit: Unit,
        mask: NDArray[np.bool_],
        deleted: NDArray[np.bool_],
        early: pa.RecordBatch | None,
    ) -> Iterator[pa.RecordBatch]:
        taken, total = 0, int(np.count_nonzero(mask))
        for raw in self._scan.raws(unit, self._second_kept):
            start = raw.first_row - unit.first_row
            part = slice(start, start + raw.num_rows)
            rows = Rows(raw.first_row, raw.num_rows, mask[part], deleted[part])
            if not rows.count:
                continue
            rest = iter(self._rest.arrays(raw.batch, rows.count, mask[part]))
            first = iter([] if early is None else early.slice(taken, rows.count).columns)
            arrays = [next(rest if is_late else first) for is_late in self._is_late]
            yield self._scan.emitted(arrays, rows)
            taken += rows.count
            if taken == total:  # what follows in the unit need not be decoded
                return


def _type_of(fields: Sequence[pa.Field], wanted: int) -> pa.DataType | None:
    return next((field.type for field in fields if field_id(field) == wanted), None)


def _predicate_fields(context: ScanContext) -> tuple[pa.Field, ...]:
    """Return the columns that the predicate tests, pruned to what it tests of them."""
    if context.predicate is None:
        return ()
    wanted = frozenset(leaf.field_id or -1 for leaf in leaves(context.predicate))
    found = [restricted(field, wanted) for field in context.table_schema.arrow]
    metadata = [field for field in output_schema(context) if field_id(field) in METADATA_IDS]
    found += [restricted(field, wanted) for field in metadata]
    return tuple(field for field in found if field is not None)
