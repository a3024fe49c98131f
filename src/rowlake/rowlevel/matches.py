"""Which rows of one data file change, and how: matches, then the clause of each.

Comes in: a data file and the parts of the source that may match it. Goes out: `Changes`: sorted
positions of live rows, with the source row and the clause of each. Only the key columns are read,
then the columns that conditions need, of the matched rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.errors import CardinalityError
from rowlake.model.merge import Action, When
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import LARGE_BATCH_ROWS, POS_COLUMN, POS_COLUMN_ID, ScanTask
from rowlake.rowlevel.column_comparison import holds
from rowlake.rowlevel.rows import are_equal, assigned
from rowlake.rowlevel.source import flags
from rowlake.scan.kernel import picked_rows, scan_kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.rowlevel.source import Part, SourceRows
    from rowlake.rowlevel.task import ChangeTask, TaskClause

    Numbers = NDArray[np.int64]

POSITION = pa.field(POS_COLUMN, pa.int64(), metadata={FIELD_ID: str(POS_COLUMN_ID).encode()})
_SAMPLES = 10
_FEW_ROWS = 4096  # which are read in one go: a read costs more than their columns
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Changes:
    """The rows of one data file that change, in their order.

    `rows` are source rows, `source[i]` the one of a changed row (-1 where it has none), `clause[i]`
    the number of its clause. `unchanged` rows matched, but hold the new values already. `kept` rows
    matched and do not change.
    """

    positions: Numbers
    rows: pa.Table
    source: Numbers
    clause: Numbers
    unchanged: int = 0
    kept: int = 0

    def __len__(self) -> int:
        return len(self.positions)

    def where(self, chosen: NDArray[np.bool_]) -> Changes:
        """Return some of the changes."""
        return replace(
            self,
            positions=self.positions[chosen],
            source=self.source[chosen],
            clause=self.clause[chosen],
        )

    def of(self, task: ChangeTask, action: Action) -> Changes:
        """Return the changes of one kind."""
        kinds = np.array([clause.action is action for clause in task.clauses], np.bool_)
        return self.where(kinds[self.clause])


def changes_of(
    task: ChangeTask, file: FileTask, parts: tuple[int, ...], source: SourceRows
) -> Changes:
    """Return what changes in a file; source rows that match count as matched from now on."""
    found = _matched(task, file, parts, source)
    if task.checks_cardinality:
        _validate_cardinality(task, file, found)
    if task.rejects_matches and len(found):
        raise _existing(task, found)
    first = np.concatenate([[True], found.positions[1:] != found.positions[:-1]])
    found = found.where(first[: len(found)])
    matched = found.positions
    found = _with_clauses(task, file, found)
    if task.of(When.NOT_MATCHED_BY_SOURCE):
        found = _joined(found, _left_over(task, file, matched, found))
    if task.skips_unchanged:
        found = _without_unchanged(task, file, found)
    return replace(found, kept=len(matched) - int(np.count_nonzero(found.source >= 0)))


def _matched(
    task: ChangeTask, file: FileTask, parts: tuple[int, ...], source: SourceRows
) -> Changes:
    if task.matching.position is not None:
        return _joint(task, [_at(source.part(number), file) for number in parts])
    if task.matching.keys:
        return _by_key(task, file, parts, source)
    positions = _positions(task.context, file, task.context.predicate)
    zeros = np.zeros(len(positions), np.int64)
    return Changes(positions, pa.table({}), zeros, zeros)


def _at(part: Part, file: FileTask) -> Changes:
    found = part.at(file.location)
    return _of_part(part, found.target, found.source)


def _of_part(part: Part, positions: Numbers, source: Numbers) -> Changes:
    return Changes(positions, part.rows, source, np.zeros(len(positions), np.int64))


def _by_key(
    task: ChangeTask, file: FileTask, parts: tuple[int, ...], source: SourceRows
) -> Changes:
    """Return the matches by key; of several parts one after the other, so that few are loaded."""
    batches: Iterable[pa.RecordBatch] = _key_batches(task, file)
    batches = batches if len(parts) == 1 else list(batches)
    return _joint(task, [_probed(source.part(number), batches) for number in parts])


def _key_batches(task: ChangeTask, file: FileTask) -> Iterator[pa.RecordBatch]:
    """Yield the keys of a file's live rows in the types of the source's, and their positions."""
    names = [target for target, _ in task.matching.keys]
    context = task.context.held.get("keys")
    if context is None:
        fields = [task.context.table_schema.arrow.field(name) for name in names]
        projection = Schema(pa.schema([*fields, POSITION]))
        context = replace(
            task.context, projection=projection, exact=True, batch_rows=LARGE_BATCH_ROWS
        )
        task.context.held["keys"] = context
    assert task.staged_schema is not None
    types = [task.staged_schema.field(staged).type for _, staged in task.matching.keys]
    for batch in scan_kernel(ScanTask(context, (file,))):
        columns = [
            column if column.type.equals(kind) else column.cast(kind)
            for column, kind in zip(batch.columns, types, strict=False)
        ]
        columns.append(batch.column(len(names)))
        yield pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])


def _probed(part: Part, batches: Iterable[pa.RecordBatch]) -> Changes:
    targets, sources = [_NONE], [_NONE]
    for batch in batches:
        *keys, positions = batch.columns
        pairs = part.probe(keys)
        targets.append(np.asarray(positions)[pairs.target])
        sources.append(pairs.source)
    return _of_part(part, np.concatenate(targets), np.concatenate(sources))


def _joint(task: ChangeTask, found: list[Changes]) -> Changes:
    """Return the matches in several parts as one, with the source rows that matched alone."""
    if len(found) == 1:
        return found[0]
    if not found:
        empty = pa.table({}) if task.staged_schema is None else task.staged_schema.empty_table()
        return Changes(_NONE, empty, _NONE, _NONE)
    rows = pa.concat_tables([each.rows.take(pa.array(each.source)) for each in found])
    positions = np.concatenate([each.positions for each in found])
    order = np.argsort(positions, kind="stable")
    return Changes(positions[order], rows.combine_chunks(), order, np.zeros(len(order), np.int64))


def _positions(
    context: ScanContext,
    file: FileTask,
    predicate: Predicate | None,
    only: Numbers | None = None,
) -> Numbers:
    """Return the positions of live rows for which a predicate is TRUE."""
    context = replace(
        context,
        projection=Schema(pa.schema([POSITION])),
        predicate=predicate,
        exact=True,
        batch_rows=LARGE_BATCH_ROWS,
    )
    batches = (
        scan_kernel(ScanTask(context, (file,)))
        if only is None
        else picked_rows(context, file, only)
    )
    parts = [np.asarray(batch.column(0)) for batch in batches]
    return np.concatenate(parts) if parts else _NONE


# --- clauses


def _with_clauses(task: ChangeTask, file: FileTask, found: Changes) -> Changes:
    """Return the matched rows that a clause is for, each with the first one that is."""
    number = np.full(len(found), -1, np.int64)
    for index, clause in task.of(When.MATCHED):
        open_rows = np.flatnonzero(number < 0)
        if not len(open_rows):
            break
        number[open_rows[_applies(task, file, clause, found, open_rows)]] = index
    return replace(found, clause=number).where(number >= 0)


def _applies(
    task: ChangeTask, file: FileTask, clause: TaskClause, found: Changes, rows: Numbers
) -> NDArray[np.bool_]:
    """Return which of some matched rows a clause is for."""
    result = np.ones(len(rows), np.bool_)
    if clause.flag is not None:
        result = flags(found.rows, clause.flag)[found.source[rows]]
    if clause.predicate is not None:
        wanted = found.positions[rows[result]]
        held = _positions(task.context, file, clause.predicate, wanted)
        result[result] = np.isin(wanted, held, assume_unique=True)
    if clause.comparisons and result.any():
        result[result] = _compared(task, file, clause, found, rows[result])
    return result


def _compared(
    task: ChangeTask, file: FileTask, clause: TaskClause, found: Changes, rows: Numbers
) -> NDArray[np.bool_]:
    """Return for which of some matched rows all comparisons of a clause are TRUE."""
    names = dict.fromkeys(comparison.column for comparison in clause.comparisons)
    result, start = np.zeros(len(rows), np.bool_), 0
    for batch in _columns_at(task, file, list(names), found.positions[rows]):
        some = rows[start : start + batch.num_rows]
        held = np.ones(batch.num_rows, np.bool_)
        for one in clause.comparisons:
            source = assigned(one.staged, found.rows, found.source[some])
            held &= holds(one.operator, batch.column(one.column), source)
        result[start : start + batch.num_rows] = held
        start += batch.num_rows
    return result


def _columns_at(
    task: ChangeTask, file: FileTask, names: list[str], positions: Numbers
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows at these positions."""
    fields = [task.context.table_schema.arrow.field(name) for name in names]
    context = replace(task.context, projection=Schema(pa.schema(fields)), predicate=None)
    return picked_rows(context, file, positions)


