"""Operations that lose to a compaction run again unseen; those that lose to a change do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.commit.phases import Phase
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import CommitConflictError
from rowlake.model.change import Isolation, Operation
from rowlake.model.merge import Action, When
from rowlake.model.outcome import Landed
from rowlake.model.predicate import Leaf, Op
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.delete import Selection, delete, run_delete
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.verbs.write import WriteOptions
from tests.any_format import changing
from tests.lakes import make_lake
from tests.parts.compacting import compact
from tests.parts.failing import stray_files
from tests.parts.marking import files_of, marking
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from rowlake.table import Table

NAME = "shop.t"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("p", pa.int32()),
        pa.field("v", pa.string()),
    ]
)
SOURCE = [pa.field("k", pa.int64()), pa.field("p", pa.int32()), pa.field("v", pa.string())]
BY_ID = Matching((("id", "k"),), (False,))
UPDATE = TaskClause(When.MATCHED, Action.UPDATE, values={"v": "v"})
INSERT = TaskClause(When.NOT_MATCHED, Action.INSERT, values={"id": "k", "p": "p", "v": "v"})
MARK, REWRITE = "merge-on-read", "copy-on-write"
ROWS = 30


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def table(lake) -> Table:
    return make(lake, "3")


def make(lake, version: str, partition_by=()) -> Table:
    """Make a table of three data files by id, with deleted rows in the last of them."""
    properties = {
        "format-version": version,
        "commit.retry.min-wait-ms": "1",
        # What changed rows is not replanned here, so that it shows as a conflict.
        "rowlake.commit.replan": "false",
    }
    made = lake.create_table(NAME, COLUMNS, partition_by=partition_by, properties=properties)
    for first in (0, 10, 20):
        made.append(rows(*range(first, first + 10)))
    made.delete("id >= 25", mode=MARK)
    return made


def rows(*ids: int, v: str = "old") -> pa.Table:
    return pa.table(
        {"id": list(ids), "p": [i % 3 for i in ids], "v": [f"{v} {i}" for i in ids]}, COLUMNS
    )


def held(table: Table, ref: str = "main") -> dict[int, str]:
    found = table.arrow(["id", "v"], ref=ref)
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found["v"].to_pylist(), strict=True))


def old(*but: int) -> dict[int, str]:
    return {i: f"old {i}" for i in range(25) if i not in but}


def below(limit: int) -> Leaf:
    return Leaf(("id",), Op.LT, (limit,))


def interrupted(_: Any, *others: Callable[[], Any]) -> AbstractContextManager[None]:
    """Run the others, one each time that a write inside the block has written its files."""
    return stopped_at(Phase.WRITTEN, *others)


# ---------------------------------------------------------------------- the kinds of operations


def by_predicate(table: Table, options: WriteOptions, clause: TaskClause, verb: str):
    view = table.handle.view()
    change = RowChange(verb, (clause,), predicate=bind(below(5), view.schema))
    return change_rows(table.handle, table._engine, change, options)[1]


def deleted(table: Table, options: WriteOptions):
    clause = TaskClause(When.MATCHED, Action.DELETE)
    return by_predicate(table, options, clause, "delete")


def updated(table: Table, options: WriteOptions):
    clause = TaskClause(When.MATCHED, Action.UPDATE, values={"v": pa.array(["set"])})
    return by_predicate(table, options, clause, "update")


def merged(table: Table, options: WriteOptions, ids=(3, 24, 100), **more: Any):
    view = table.handle.view(ref=options.branch)
    given = rows(*ids, v="new").rename_columns(["k", "p", "v"])
    with staging(table._engine, view) as place:
        # Once staged the source is not asked again: batches that were read are gone.
        staged = place.stage(iter(given.to_batches()), Shape(SOURCE, ("k",)))
        change = RowChange("merge", (UPDATE, INSERT), BY_ID, staged=staged, **more)
        return change_rows(table.handle, table._engine, change, options)[1]


def upserted(table: Table, options: WriteOptions):
    given = {"mode": options.mode, "isolation": options.isolation.value}
    return table.upsert(rows(3, 24, 100, v="new"), ["id"], **given)


def found_deleted(table: Table, options: WriteOptions):
    """Delete rows that were looked for beforehand, by their positions."""

    def select(handle: Any) -> Selection:
        view = handle.view()
        found = table.arrow(["_file", "_pos"], below(5), snapshot_id=view.snapshot_id)
        return Selection(bind(below(5), view.schema), found.to_batches(), view.snapshot_id)

    return delete(table.handle, table._engine, select, options)[1]


def found_merged(table: Table, options: WriteOptions):
    """Update and insert rows that were looked for beforehand; the values come from outside."""
    fields = [pa.field("_file", pa.string()), pa.field("_pos", pa.int64()), *SOURCE]
    source = {3: "new 3", 24: "new 24", 100: "new 100"}

    def find(handle: Any):
        view = handle.view()
        there = table.arrow(["_file", "_pos", "id"], snapshot_id=view.snapshot_id).to_pylist()
        places = {one["id"]: (one["_file"], one["_pos"]) for one in there}
        joined = [
            (*places.get(key, (None, None)), key, key % 3, value) for key, value in source.items()
        ]
        given = pa.table(list(zip(*joined, strict=True)), schema=pa.schema(fields))
        with staging(table._engine, view) as place:
            shape = Shape(fields, dealing=Dealing(file_column="_file"))
            change = RowChange(
                "merge",
                (UPDATE, INSERT),
                Matching(location="_file", position="_pos"),
                staged=place.stage(given.to_batches(), shape),
                snapshot_id=view.snapshot_id,
            )
            return change_rows(handle, table._engine, change, options)

    return rerun_on_conflict(table.handle, find)[1]


NEW = {3: "new 3", 24: "new 24", 100: "new 100"}
SET = dict.fromkeys(range(5), "set")
KINDS: dict[str, tuple[Callable[..., Any], dict[int, str], tuple[int, int, int]]] = {
    "delete": (deleted, old(*range(5)), (0, 5, 0)),
    "update": (updated, old() | SET, (5, 0, 0)),
    "merge": (merged, old() | NEW, (2, 0, 1)),
    "upsert": (upserted, old() | NEW, (2, 0, 1)),
    "delete of found rows": (found_deleted, old(*range(5)), (0, 5, 0)),
    "merge of found rows": (found_merged, old() | NEW, (2, 0, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "version, mode, isolation",
    [
        ("2", MARK, Isolation.SERIALIZABLE),
        ("2", REWRITE, Isolation.SNAPSHOT),
        ("3", MARK, Isolation.SNAPSHOT),
        ("3", REWRITE, Isolation.SERIALIZABLE),
    ],
)
def test_an_operation_that_lost_to_compactions_runs_again_unseen(
    tmp_path, lake, monkeypatch, kind, version, mode, isolation
):
    operation, expected, counts = KINDS[kind]
    table = make(lake, version)

    def other() -> None:
        compact(lake.table(NAME))

    with interrupted(monkeypatch, other, other):
        result = operation(table, WriteOptions(mode=mode, isolation=isolation))
    assert held(lake.table(NAME)) == expected
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == counts
    operations = [one.operation for one in lake.table(NAME).snapshots()[-3:-1]]
    assert operations == ["replace", "replace"]
    assert stray_files(tmp_path, None, NAME) == set()


def test_reruns_are_counted_as_retries(lake, table, monkeypatch):
    with interrupted(monkeypatch, lambda: compact(lake.table(NAME))):
        assert merged(table, WriteOptions(mode=MARK)).retries == 1


def test_a_compaction_of_other_files_is_not_in_the_way(lake, table, monkeypatch):
    counted = []
    with interrupted(monkeypatch, lambda: counted.append(compact(lake.table(NAME), below(9)))):
        merged(table, WriteOptions(mode=MARK), ids=(24, 100))
    assert counted[0].rewritten_data_files_count == 1
    assert held(lake.table(NAME)) == old() | {24: "new 24", 100: "new 100"}


def test_on_a_branch_a_compaction_of_it_is_what_counts(lake, table, monkeypatch):
    table.create_branch("b")
    with interrupted(monkeypatch, lambda: compact(lake.table(NAME), branch="b")):
        result = table.delete("id < 5", branch="b", mode=MARK)
    assert result.rows_deleted == 5
    assert held(table, "b") == old(*range(5))
    with interrupted(monkeypatch, lambda: compact(lake.table(NAME))):
        assert table.delete("id < 6", branch="b", mode=MARK).rows_deleted == 1
    assert (held(table), held(table, "b")) == (old(), old(*range(6)))


# ---------------------------------------------------------------------- changes are still conflicts


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("merge", "upsert")])
def test_new_rows_are_a_conflict_also_beside_a_compaction(tmp_path, lake, table, monkeypatch, kind):
    def other() -> None:
        compact(lake.table(NAME))
        # In the range of every operation here, and changed by none.
        lake.table(NAME).append(pa.table([[-1], [0], ["theirs"]], schema=COLUMNS))
        lake.table(NAME).append(pa.table([[50], [0], ["theirs"]], schema=COLUMNS))

    serializable = WriteOptions(mode=MARK, isolation=Isolation.SERIALIZABLE)
    with (
        interrupted(monkeypatch, other),
        pytest.raises(CommitConflictError, match="added data files") as raised,
    ):
        KINDS[kind][0](table, serializable)
    assert not raised.value.same_rows
    assert held(lake.table(NAME)) == old() | {-1: "theirs", 50: "theirs"}
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("kind", ["merge", "upsert"])
def test_new_rows_between_the_keys_of_a_source_are_no_conflict(lake, table, monkeypatch, kind):
    def other() -> None:
        lake.table(NAME).append(pa.table([[-1], [0], ["theirs"]], schema=COLUMNS))
        lake.table(NAME).append(pa.table([[50], [0], ["theirs"]], schema=COLUMNS))

    with interrupted(monkeypatch, other):
        result = KINDS[kind][0](table, WriteOptions(mode=MARK, isolation=Isolation.SERIALIZABLE))
    assert (result.rows_updated, result.rows_inserted, result.retries) == (2, 1, 1)
    assert held(lake.table(NAME)) == old() | NEW | {-1: "theirs", 50: "theirs"}


@pytest.mark.parametrize("first", ["compaction", "rewrite"])
def test_files_that_others_rewrote_are_a_conflict_whatever_went_by_compaction(
    lake, table, monkeypatch, first
):
    steps = [
        lambda: compact(lake.table(NAME), below(9)),
        lambda: lake.table(NAME).delete("id = 20", mode=REWRITE, isolation="snapshot"),
    ]

    def other() -> None:
        for step in steps if first == "compaction" else steps[::-1]:
            step()

    with interrupted(monkeypatch, other), pytest.raises(CommitConflictError) as raised:
        merged(table, WriteOptions(mode=REWRITE, isolation=Isolation.SNAPSHOT))
    assert not raised.value.same_rows
    assert raised.value.snapshot_id == next(
        one.snapshot_id for one in lake.table(NAME).snapshots()[::-1] if one.operation != "replace"
    )
    assert held(lake.table(NAME)) == old(20)


def test_after_a_compaction_an_operation_sees_what_others_did_since(lake, table, monkeypatch):
    def other() -> None:
        compact(lake.table(NAME))
        lake.table(NAME).delete("id = 3 OR id = 9", mode=MARK)

    with interrupted(monkeypatch, other):
        result = deleted(table, WriteOptions(mode=MARK))
    assert result.rows_deleted == 4
    assert held(lake.table(NAME)) == old(*range(5), 9)


# ------------------------------------------------------------------- values of the table itself


def test_values_read_from_the_table_are_not_used_on_another_head(
    tmp_path, lake, table, monkeypatch
):
    with (
        interrupted(monkeypatch, lambda: compact(lake.table(NAME))),
        pytest.raises(CommitConflictError) as raised,
    ):
        merged(table, WriteOptions(mode=MARK), reads_target=True)
    assert raised.value.same_rows
    assert held(lake.table(NAME)) == old()
    assert stray_files(tmp_path, None, NAME) == set()


# ---------------------------------------------------------------------- limits


def test_delete_files_that_were_compacted_do_not_stop_a_rewrite(lake, monkeypatch):
    table = make(lake, "2")
    file = next(one for one in files_of(table) if one in marked_files(table))

    def other() -> None:
        writer = marking(lake.table(NAME), {file: []})
        writer.change = replace(writer.change, operation=Operation.REPLACE)
        assert isinstance(writer.commit().outcome, Landed)

    with interrupted(monkeypatch, other):
        table.delete("id = 20", mode=REWRITE)
    assert held(lake.table(NAME)) == old(20)


def marked_files(table: Table) -> set[str]:
    return set(table.inspect("delete_files")["referenced_data_file"].to_pylist())


@pytest.mark.parametrize("setting", ["num-retries", "total-timeout-ms"])
def test_who_may_not_retry_does_not(tmp_path, lake, table, monkeypatch, setting):
    table.set_properties({f"commit.retry.{setting}": "0"})
    with (
        interrupted(monkeypatch, lambda: compact(lake.table(NAME))),
        pytest.raises(CommitConflictError, match="attempts lost"),
    ):
        deleted(table, WriteOptions(mode=MARK))
    assert held(lake.table(NAME)) == old()
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("kind", ["delete", "update", "merge"])
def test_what_is_bound_to_columns_is_not_run_on_another_schema(lake, table, monkeypatch, kind):
    def other() -> None:
        compact(lake.table(NAME))
        with changing(lake.table(NAME), "schema") as update:
            update.rename_column("v", "w")

    with interrupted(monkeypatch, other), pytest.raises(CommitConflictError, match="read"):
        KINDS[kind][0](table, WriteOptions(mode=MARK, isolation=Isolation.SNAPSHOT))
    assert len(lake.table(NAME).arrow()) == 25


@pytest.mark.parametrize("kind", ["upsert", "delete of found rows"])
def test_what_reads_the_schema_itself_runs_on_a_newer_one(lake, table, monkeypatch, kind):
    def other() -> None:
        compact(lake.table(NAME))
        with changing(lake.table(NAME), "schema") as update:
            update.add_column("more", "string")

    with interrupted(monkeypatch, other):
        KINDS[kind][0](table, WriteOptions(mode=MARK, isolation=Isolation.SNAPSHOT))
    assert held(lake.table(NAME)) == KINDS[kind][1]


def test_source_rows_dealt_by_partition_meet_their_rows_under_a_new_spec(lake, monkeypatch):
    table = make(lake, "2", ["p"])

    def other() -> None:
        with changing(lake.table(NAME), "spec") as update:
            update.remove_field("p")
            update.add_identity("v")
        compact(lake.table(NAME))

    with interrupted(monkeypatch, other):
        result = table.upsert(rows(3, 24, 100, v="new"), ["id", "p"], mode=MARK)
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    assert held(lake.table(NAME)) == old() | NEW


def test_a_harmless_append_while_rows_are_looked_for_does_not_matter(lake, table):
    def select(handle: Any) -> Selection:
        view = handle.view()
        found = table.arrow(["_file", "_pos"], below(5), snapshot_id=view.snapshot_id)
        lake.table(NAME).append(rows(70))
        return Selection(bind(below(5), view.schema), found.to_batches(), view.snapshot_id)

    handle, engine = table.handle, table._engine
    _, result = run_delete(handle, engine, select(handle), WriteOptions(mode=MARK), change_rows)
    assert result.rows_deleted == 5
    assert held(lake.table(NAME)) == old(*range(5)) | {70: "old 70"}
