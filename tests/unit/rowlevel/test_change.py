"""Row changes without Spark: clauses in every combination, over one task and over many."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rowlake.engine.spark import Engine
from rowlake.errors import CardinalityError
from rowlake.model.merge import Action, When
from rowlake.model.partition import OrderBy
from rowlake.model.predicate import Leaf, Op
from rowlake.plan import tasks as planning
from rowlake.prune.bind import bind
from rowlake.rowlevel import staged as staged_rows
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import ChangeTask, Matching, TaskClause
from rowlake.verbs.alter import set_sort_order
from rowlake.verbs.write import WriteOptions
from tests.any_format import changing, read_by_others
from tests.lakes import files_in, make_lake, rows_of

pytestmark = pytest.mark.delta

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.string())])
SOURCE = [
    pa.field("k", pa.int64()),
    pa.field("p", pa.int32()),
    pa.field("v", pa.string()),
    pa.field("yes", pa.bool_()),
]
BY_ID = Matching((("id", "k"),), (False,))
BY_BOTH = Matching((("id", "k"), ("p", "p")), (False, False))
MATCHED, NEW, GONE = When.MATCHED, When.NOT_MATCHED, When.NOT_MATCHED_BY_SOURCE
ALL = {"id": "k", "p": "p", "v": "v"}
UPDATE = TaskClause(MATCHED, Action.UPDATE, values={"v": "v"})
DELETE = TaskClause(MATCHED, Action.DELETE)
INSERT = TaskClause(NEW, Action.INSERT, values=ALL)
MODES = {
    ("2", "copy-on-write"): "rewritten",
    ("2", "merge-on-read"): "positions",
    ("3", "merge-on-read"): "vectors",
    ("3", "auto"): "auto",
}


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=MODES, ids=MODES.get)
def way(request):
    """A format version and a mode."""
    return request.param


@pytest.fixture
def three_tasks(monkeypatch):
    """Have the work dealt out to up to three tasks; it would be one otherwise."""
    monkeypatch.setattr(Engine, "parallelism", 3)
    monkeypatch.setattr(planning, "LEAST_TASK_BYTES", 1)


def rows(*ids: int, v: str = "old") -> pa.Table:
    return pa.table(
        {"id": list(ids), "p": [i % 3 for i in ids], "v": [f"{v} {i}" for i in ids]}, COLUMNS
    )


def source(*ids: int | None, yes=(), v: str = "new") -> pa.Table:
    columns = {
        "k": list(ids),
        "p": [None if i is None else i % 3 for i in ids],
        "v": [f"{v} {i}" for i in ids],
        "yes": [i in yes for i in ids],
    }
    return pa.table(columns, pa.schema(SOURCE))


def create(lake, way, layout=(), **properties):
    properties = {"format-version": way[0], **properties}
    return lake.create_table("shop.t", COLUMNS, partition_by=layout, properties=properties)


def run(table, way, given: pa.Table, *clauses: TaskClause, dealt: bool = False, **more):
    """Merge rows into a table; return the result."""
    view = table.handle.view()
    matching = more.pop("matching", BY_ID)
    dealing = Dealing()
    if dealt:
        staged = dict(matching.keys)
        names = [view.schema.paths[field.source_id][0] for field in view.spec.fields]
        pairs = tuple((name, staged[name]) for name in dict.fromkeys(names))
        dealing = Dealing(view.spec, view.schema, pairs)
    bound = tuple(
        clause
        if clause.predicate is None
        else replace(clause, predicate=bind(clause.predicate, view.schema))
        for clause in clauses
    )
    more.setdefault("checks_cardinality", True)
    with staging(table._engine, view) as place:
        keys = tuple(held for _, held in matching.keys)
        staged = place.stage(given.to_batches(), Shape(SOURCE, keys, dealing))
        change = RowChange("merge", bound, matching, staged=staged, **more)
        _, result = change_rows(table.handle, table._engine, change, WriteOptions(mode=way[1]))
    return result


def counts(result) -> tuple[int, int, int]:
    return result.rows_updated, result.rows_deleted, result.rows_inserted


def check(table, expected: dict[int, tuple]) -> None:
    """Compare with what another library reads, too."""
    wanted = sorted(((key, *rest) for key, rest in expected.items()), key=repr)
    assert rows_of(table.arrow()) == wanted
    for found in read_by_others(table):
        assert rows_of(found) == wanted


def old(*ids: int) -> dict[int, tuple]:
    return {i: (i % 3, f"old {i}") for i in ids}


def new(*ids: int) -> dict[int, tuple]:
    return {i: (i % 3, f"new {i}") for i in ids}


def ids_below(limit: int) -> Leaf:
    return Leaf(("id",), Op.LT, (limit,))


@pytest.mark.usefixtures("three_tasks")
def test_update_insert_and_delete_by_several_clauses(lake, way):
    table = create(lake, way)
    for first in (0, 10, 20):
        table.append(rows(*range(first, first + 10)))
    clauses = [
        TaskClause(MATCHED, Action.DELETE, flag="yes"),
        TaskClause(MATCHED, Action.UPDATE, predicate=ids_below(15), values={"v": "v"}),
        TaskClause(NEW, Action.INSERT, flag="yes", values=ALL),
    ]
    result = run(table, way, source(3, 5, 14, 16, 25, 40, 41, yes=(5, 25, 40)), *clauses)
    # 16 matches, but no clause is for it; 41 is new, but not wanted.
    assert counts(result) == (2, 2, 1)
    kept = [i for i in range(30) if i not in (3, 5, 14, 25)]
    check(table, old(*kept) | new(3, 14, 40))


def test_the_first_clause_that_fits_is_taken(lake, way):
    table = create(lake, way)
    table.append(rows(*range(10)))
    clauses = [
        TaskClause(MATCHED, Action.UPDATE, flag="yes", values={"v": "v"}),
        TaskClause(MATCHED, Action.DELETE, predicate=ids_below(5)),
        TaskClause(MATCHED, Action.UPDATE, values={"p": pa.array([99], pa.int32())}),
    ]
    result = run(table, way, source(1, 2, 7, 8, yes=(1, 7)), *clauses)
    assert counts(result) == (3, 1, 0)
    check(table, old(0, 3, 4, 5, 6, 9) | new(1, 7) | {8: (99, "old 8")})


@pytest.mark.parametrize("dealt", [False, True], ids=["whole", "dealt"])
@pytest.mark.usefixtures("three_tasks")
def test_rows_without_a_match_change_by_clauses_of_their_own(lake, way, dealt):
    table = create(lake, way, ("p",))
    table.append(rows(*range(12)))
    table.append(rows(*range(12, 24)))
    stale = pa.array(["stale"])
    clauses = [
        UPDATE,
        INSERT,
        TaskClause(GONE, Action.DELETE, predicate=ids_below(4)),
        TaskClause(GONE, Action.UPDATE, predicate=ids_below(10), values={"v": stale}),
        TaskClause(GONE, Action.DELETE, predicate=Leaf(("id",), Op.EQ, (20,))),
    ]
    given = source(1, 5, 13, 30, 31)
    result = run(table, way, given, *clauses, dealt=dealt, matching=BY_BOTH)
    assert counts(result) == (3 + 5, 3 + 1, 2)
    expected = old(*(i for i in range(10, 24) if i not in (13, 20))) | new(1, 5, 13, 30, 31)
    check(table, expected | {i: (i % 3, "stale") for i in (4, 6, 7, 8, 9)})


def test_an_empty_source_leaves_all_rows_without_a_match(lake, way):
    table = create(lake, way)
    table.append(rows(*range(6)))
    gone = TaskClause(GONE, Action.DELETE, predicate=ids_below(2))
    assert run(table, way, source(), UPDATE, INSERT).snapshot_id is None
    assert counts(run(table, way, source(), UPDATE, INSERT, gone)) == (0, 2, 0)
    check(table, old(*range(2, 6)))
    everything = TaskClause(GONE, Action.DELETE)
    assert counts(run(table, way, source(), everything)) == (0, 4, 0)
    check(table, {})


def test_nulls_match_where_they_are_said_to(lake, way):
    table = create(lake, way)
    table.append(pa.table({"id": [1, None, None], "p": [0, 1, 2], "v": ["a", "b", "c"]}, COLUMNS))
    given = source(1, None)
    assert counts(run(table, way, given, UPDATE)) == (1, 0, 0)
    safe = Matching((("id", "k"),), (True,))
    assert counts(run(table, way, given, UPDATE, matching=safe)) == (3, 0, 0)
    found = sorted(table.arrow()["v"].to_pylist())
    assert found == ["new 1", "new None", "new None"]


def test_source_rows_that_are_not_eligible_match_nothing(lake, way):
    table = create(lake, way)
    table.append(rows(1, 2))
    able = replace(BY_ID, eligible="yes")
    result = run(table, way, source(1, 2, 3, yes=(2,)), UPDATE, INSERT, matching=able)
    assert counts(result) == (1, 0, 2)
    found = sorted(table.arrow()["v"].to_pylist())
    assert found == ["new 1", "new 2", "new 3", "old 1"]


def test_a_condition_on_the_target_alone_bounds_what_matches(lake, way):
    table = create(lake, way)
    table.append(rows(1, 2, 3))
    schema = table.handle.view().schema
    result = run(table, way, source(1, 3), DELETE, INSERT, predicate=bind(ids_below(2), schema))
    assert counts(result) == (0, 1, 1)
    found = sorted(table.arrow()["v"].to_pylist())
    assert found == ["new 3", "old 2", "old 3"]


@pytest.mark.parametrize("dealt", [False, True], ids=["whole", "dealt"])
@pytest.mark.usefixtures("three_tasks")
def test_two_matches_of_one_row_leave_the_table_as_it_was(lake, way, dealt):
    table = create(lake, way, ("p",))
    for first in (0, 30):
        table.append(rows(*range(first, first + 30)))
    head, before = table.snapshots()[-1].snapshot_id, files_in(table.location)
    given = source(*range(25), 40, 41, 41, 50, 70)
    with pytest.raises(CardinalityError) as raised:
        run(table, way, given, UPDATE, INSERT, dealt=dealt, matching=BY_BOTH)
    assert list(raised.value.keys) == ["id=41, p=2"]
    assert table.snapshots()[-1].snapshot_id == head
    assert files_in(table.location) == before
    check(table, old(*range(60)))
    # A source row that matches nothing may be there twice.
    given = source(*range(25), 70, 70)
    result = run(table, way, given, UPDATE, INSERT, dealt=dealt, matching=BY_BOTH)
    assert counts(result) == (25, 0, 2)


def test_an_unconditional_delete_needs_no_single_match(lake, way):
    table = create(lake, way)
    table.append(rows(*range(6)))
    result = run(table, way, source(1, 1, 2, 9), DELETE, checks_cardinality=False)
    assert counts(result) == (0, 2, 0)
    check(table, old(0, 3, 4, 5))


def test_target_rows_of_one_key_all_change(lake, way):
    table = create(lake, way)
    table.append(rows(1, 2))
    table.append(rows(1, 3))
    assert counts(run(table, way, source(1), UPDATE)) == (2, 0, 0)
    assert sorted(table.arrow()["v"].to_pylist()) == ["new 1", "new 1", "old 2", "old 3"]


@pytest.mark.not_delta("partition transforms")
@pytest.mark.parametrize("kept", ["inline", "file"])
@pytest.mark.usefixtures("three_tasks")
def test_a_skewed_partition_is_split_among_tasks(lake, way, kept, monkeypatch):
    """Several tasks then read one part of the source, and none of them alone can insert."""
    if kept == "file":
        monkeypatch.setattr(staged_rows, "_INLINE_BYTES", 0)
    table = create(lake, way, ("bucket(2, p)",))
    for first in range(0, 60, 6):
        table.append(rows(*range(first, first + 60, 3)[:6]))
    seen = watched_tasks(monkeypatch)
    held = sorted(table.arrow()["id"].to_pylist())
    given = source(*{*held[::2], *range(200, 210)})
    matching = Matching((("id", "k"), ("p", "p")), (False, False))
    result = run(table, way, given, UPDATE, INSERT, dealt=True, matching=matching)
    fresh = [i for i in (*held[::2], *range(200, 210)) if i not in held]
    assert result.rows_inserted == len(fresh)
    assert result.rows_updated == sum(i in set(held[::2]) for i in held)
    assert [len(tasks) > 1 for tasks in seen] == [True, False]
    found = sorted(table.arrow()["id"].to_pylist())
    assert found == sorted([*held, *fresh])


def watched_tasks(monkeypatch) -> list[list]:
    """Return the tasks of every round of a change, as they are run."""
    rounds = []
    whole = Engine.run

    def run_watched(self, kernel, tasks, *args, **kwargs):
        if isinstance(tasks[0], ChangeTask):
            rounds.append(tasks)
        return whole(self, kernel, tasks, *args, **kwargs)

    monkeypatch.setattr(Engine, "run", run_watched)
    return rounds


@pytest.mark.not_delta("partition transforms")
@pytest.mark.usefixtures("three_tasks")
def test_many_partitions_go_to_few_tasks(lake, way, monkeypatch):
    table = create(lake, way, ("bucket(64, id)",))
    table.append(rows(*range(200)))
    seen = watched_tasks(monkeypatch)
    given = source(*range(100, 300))
    result = run(table, way, given, UPDATE, INSERT, dealt=True)
    assert counts(result) == (100, 0, 100)
    check(table, old(*range(100)) | new(*range(100, 300)))
    (only,) = seen
    assert 1 < len(only) <= 9


def test_a_large_source_is_no_tiny_work_even_for_an_empty_table(lake, monkeypatch):
    sizes = []
    whole = Engine.run

    def run_watched(self, kernel, tasks, *args, size_in_bytes, **kwargs):
        if isinstance(tasks[0], ChangeTask):
            sizes.append(size_in_bytes)
        return whole(self, kernel, tasks, *args, size_in_bytes=size_in_bytes, **kwargs)

    monkeypatch.setattr(Engine, "run", run_watched)
    way = ("3", "auto")
    given = source(*range(1000))
    assert counts(run(create(lake, way), way, given, UPDATE, INSERT)) == (0, 0, 1000)
    assert sizes[0] >= given.nbytes / 2


@pytest.mark.not_delta("partition specs that change")
@pytest.mark.usefixtures("three_tasks")
def test_files_of_an_older_spec_take_part(lake, way):
    table = create(lake, way, ("p",))
    table.append(rows(*range(12)))
    with changing(table, "spec") as update:
        update.add_field("id", "bucket[4]")
    table.append(rows(*range(12, 24)))
    given = source(*range(6, 30))
    gone = TaskClause(GONE, Action.DELETE, predicate=ids_below(3))
    result = run(table, way, given, UPDATE, INSERT, gone, dealt=True, matching=BY_BOTH)
    assert counts(result) == (18, 3, 6)
    check(table, old(3, 4, 5) | new(*range(6, 30)))


@pytest.mark.not_delta("sort orders")
def test_rewritten_files_keep_the_sort_order(lake, way):
    table = create(lake, way)
    set_sort_order(table.handle, [OrderBy(("v",), ascending=False, nulls_first=False)])
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    run(table, way, source(*range(0, 40, 3), v="pre"), UPDATE, INSERT)
    found = table.arrow(["v", "_file"]).to_pylist()
    for place in table.inspect("data_files")["file_path"].to_pylist():
        inside = [row["v"] for row in found if row["_file"] == place]
        assert inside == sorted(inside, reverse=True)
    expected = {i: (i % 3, f"pre {i}" if i % 3 == 0 else f"old {i}") for i in range(20)}
    check(table, expected | {i: (0, f"pre {i}") for i in range(21, 40, 3)})


LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


def lineage(table) -> dict[int, tuple[int, int]]:
    return {row[0]: row[1:] for row in rows_of(table.arrow(LINEAGE))}


@pytest.mark.not_delta("row ids")
@pytest.mark.spec("Row Lineage: an update keeps the row id and takes the new sequence number")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read", "auto"])
def test_updated_rows_keep_their_ids(lake, mode):
    way = ("3", mode)
    table = create(lake, way)
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    first = lineage(table)
    assert set(first.values()) == {(i, 1 + i // 10) for i in range(20)}
    run(table, way, source(2, 11, 12, 30), UPDATE, INSERT)
    second = lineage(table)
    for i in range(20):
        changed = i in (2, 11, 12)
        assert second[i] == (first[i][0], 3 if changed else first[i][1])
    assert second[30][0] >= 20
    assert second[30][1] == 3
    run(table, way, source(3, 4, 30), DELETE, checks_cardinality=False)
    third = lineage(table)
    assert third == {i: pair for i, pair in second.items() if i not in (3, 4, 30)}
    run(table, way, source(2, v="newer"), UPDATE)
    assert lineage(table) == {**third, 2: (third[2][0], 5)}
    assert len({row_id for row_id, _ in third.values()}) == len(third)


@pytest.mark.not_delta("tables without a first version")
def test_what_changes_nothing_is_not_committed(lake, way):
    table = create(lake, way)
    table.append(rows(1, 2))
    assert run(table, way, source(7), UPDATE).snapshot_id is None
    assert (
        run(table, way, source(1), TaskClause(MATCHED, Action.DELETE, flag="yes")).snapshot_id
        is None
    )
    assert len(table.snapshots()) == 1


def test_the_operation_of_the_snapshot_says_what_was_done(lake, way):
    table = create(lake, way)
    table.append(rows(*range(10)))
    run(table, way, source(20), UPDATE, INSERT)
    assert table.snapshots()[-1].operation == "append"
    run(table, way, source(20), DELETE)
    assert table.snapshots()[-1].operation == "delete"
    run(table, way, source(1, 30), UPDATE, INSERT)
    snapshot = table.snapshots()[-1]
    assert snapshot.operation == "overwrite"
    names = ("updated", "deleted", "inserted")
    assert [snapshot.summary[f"rowlake.rows-{name}"] for name in names] == ["1", "0", "1"]