def _left_over(task: ChangeTask, file: FileTask, matched: Numbers, found: Changes) -> Changes:
    """Return the rows without a match that a clause is for."""
    taken = matched
    positions, numbers = [], []
    for index, clause in task.of(When.NOT_MATCHED_BY_SOURCE):
        held = _positions(task.context, file, clause.predicate)
        own = held[~np.isin(held, taken, assume_unique=True)]
        positions.append(own)
        numbers.append(np.full(len(own), index))
        taken = np.union1d(taken, own)
        if clause.predicate is None:
            break
    every = np.concatenate(positions)
    nothing = np.full(len(every), -1, np.int64)
    return Changes(every, found.rows, nothing, np.concatenate(numbers))


def _joined(one: Changes, other: Changes) -> Changes:
    positions = np.concatenate([one.positions, other.positions])
    order = np.argsort(positions, kind="stable")
    return Changes(
        positions[order],
        one.rows,
        np.concatenate([one.source, other.source])[order],
        np.concatenate([one.clause, other.clause])[order],
    )


def _without_unchanged(task: ChangeTask, file: FileTask, found: Changes) -> Changes:
    """Return the changes without updates to what a row holds already."""
    changed = np.ones(len(found), np.bool_)
    for number, clause in enumerate(task.clauses):
        own = np.flatnonzero(found.clause == number)
        if clause.action is Action.UPDATE and len(own):
            changed[own] = _differs(task, file, clause, found, own)
    return replace(found.where(changed), unchanged=int(np.count_nonzero(~changed)))


