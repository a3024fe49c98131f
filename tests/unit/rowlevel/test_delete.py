"""DELETE without Spark: every mode, both formats, read back by us and by PyIceberg."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowlake.errors import CommitConflictError, InvalidStatementError
from rowlake.rowlevel import change as room
from tests.any_format import changing, read_by_others
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts.odd_properties import set_unchecked

pytestmark = pytest.mark.delta

MODES = ["auto", "copy-on-write", "merge-on-read"]


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def version(request):
    return request.param


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture(params=[(), ("store",), ("bucket(2, id)",)], ids=["whole", "store", "bucket"])
def table(lake, version, request):
    return lake.create_table(
        "shop.sales",
        SALES,
        partition_by=request.param,
        properties={"format-version": version},
    )


def without(rows: pa.Table, gone) -> pa.Table:
    return rows.filter(pc.invert(pc.fill_null(gone, False)))


def check(table, expected: pa.Table) -> None:
    assert rows_of(table.arrow()) == rows_of(expected)
    for found in read_by_others(table):
        assert rows_of(found) == rows_of(expected)


def test_delete_removes_the_rows_and_counts_them(table, mode):
    table.append(sales(100))
    result = table.delete("id >= 10 AND id < 15", mode=mode)
    ids = sales(100)["id"]
    expected = without(sales(100), pc.and_(pc.greater_equal(ids, 10), pc.less(ids, 15)))
    check(table, expected)
    assert (result.operation, result.rows_deleted) == ("delete", 5)
    assert table.snapshots()[-1].snapshot_id == result.snapshot_id


def test_a_condition_that_is_null_keeps_the_row(table, mode):
    table.append(sales(50))
    result = table.delete("note = 'note 8' OR note LIKE 'note 1%'", mode=mode)
    notes = sales(50)["note"]
    gone = pc.or_kleene(pc.equal(notes, "note 8"), pc.starts_with(notes, "note 1"))
    check(table, without(sales(50), gone))
    assert result.rows_deleted == pc.sum(pc.fill_null(gone, False).cast(pa.int64())).as_py()


@pytest.mark.not_delta("tables without a first version")
def test_no_matching_row_commits_nothing(table, mode):
    table.append(sales(20))
    result = table.delete("id = 1000", mode=mode)
    assert result.snapshot_id is None
    assert len(table.snapshots()) == 1


def test_an_empty_table_has_nothing_to_delete(table):
    assert table.delete("id = 1").snapshot_id is None


def test_all_rows_of_a_file_go_by_metadata_alone(lake, version, mode):
    table = lake.create_table(
        "shop.parts", SALES, partition_by=["store"], properties={"format-version": version}
    )
    table.append(sales(40))
    result = table.delete("store = 1", mode=mode)
    assert (result.rows_deleted, result.data_files_removed) == (10, 1)
    assert (result.data_files_added, result.delete_files_added, result.rows_copied) == (0, 0, 0)
    assert table.snapshots()[-1].operation == "delete"
    check(table, without(sales(40), pc.equal(sales(40)["store"], 1)))


def test_a_file_whose_last_rows_go_is_removed_with_its_deletes(lake, version):
    table = lake.create_table("shop.last", SALES, properties={"format-version": version})
    table.append(sales(10))
    table.delete("id < 5", mode="merge-on-read")
    result = table.delete("id >= 5 AND note IS NOT NULL OR id = 7", mode="merge-on-read")
    assert result.data_files_removed == 1
    check(table, sales(0))
    assert table.inspect("delete_files").num_rows == 0


@pytest.mark.not_delta("Puffin files")
@pytest.mark.spec("Deletion Vectors: at most one deletion vector per data file")
def test_repeated_deletes_keep_one_delete_file_per_data_file(lake, version):
    table = lake.create_table("shop.again", SALES, properties={"format-version": version})
    table.append(sales(100))
    for first in (3, 30, 60):
        result = table.delete(f"id = {first} OR id = {first + 1}", mode="merge-on-read")
    deletes = table.inspect("delete_files")
    assert deletes["record_count"].to_pylist() == [6]
    assert (result.delete_files_added, result.delete_files_removed) == (1, 1)
    expected_format = "PUFFIN" if version == "3" else "PARQUET"
    assert deletes["file_format"].to_pylist() == [expected_format]
    (data,) = table.inspect("data_files")["file_path"].to_pylist()
    assert deletes["referenced_data_file"].to_pylist() == [data]
    summary = table.snapshots()[-1].summary
    assert summary["total-position-deletes"] == "6"


@pytest.mark.not_delta("deletes of whole partitions")
def test_partition_granularity_puts_the_deletes_of_a_partition_in_one_file(lake):
    table = lake.create_table(
        "shop.gran",
        SALES,
        properties={"format-version": "2", "write.delete.granularity": "partition"},
    )
    for first in (0, 100, 200):
        table.append(sales(50, first))
    table.delete("id = 1 OR id = 101 OR id = 201", mode="merge-on-read")
    assert table.inspect("delete_files")["record_count"].to_pylist() == [3]
    assert table.arrow().num_rows == 147


def test_auto_rewrites_dense_files_and_marks_sparse_ones(lake, version):
    table = lake.create_table("shop.auto", SALES, properties={"format-version": version})
    table.append(sales(100))
    table.append(sales(100, 1000))
    result = table.delete("id = 1 OR (id >= 1000 AND id < 1060)")
    assert (result.data_files_removed, result.data_files_added) == (1, 1)
    assert (result.delete_files_added, result.rows_copied) == (1, 40)
    assert (result.rows_deleted, table.arrow().num_rows) == (61, 139)


def test_the_table_property_chooses_and_the_argument_wins(lake):
    table = lake.create_table("shop.prop", SALES, properties={"write.delete.mode": "copy-on-write"})
    table.append(sales(100))
    assert table.delete("id = 1").rows_copied == 99
    assert table.delete("id = 2", mode="merge-on-read").rows_copied == 0
    with pytest.raises(InvalidStatementError, match="Unknown mode"):
        table.delete("id = 3", mode="lazy")


@pytest.mark.spec("Row Lineage: a rewrite keeps row ids")
def test_a_rewrite_keeps_row_ids(lake):
    table = lake.create_table("shop.lineage", SALES, properties={"format-version": "3"})
    table.append(sales(20))
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = rows_of(table.arrow(columns=columns))
    table.delete("id = 4", mode="copy-on-write")
    after = rows_of(table.arrow(columns=columns))
    assert after == [row for row in before if row[0] != 4]


@pytest.mark.not_delta("partition specs that change")
def test_deletes_follow_evolved_schemas_and_specs(table, mode):
    table.append(sales(30))
    with changing(table, "schema") as update:
        update.rename_column("note", "remark")
    if not table.handle.view().spec.fields:
        with changing(table, "spec") as update:
            update.add_identity("store")
    table.append(sales(30, 100).rename_columns([*SALES.names[:-1], "remark"]))
    table.delete("remark = 'note 5' OR id = 105", mode=mode)
    assert sorted(set(table.arrow()["id"].to_pylist())) == sorted(
        {*range(30), *range(100, 130)} - {5, 105}
    )
    assert all(found.num_rows == 58 for found in read_by_others(table))


@pytest.mark.not_delta("branches")
def test_a_delete_on_a_branch_leaves_main_alone(table, mode):
    table.append(sales(20))
    table.create_branch("dev")
    table.delete("id < 5", branch="dev", mode=mode)
    assert table.arrow().num_rows == 20
    assert table.arrow(ref="dev").num_rows == 15


@pytest.mark.not_delta("tables without a log")
def test_a_concurrent_append_conflicts_only_where_it_may_match(lake, table, mode, monkeypatch):
    table.append(sales(20))
    run = room._Run._done

    def race(rows):
        def then(*args, **kwargs):
            monkeypatch.setattr(room._Run, "_done", run)
            outcome = run(*args, **kwargs)
            lake.table("shop.sales").append(rows)
            return outcome

        monkeypatch.setattr(room._Run, "_done", then)

    race(sales(5, 1000))
    assert table.delete("id < 3", mode=mode).rows_deleted == 3
    race(sales(5, 0))
    assert table.delete("id < 4", mode=mode).rows_deleted == 1 + 4, "replanned: both landed"
    table.set_properties({"rowlake.commit.replan": "false"})
    race(sales(5, 0))
    before = files_in(table.location)
    with pytest.raises(CommitConflictError, match="added data files"):
        table.delete("id < 5", mode=mode)
    stray = {found for found in files_in(table.location) - before if "/metadata/" not in found}
    assert len(stray) == len({*table.inspect("data_files")["file_path"].to_pylist()} - before)
    race(sales(5, 0))
    table.delete("id < 5", mode=mode, isolation="snapshot")


@pytest.mark.parametrize("row", [7, 8])
def test_two_deletes_on_one_file_land_both_or_conflict_cleanly(
    lake, mode, version, row, monkeypatch
):
    given = {"format-version": version, "rowlake.commit.replan": "false"}
    table = lake.create_table("shop.two", SALES, properties=given)
    table.append(sales(20))
    run = room._Run._done

    def then(*args, **kwargs):
        monkeypatch.setattr(room._Run, "_done", run)
        outcome = run(*args, **kwargs)
        lake.table("shop.two").delete("id = 7", mode=mode)
        return outcome

    monkeypatch.setattr(room._Run, "_done", then)
    if row == 8 and mode != "copy-on-write":
        assert table.delete(f"id = {row}", mode=mode).retries == 1
        assert table.arrow().num_rows == 18
        return
    with pytest.raises(CommitConflictError):
        table.delete(f"id = {row}", mode=mode)
    assert table.arrow().num_rows == 19
    assert table.delete("id = 7 OR id = 8", mode=mode).rows_deleted == 1
    assert table.arrow().num_rows == 18


@pytest.mark.not_delta("position delete files")
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), version=st.sampled_from(["2", "3"]))
def test_random_deletes_leave_what_a_list_would_keep(tmp_path_factory, table_format, data, version):
    with make_lake(tmp_path_factory.mktemp("lake")) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(
            "shop.r",
            pa.schema([("k", pa.int64()), ("x", pa.float64())]),
            partition_by=data.draw(st.sampled_from([(), ("k",), ("bucket(2, k)",)])),
            properties={"format-version": version},
        )
        floats = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), None])
        kept: list[tuple] = []
        for _ in range(data.draw(st.integers(1, 4))):
            rows = data.draw(
                st.lists(st.tuples(st.integers(0, 5) | st.none(), floats), max_size=12)
            )
            if rows:
                keys, values = zip(*rows, strict=True)
                table.append(
                    pa.table({"k": pa.array(keys, pa.int64()), "x": pa.array(values, pa.float64())})
                )
                kept += rows
            key, mode = data.draw(st.integers(0, 5)), data.draw(st.sampled_from(MODES))
            condition, keep = data.draw(
                st.sampled_from(
                    [
                        (f"k = {key}", lambda k, x, key=key: k != key),
                        ("x > 1", lambda k, x: x is None or not (x > 1 or x != x)),
                        ("k IS NULL", lambda k, x: k is not None),
                        (f"NOT (k = {key})", lambda k, x, key=key: k is None or k == key),
                    ]
                )
            )
            left = [row for row in kept if keep(*row)]
            assert table.delete(condition, mode=mode).rows_deleted == len(kept) - len(left)
            kept = left
            found = table.arrow()
            got = zip(found["k"].to_pylist(), found["x"].to_pylist(), strict=True)
            assert sorted(map(repr, got)) == sorted(map(repr, kept))


def test_an_isolation_level_that_does_not_exist_is_refused_with_its_property(lake):
    table = lake.create_table("shop.odd", SALES)
    set_unchecked(table, {"write.delete.isolation-level": "none at all"})
    table.append(sales(10))
    with pytest.raises(InvalidStatementError, match=r"write\.delete\.isolation-level=none at all"):
        table.delete("id = 3")
    assert table.arrow().num_rows == 10
