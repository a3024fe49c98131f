"""The changes of a history's table, replayed: what was at the start plus changes is the end.

The rows of a start come from a plain scan of its snapshot in the schema of the end; changes are
applied one after the other to a multiset of rows. A delete of a row that is not there is wrong.
Since any span leads from its start to its end, spans that follow each other lead from an empty
table to the head. A feed is read in the driver, in frames as Spark shuffles them, or as the
streaming source reads it: in limited batches, by readers that are restarted.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from rowlake.model.feed import CHANGE_COLUMNS, Bounds
from rowlake.plan.tasks import scan_tasks
from rowlake.scan.kernel import output_schema, scan_kernel
from rowlake.stream import changes_plan
from rowlake.stream.changes import ChangesRequest, planned
from rowlake.stream.changes_kernel import raw_schema
from rowlake.stream.changes_shuffle import settle_frames, spread_changes
from rowlake.stream.source import TableStream
from rowlake.stream.source_options import MOST_FILES, MOST_ROWS, STARTING
from rowlake.verbs.read import planned_view
from tests.histories.values import read_tuples

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.histories.history import History

GONE, CAME = ("delete", "update_preimage"), ("insert", "update_postimage")
KEYED = ("int", "long", "string", "date", "boolean")


@dataclass(frozen=True)
class Asked:
    """One feed: between two snapshots (None: the beginning, the head), by keys, net or not."""

    branch: str
    start: int | None
    end: int | None
    keys: tuple[str, ...] | None
    net: bool
    spread: bool
    limits: tuple[tuple[str, str], ...] | None = None  # of a streaming source

    def request(self) -> ChangesRequest:
        bounds = Bounds(self.start, self.end, branch=self.branch)
        return ChangesRequest(bounds, self.keys, self.net)


def check_changes(history: History, random: Random, *, spans: int = 3) -> int:
    """Check whole spans and random ones of every branch; return how many feeds were read."""
    checked = 0
    for branch in sorted(history.rows):
        line = [each.snapshot_id for each in history.table.handle.ancestors(history._head(branch))]
        if not line:
            continue
        drawn = [
            _drawn(random, history, branch, line, whole=number == 0) for number in range(spans)
        ]
        for asked in [each for one in drawn for each in (one, replace(one, net=not one.net))]:
            _check(history, asked)
            checked += 1
        _check(history, _drawn_stream(random, branch, line))
        checked += 1
    return checked


def _drawn(random: Random, history: History, branch: str, line: list[int], *, whole: bool) -> Asked:
    start, end = None, None
    if not whole:
        first, last = sorted(random.choices(range(len(line)), k=2))
        end = None if first == 0 and random.random() < 0.5 else line[first]
        start = None if random.random() < 0.2 else line[last]
    names = [column.name for column in history.columns if column.kind in KEYED]
    schema = history.table.handle.view(snapshot_id=end).schema if end else None
    if schema is not None:
        names = [name for name in names if name in schema.arrow.names]
    keyed = bool(names) and random.random() < 0.5
    keys = tuple(random.sample(names, min(len(names), random.choice((1, 1, 2))))) if keyed else None
    return Asked(branch, start, end, keys, random.random() < 0.5, random.random() < 0.4)


def _drawn_stream(random: Random, branch: str, line: list[int]) -> Asked:
    limit = random.choice((None, (MOST_FILES, "1"), (MOST_FILES, "2"), (MOST_ROWS, "3")))
    return Asked(
        branch, random.choice(line), None, None, False, False, () if limit is None else (limit,)
    )


def _check(history: History, asked: Asked) -> None:
    try:
        small = 1 if asked.spread else changes_plan.GROUP_BYTES
        with mock.patch.object(changes_plan, "GROUP_BYTES", small):
            _compare(history, asked, _reader_of(asked)(history, asked))
    except Exception as error:
        words = f"{type(error).__name__} in {asked}: {error}"
        raise history.divergence(words) from error


def _reader_of(asked: Asked) -> Callable[[History, Asked], pa.Table]:
    if asked.limits is not None:
        return _streamed
    return _spread if asked.spread else _read


def _streamed(history: History, asked: Asked) -> pa.Table:
    """Read a feed as a streaming query does, with a new reader for every batch."""
    options = {"changes": "true", STARTING: str(asked.start), **dict(asked.limits or ())}
    schema = history.table.handle.view(ref=asked.branch).schema

    def reader() -> TableStream:
        return TableStream(history.table.handle, asked.branch, schema, options)

    batches: list[pa.RecordBatch] = []
    position, new = reader().initial(), True
    while True:
        end = json.loads(json.dumps(reader().latest(None if new else position)))
        kernel, tasks = reader().plan(position, end)
        batches += [batch for task in tasks for batch in kernel(task)]
        if end == position:
            return pa.Table.from_batches(batches, reader().schema)
        position, new = end, False


def _read(history: History, asked: Asked) -> pa.Table:
    given = {name: getattr(asked, name) for name in ("start", "end", "keys", "net", "branch")}
    return history.table.changes_arrow(**given)


def _spread(history: History, asked: Asked) -> pa.Table:
    """Read a feed as Spark does: in tasks that hand frames on, by bucket."""
    plan = planned(history.table.handle, history.table._engine, asked.request())
    spread = partial(spread_changes, plan.how, 3)
    frames = [batch for task in plan.tasks(3) for batch in spread(task)]
    by_bucket: dict[int, list[pa.RecordBatch]] = {}
    for batch in frames:
        for row in range(batch.num_rows):
            one = batch.slice(row, 1)
            by_bucket.setdefault(one.column(0)[0].as_py(), []).append(one)
    settle = partial(settle_frames, plan.how, raw_schema(plan.context))
    parts = [batch for bucket in by_bucket.values() for batch in settle(bucket)]
    return pa.Table.from_batches(parts, plan.schema).sort_by("_change_ordinal")


def _compare(history: History, asked: Asked, found: pa.Table) -> None:
    table = history.table
    travels = {} if asked.end is None else {"snapshot_id": asked.end}
    ref = {} if travels or asked.branch == "main" else {"ref": asked.branch}
    end = table.handle.view(**travels, **ref)
    rows = Counter(_rows_at(table, end, asked.start))
    names = [name for name in found.column_names if name not in CHANGE_COLUMNS]
    assert names == end.schema.arrow.names
    kinds = found["_change_type"].to_pylist()
    ordinals = found["_change_ordinal"].to_pylist()
    texts = [read_tuples(found.select(names).slice(at, 1))[0] for at in range(found.num_rows)]
    for ordinal in sorted(set(ordinals)):
        places = [at for at, each in enumerate(ordinals) if each == ordinal]
        gone = Counter(texts[at] for at in places if kinds[at] in GONE)
        came = Counter(texts[at] for at in places if kinds[at] in CAME)
        if not asked.net:  # of a net feed only the sum is a state of the table
            assert gone <= rows, f"commit {ordinal} deletes {gone - rows}, which is not there"
        rows.subtract(gone)
        rows.update(came)
    assert not [row for row, count in rows.items() if count < 0], f"too few: {rows}"
    want = Counter(read_tuples(table.arrow(**travels, **ref)))
    assert +rows == want, f"replayed\n  {+rows}\nnot\n  {want}"
    _check_types(asked, found, texts)


def _check_types(asked: Asked, found: pa.Table, texts: list[str]) -> None:
    """Each update has both images; net changes do not undo each other."""
    kinds = Counter(found["_change_type"].to_pylist())
    assert kinds["update_preimage"] == kinds["update_postimage"]
    if asked.keys is not None and not asked.net:
        _check_pairs(asked.keys, found)
    if asked.net and asked.keys is not None:
        types = found["_change_type"].to_pylist()
        gone = {text for text, kind in zip(texts, types, strict=True) if kind in GONE}
        came = {text for text, kind in zip(texts, types, strict=True) if kind in CAME}
        assert not gone & came, f"net changes delete and insert {gone & came}"


def _check_pairs(keys: tuple[str, ...], found: pa.Table) -> None:
    columns = ["_change_ordinal", *keys]
    images = {}
    for kind in ("update_preimage", "update_postimage", "delete", "insert"):
        mask = pa.array([each == kind for each in found["_change_type"].to_pylist()], pa.bool_())
        images[kind] = Counter(read_tuples(found.select(columns).filter(mask)))
    assert images["update_preimage"] == images["update_postimage"]
    lone = {key for key in images["delete"].keys() & images["insert"].keys() if "None" not in key}
    assert not lone, f"not paired: {lone}"


def _rows_at(table: Any, end: Any, start: int | None) -> list[str]:
    if start is None:
        return []
    read = planned_view(end.at(table.handle.snapshot(start)))
    tasks = scan_tasks(read.plan, read.context, slots=1)
    batches = [batch for task in tasks for batch in scan_kernel(task)]
    return read_tuples(pa.Table.from_batches(batches, output_schema(read.context)))