def _differs(
    task: ChangeTask, file: FileTask, clause: TaskClause, found: Changes, rows: Numbers
) -> NDArray[np.bool_]:
    """Return which rows a clause changes; of many rows, most are told by their first columns."""
    result = np.zeros(len(rows), np.bool_)
    same = np.arange(len(rows))
    names = list(clause.values)
    step = 1 if len(rows) > _FEW_ROWS else len(names)
    while names and len(same):
        values = {name: clause.values[name] for name in names[:step]}
        differs = _differs_in(task, file, values, found, rows[same])
        result[same[differs]] = True
        same, names = same[~differs], names[step:]
        step *= 2
    return result


def _differs_in(
    task: ChangeTask,
    file: FileTask,
    values: Mapping[str, str | pa.Array],
    found: Changes,
    rows: Numbers,
) -> NDArray[np.bool_]:
    result, start = np.zeros(len(rows), np.bool_), 0
    for batch in _columns_at(task, file, list(values), found.positions[rows]):
        some = rows[start : start + batch.num_rows]
        differs = np.zeros(batch.num_rows, np.bool_)
        for name, value in values.items():
            new = assigned(value, found.rows, found.source[some])
            differs |= ~are_equal(batch.column(name), new)
        result[start : start + batch.num_rows] = differs
        start += batch.num_rows
    return result


# --- cardinality


def _validate_cardinality(task: ChangeTask, file: FileTask, found: Changes) -> None:
    """Raise where two source rows match one target row (spec of MERGE in SQL)."""
    again = np.flatnonzero(found.positions[1:] == found.positions[:-1]) + 1
    if not len(again):
        return
    keys = _samples(task, found, again)
    where = f"{file.location}, position {found.positions[again[0]]}"
    named = f" with {keys[0]}" if keys else ""
    raise CardinalityError(
        f"MERGE into {task.write.table}: 2 source rows match one target row ({where}){named}. A "
        "target row can change once; make the keys unique in the source. Nothing was changed.",
        keys=keys,
    )


def _samples(task: ChangeTask, found: Changes, again: Numbers) -> list[str]:
    if not task.matching.keys:
        return []
    first = np.unique(found.positions[again], return_index=True)[1][:_SAMPLES]
    texts = []
    for place in again[first]:
        rows = found.rows.slice(int(found.source[place]), 1)
        values = [(name, rows[staged][0].as_py()) for name, staged in task.matching.keys]
        texts.append(", ".join(f"{name}={value!r}" for name, value in values))
    return texts


def _existing(task: ChangeTask, found: Changes) -> CardinalityError:
    keys = _samples(task, found, np.arange(len(found)))
    return CardinalityError(
        f"Cannot upsert into {task.write.table}: it has rows with these keys already: "
        f"{'; '.join(keys)}. Nothing was changed; leave them out, or use if_exists='update'.",
        keys=keys,
    )
