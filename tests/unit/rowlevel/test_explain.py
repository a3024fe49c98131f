"""EXPLAIN without Spark: what it says is what the operation then does, and nothing is written."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import CardinalityError
from rowlake.model.merge import Action, When
from rowlake.model.plan import Plan, PlannedFile, Pruned, size_text
from rowlake.model.predicate import TRUE, Leaf, Op, conjunction, disjunction
from rowlake.model.predicate_text import predicate_text
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.delete import DELETE
from rowlake.rowlevel.explain import explain_change, explain_truncate
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.storage.files import Storage
from rowlake.verbs.write import view_for_write
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, sales

COUNTED = ("rows_updated", "rows_deleted", "rows_inserted", "rows_copied", "rows_unchanged")
UPDATE = TaskClause(When.MATCHED, Action.UPDATE, values={"note": "note"})
INSERT = TaskClause(When.NOT_MATCHED, Action.INSERT, values={n: n for n in SALES.names})
GONE = TaskClause(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, predicate=Leaf(("id",), Op.LT, (5,)))


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def version(request):
    return request.param


@pytest.fixture(params=["auto", "copy-on-write", "merge-on-read"])
def mode(request):
    return request.param


def make_table(lake, version, *partition_by, **properties):
    table = lake.create_table(
        "shop.sales",
        SALES,
        partition_by=partition_by,
        properties={"format-version": version, **properties},
    )
    for first in (0, 100, 200):
        table.append(sales(100, first))
    return table


def leaf(name: str, op: str, *values) -> Leaf:
    return Leaf((name,), Op(op), values)


class Asked:
    """An operation on a table: first explained, then run."""

    def __init__(self, lake, table, **options) -> None:
        self.engine = lake.engine
        self.table = table
        self.handle, self.options = table.for_write(options)
        self.view = view_for_write(self.handle, self.options.branch)

    def both(self, change: RowChange):
        change = replace(change, predicate=bind(change.predicate, self.view.schema))
        before = files_in(self.table.location), self.table.handle.version
        plan = explain_change(self.handle, self.engine, change, self.options)
        assert (files_in(self.table.location), self.table.handle.version) == before
        return plan, change_rows(self.handle, self.engine, change, self.options)[1]

    def merged(self, change: RowChange, rows: pa.Table, keys=("id",), *, aligned=False):
        dealing = Dealing()
        if aligned:
            dealing = Dealing(self.view.spec, self.view.schema, tuple((k, k) for k in keys))
        pairs = Matching(tuple((key, key) for key in keys), (False,) * len(keys))
        fields = [self.view.schema.arrow.field(name) for name in rows.column_names]
        with staging(self.engine, self.view) as place:
            staged = place.stage(rows.to_batches(), Shape(fields, tuple(keys), dealing))
            return self.both(replace(change, matching=pairs, staged=staged))


def check(plan: Plan, result, before: set[str], table) -> None:
    """Compare what was said with what was done."""
    assert not lake_started_spark(table)
    assert {name: getattr(plan, name) for name in COUNTED} == {
        name: getattr(result, name) for name in COUNTED
    }
    assert plan.files_considered == result.files_considered
    pruned = plan.files_pruned_by_metadata + plan.files_pruned_at_run_time
    assert pruned == result.files_pruned == plan.files_considered - len(plan.files)
    assert plan.files_matched == result.files_matched
    assert plan.operation == result.operation
    gone = {file.location for file in plan.files if file.strategy in ("remove", "rewrite")}
    assert gone == before - data_files(table)
    marked = {file.location for file in plan.files if "delet" in file.strategy}
    assert len(marked) == result.delete_files_added
    assert marked <= {*table.inspect("delete_files")["referenced_data_file"].to_pylist()}


def lake_started_spark(table) -> bool:
    return bool(table._engine.has_session)


def data_files(table) -> set[str]:
    return {*table.inspect("data_files")["file_path"].to_pylist()}


# --- what is said is what is done


@pytest.mark.parametrize("partition", [(), ("store",)], ids=["whole", "store"])
def test_delete(lake, version, mode, partition) -> None:
    table = make_table(lake, version, *partition)
    before = data_files(table)
    predicate = disjunction(
        leaf("id", "<", 40),
        conjunction(leaf("store", "=", 1), leaf("id", "<", 110)),
        conjunction(leaf("store", "=", 2), leaf("id", ">", 150), leaf("note", "is not null")),
        leaf("id", "in", 290, 291),
    )
    change = RowChange("delete", (DELETE,), predicate=predicate)
    plan, result = Asked(lake, table, mode=mode).both(change)
    check(plan, result, before, table)
    assert plan.rows_deleted > 40
    assert (plan.mode, plan.isolation, plan.join) == (mode, "serializable", "none")


def test_whole_files_are_removed_unread(lake, version, mode) -> None:
    table = make_table(lake, version, "store")
    before = data_files(table)
    change = RowChange("delete", (DELETE,), predicate=leaf("store", "=", 3))
    plan, result = Asked(lake, table, mode=mode).both(change)
    check(plan, result, before, table)
    assert {file.reason for file in plan.files} == {"all 25 rows match by metadata; it is not read"}
    assert [file.strategy for file in plan.files] == ["remove"] * 3
    assert plan.files_pruned_by_metadata == 9
    assert (plan.bytes_to_read, plan.bytes_to_write) == (0, 0)


def test_update(lake, version, mode) -> None:
    table = make_table(lake, version)
    before = data_files(table)
    clause = TaskClause(When.MATCHED, Action.UPDATE, values={"note": pa.array(["new"])})
    change = RowChange("update", (clause,), predicate=leaf("id", "<", 103))
    plan, result = Asked(lake, table, mode=mode).both(change)
    check(plan, result, before, table)
    assert plan.rows_updated == 103
    assert plan.files_pruned_by_metadata == 1
    assert plan.files[0].strategy == "remove"  # all rows have a new version elsewhere


@pytest.mark.parametrize("partition", ["", "store", "bucket(3, id)"])
def test_merge(lake, version, mode, partition) -> None:
    table = make_table(lake, version, *([partition] if partition else []))
    before = data_files(table)
    rows = pa.concat_tables([sales(3, 2), sales(60, 100), sales(7, 400)])
    aligned = partition.startswith("bucket")
    change = RowChange("merge", (UPDATE, INSERT), checks_cardinality=True)
    plan, result = Asked(lake, table, mode=mode).merged(change, rows, aligned=aligned)
    check(plan, result, before, table)
    assert (plan.rows_updated, plan.rows_inserted, plan.source_rows) == (63, 7, 70)
    assert plan.join == ("aligned" if aligned else "broadcast")


def test_merge_with_rows_not_matched_by_source(lake, version, mode) -> None:
    table = make_table(lake, version)
    before = data_files(table)
    asked = Asked(lake, table, mode=mode)
    gone = replace(GONE, predicate=bind(GONE.predicate, asked.view.schema))
    change = RowChange("merge", (UPDATE, INSERT, gone))
    plan, result = asked.merged(change, sales(20, 290))
    check(plan, result, before, table)
    assert (plan.rows_updated, plan.rows_deleted, plan.rows_inserted) == (10, 5, 10)
    assert plan.files_pruned_by_metadata + plan.files_pruned_at_run_time == 0
    assert [file.strategy for file in plan.files][-1] == "keep"


def test_rows_that_are_deleted_already_do_not_count(lake, version, mode) -> None:
    table = make_table(lake, version)
    for gone in ("id < 60", "id >= 190 AND id < 199"):
        table.delete(gone, mode="merge-on-read")
    before = data_files(table)
    plan, result = Asked(lake, table, mode=mode).merged(
        RowChange("upsert", (UPDATE, INSERT), skips_unchanged=True),
        pa.concat_tables([sales(70), changed(sales(30, 180))]),
    )
    assert plan.rows_unchanged == 10
    check(plan, result, before, table)


def test_rows_that_equality_deletes_hide_are_not_copied(lake, version) -> None:
    table = make_table(lake, version)
    table.delete("id = 3 OR id = 4", deletes="equality")
    before = data_files(table)
    change = RowChange("delete", (DELETE,), predicate=leaf("id", "<", 10))
    plan, result = Asked(lake, table, mode="copy-on-write").both(change)
    check(plan, result, before, table)
    assert (plan.rows_deleted, plan.rows_copied) == (8, 90)


def test_files_of_an_older_spec(lake, version, mode) -> None:
    table = make_table(lake, version)
    with changing(table, "spec") as spec:
        spec.add_field("id", "bucket[4]")
    table = lake.table("shop.sales")
    table.append(sales(50, 300))
    before = data_files(table)
    change = RowChange("merge", (DELETE, INSERT))
    asked = Asked(lake, table, mode=mode)
    plan, result = asked.merged(change, sales(100, 260), aligned=True)
    check(plan, result, before, table)
    assert (plan.rows_deleted, plan.rows_inserted) == (90, 10)


def changed(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("note")
    return rows.set_column(at, rows.schema.field(at), pa.array(["changed"] * rows.num_rows))


# --- pruning


def test_a_source_without_rows_opens_nothing(lake, version) -> None:
    table = make_table(lake, version)
    plan, result = Asked(lake, table).merged(RowChange("merge", (DELETE, INSERT)), sales(0))
    assert plan.pruned == (Pruned(3, "at run time", "the source has no rows"),)
    assert (plan.files, result.snapshot_id) == ((), None)


def test_the_keys_of_the_source_prune_what_the_predicate_leaves(lake, version) -> None:
    table = make_table(lake, version)
    change = RowChange("merge", (DELETE,), predicate=leaf("id", "<", 200))
    plan, _ = Asked(lake, table).merged(change, sales(5, 10))
    assert plan.pruned == (
        Pruned(1, "by metadata", "no row of theirs can satisfy id < 200"),
        Pruned(1, "at run time", "outside the source's keys, id in (10, 11, 12, 13, 14)"),
    )
    assert (plan.files_pruned_by_metadata, plan.files_pruned_at_run_time) == (1, 1)


def test_partitions_without_a_source_row_are_pruned(lake, version) -> None:
    table = make_table(lake, version, "bucket(8, id)")
    # Too many rows for their keys to be listed one by one.
    rows = pa.concat_tables([sales(1, 0), sales(1, 299)] * 501)
    plan, _ = Asked(lake, table).merged(RowChange("merge", (DELETE,)), rows, aligned=True)
    assert [(each.when, each.reason) for each in plan.pruned] == [
        ("at run time", "no source row falls into their partitions")
    ]
    assert plan.files_matched == 2


def test_an_empty_table(lake, version) -> None:
    table = lake.create_table("shop.sales", SALES, properties={"format-version": version})
    plan, result = Asked(lake, table).merged(RowChange("merge", (UPDATE, INSERT)), sales(4))
    assert (plan.snapshot_id, plan.files_considered, plan.rows_inserted) == (None, 0, 4)
    assert result.rows_inserted == 4
    assert plan.bytes_to_write > 0
    assert "at an empty table" in str(plan)


# --- strategies and bytes


def test_reasons_name_the_share_or_the_mode(lake, version) -> None:
    table = make_table(lake, version)
    predicate = disjunction(leaf("id", "<", 40), leaf("id", "=", 150), leaf("id", ">=", 200))
    change = RowChange(
        "update", (replace(UPDATE, values={"note": pa.array(["x"])}),), predicate=predicate
    )
    plan, _ = Asked(lake, table).both(change)
    marks = "deletion vector" if version == "3" else "position deletes"
    assert [(file.strategy, file.reason) for file in plan.files] == [
        ("remove", "all 100 rows match; none is left in it"),
        ("rewrite", "40 of 100 rows change (40.0%), at least 30%"),
        (marks, "1 of 100 rows change (1.0%), less than 30%"),
    ]
    change = replace(change, predicate=leaf("id", "=", 151))
    plan, _ = Asked(lake, table, mode="copy-on-write").both(change)
    assert [file.reason for file in plan.files] == [
        "1 of 99 rows change; the mode is copy-on-write",
        "no row changes",
    ]


def test_bytes_are_near_to_what_is_written(lake, version, mode) -> None:
    table = lake.create_table("shop.big", SALES, properties={"format-version": version})
    made = random.Random(7)
    for first in (0, 50_000):
        rows = sales(50_000, first)
        notes = pa.array([f"{made.random():.12f}" for _ in range(50_000)])
        table.append(rows.set_column(4, rows.schema.field(4), notes))
    predicate = disjunction(leaf("id", "in", *range(0, 25_000, 13)), leaf("id", ">=", 70_000))
    clause = replace(UPDATE, values={"store": pa.array([7], pa.int32())})
    plan, result = Asked(lake, table, mode=mode).both(
        RowChange("update", (clause,), predicate=predicate)
    )
    assert result.bytes_written * 0.6 < plan.bytes_to_write < result.bytes_written * 1.6
    assert plan.bytes_to_write == sum(file.bytes_to_write for file in plan.files)
    sizes = sum(table.inspect("data_files")["file_size_in_bytes"].to_pylist())
    assert 0 < plan.bytes_to_read < 2 * sizes


def test_vectors_of_one_puffin_file_are_written_once(lake) -> None:
    table = make_table(lake, "3")
    before = files_in(table.location)
    change = RowChange("delete", (DELETE,), predicate=leaf("id", "in", 1, 101, 201))
    _, result = Asked(lake, table).both(change)
    (puffin,) = {name for name in files_in(table.location) - before if name.endswith("puffin")}
    assert result.delete_files_added == 3
    assert result.bytes_written == len(Storage({}).read(puffin))


def test_only_columns_that_are_needed_are_to_be_read(lake, version) -> None:
    table = make_table(lake, version)
    keys, _ = Asked(lake, table).merged(RowChange("merge", (DELETE,)), sales(1, 5000))
    assert keys.bytes_to_read == 0
    some = sales(100, 40)
    keys, _ = Asked(lake, table, mode="merge-on-read").merged(RowChange("merge", (DELETE,)), some)
    sizes = table.inspect("data_files")
    assert 0 < keys.bytes_to_read < sum(sizes["file_size_in_bytes"].to_pylist()) / 4


# --- failures


def test_what_makes_the_operation_fail_makes_its_explanation_fail(lake, version) -> None:
    table = make_table(lake, version)
    before = files_in(table.location)
    twice = pa.concat_tables([sales(2), sales(2)])
    with pytest.raises(CardinalityError, match="2 source rows match one target row"):
        Asked(lake, table).merged(RowChange("merge", (UPDATE,), checks_cardinality=True), twice)
    assert files_in(table.location) == before


# --- truncate


def test_truncate(lake, version) -> None:
    table = make_table(lake, version)
    table.delete("id < 10", mode="merge-on-read")
    asked = Asked(lake, table)
    plan = explain_truncate(asked.handle, lake.engine, asked.options)
    result = table.truncate()
    assert (plan.rows_deleted, plan.files_matched) == (result.rows_deleted, 3)
    assert (plan.operation, result.data_files_removed) == (result.operation, 3)


# --- how a plan looks


def shown(plan: Plan) -> str:
    text = re.sub(r"snapshot \d+", "snapshot 1", str(plan))
    text = re.sub(r"[0-9a-f-]{30,}\.parquet", "….parquet", text)
    text = re.sub(r"(files of|to 64 of) [\d.]+ .?B", r"\1 …", text)
    return re.sub(r"about .* to read, .* to write", "about … to read, … to write", text)


def test_a_plan_prints_as_a_tree(lake) -> None:
    table = make_table(lake, "3", "store")
    change = RowChange("merge", (UPDATE, INSERT), predicate=leaf("id", "<", 200))
    rows = pa.concat_tables([sales(3, 8), sales(30, 70)])
    plan, _ = Asked(lake, table).merged(change, rows)
    assert shown(plan) == (
        "MERGE on shop.sales (at snapshot 1, auto, serializable)\n"
        "├─ join by key, all of the source for every task, 33 source rows\n"
        "├─ 12 data files\n"
        "│  ├─ 4 pruned by metadata: no row of theirs can satisfy id < 200\n"
        "│  ├─ 4 pruned at run time: outside the source's keys, "
        "id in (8, 9, 10, 70, 71, and 28 more)\n"
        "│  └─ 4 left, 4 of them with rows that change\n"
        "├─ 4 files rewritten\n"
        "│  ├─ store=2/….parquet: 9 of 25 rows change (36.0%), at least 30%\n"
        "│  ├─ store=0/….parquet: 8 of 25 rows change (32.0%), at least 30%\n"
        "│  ├─ store=1/….parquet: 8 of 25 rows change (32.0%), at least 30%\n"
        "│  └─ store=3/….parquet: 8 of 25 rows change (32.0%), at least 30%\n"
        "├─ rows: 33 updated, 67 copied\n"
        "├─ runs on driver: 4 data files of … (the driver takes up to 64 of …)\n"
        "└─ about … to read, … to write"
    )


def test_long_lists_of_files_are_cut_and_kept_ones_counted() -> None:
    files = [PlannedFile(f"s3://b/t/data/{n}.parquet", 4, "rewrite", "why") for n in range(7)]
    kept = PlannedFile("elsewhere/k.parquet", 4, "keep", "no row changes")
    plan = Plan("delete", "ns.t", 1, "auto", "snapshot", files=(*files, kept, kept))
    assert str(plan).splitlines()[4:] == [
        "├─ 7 files rewritten",
        *(f"│  ├─ {n}.parquet: why" for n in range(5)),
        "│  └─ and 2 more",
        "├─ 2 files kept: no row changes",
        "├─ rows: none changes",
        "├─ runs on driver: only metadata is read",
        "└─ about 0 B to read, 0 B to write",
    ]
    assert plan.files_matched == 7


def test_a_plan_for_programs_and_notebooks() -> None:
    file = PlannedFile("a.parquet", 4, "rewrite", "1 < 2", rows_deleted=1)
    plan = Plan("delete", "ns.t", 1, "auto", "snapshot", files=(file,), predicate="id < 2")
    found = json.loads(json.dumps(plan.to_dict()))
    assert found["files"] == [
        {
            "location": "a.parquet",
            "rows": 4,
            "strategy": "rewrite",
            "reason": "1 < 2",
            "rows_updated": 0,
            "rows_deleted": 1,
            "bytes_to_read": 0,
            "bytes_to_write": 0,
        }
    ]
    assert (found["operation"], found["files_matched"], found["pruned"]) == ("delete", 1, [])
    assert "id &lt; 2" in plan._repr_html_()
    assert rowlake.Plan is Plan


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1200, "1.2 kB"),
        (34_000_000, "34.0 MB"),
        (10**16, "10,000.0 TB"),
    ],
)
def test_sizes(size, text) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (TRUE, "true"),
        (disjunction(), "false"),
        (leaf("a", "is null"), "a is null"),
        (leaf("a", "in", *range(7)), "a in (0, 1, 2, 3, 4, and 2 more)"),
        (leaf("a", "=", "it's"), "a = 'it''s'"),
        (leaf("a", "=", b"\x01\xff"), "a = X'01ff'"),
        (leaf("a", "!=", True), "a != true"),
        (Leaf(("a", "b"), Op.GT, (1.5,)), "a.b > 1.5"),
        (
            disjunction(leaf("a", "=", 1), conjunction(leaf("b", "<", 2), leaf("c", "is nan"))),
            "a = 1 or (b < 2 and c is nan)",
        ),
    ],
)
def test_predicates_as_text(predicate, text) -> None:
    assert predicate_text(predicate) == text
