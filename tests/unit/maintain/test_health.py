"""`health`: what it finds in tables of known shape, and how it says it."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError
from rowlake.maintain.autopilot import health_checks, health_metadata
from rowlake.maintain.autopilot.depth import best_depth, depth_of, sort_depth
from rowlake.maintain.autopilot.health import health
from rowlake.maintain.autopilot.survey import survey
from rowlake.model.files import Content
from rowlake.model.health import Finding, Health, Verdict
from tests.lakes import SALES, make_lake, sales
from tests.metadata_files import MB, add_files, numbers
from tests.parts.odd_properties import set_unchecked

pytestmark = pytest.mark.delta

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as made:
        made.create_namespace("ns")
        yield made


def looked_at(table):
    return health(table.handle, table._engine)


# --- data files


@pytest.mark.not_delta("tables without a first version")
def test_an_empty_table_is_well(lake) -> None:
    found = looked_at(numbers(lake))
    assert found.verdict is Verdict.OK
    assert (found.snapshot_id, found.data_files, found.size_in_bytes) == (None, 0, 0)
    assert {each.verdict for each in found.findings} == {Verdict.OK}
    assert found.finding("sort depth").value is None


def test_many_small_files_ask_for_compaction(lake) -> None:
    table = add_files(numbers(lake), [MB] * 6 + [512 * MB])
    found = looked_at(table).finding("small files")
    assert (found.verdict, round(found.value, 2)) == (Verdict.ACT, 0.86)
    assert found.shown == "6 of 7 data files below 402.7 MB"
    assert found.why == "Compaction would leave 2 files."
    assert found.sql == "CALL system.rewrite_data_files(table => 'ns.t')"
    assert found.command == "rowlake rewrite-data-files ns.t"


def test_the_target_size_is_the_tables(lake) -> None:
    table = add_files(
        numbers(lake, properties={"write.target-file-size-bytes": str(MB)}), [MB] * 6 + [512 * MB]
    )
    assert looked_at(table).finding("small files").verdict is Verdict.OK


def test_small_files_are_counted_by_partition(lake) -> None:
    table = numbers(lake, partition_by=["store"])
    add_files(table, [MB] * 40, stores=[*[7] * 25, *range(100, 115)])
    found = looked_at(table).finding("small files")
    assert found.verdict is Verdict.ACT
    assert found.why == "Compaction would leave 16 files; most small files are in store=7 (25)."


def test_one_small_file_a_partition_is_no_work_for_compaction(lake) -> None:
    table = add_files(numbers(lake, partition_by=["store"]), [MB] * 20, stores=range(20))
    found = looked_at(table).finding("small files")
    assert (found.verdict, found.value, found.command) == (Verdict.OK, 1.0, None)


def test_partitions_that_are_too_fine_are_said(lake) -> None:
    table = add_files(numbers(lake, partition_by=["store"]), [MB] * 120, stores=range(120))
    found = looked_at(table).finding("small files")
    assert (found.verdict, found.command) == (Verdict.WATCH, None)
    assert "coarser partition spec" in found.why


def test_a_property_that_is_no_number_is_an_error(lake) -> None:
    table = numbers(lake)
    set_unchecked(table, {"write.target-file-size-bytes": "large"})
    with pytest.raises(InvalidStatementError, match=r"write\.target-file-size-bytes=large"):
        looked_at(table)


# --- order


def test_depth_counts_the_files_that_hold_a_value(lake) -> None:
    table = add_files(numbers(lake, sort_by=[]), [MB] * 8, lows=np.arange(8) * 10, width=9)
    assert depth_of(survey(table.handle), 1).average == 1.0
    add_files(table, [MB] * 4, lows=[0] * 4, width=78)
    depth = depth_of(survey(table.handle), 1)
    assert depth.column == "id"
    assert depth.average == 5.0


def test_depth_is_of_partitions_one_by_one(lake) -> None:
    table = numbers(lake, partition_by=["store"])
    add_files(table, [MB] * 6, lows=[0] * 6, stores=[1, 1, 2, 2, 3, 3])
    assert best_depth(survey(table.handle)).average == 2.0


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["prefix-a", "prefix-b", "prefix-c", "prefix-d\U0001f41f"]),
        (pa.date32(), [1, 2, 3, 4]),
        (pa.timestamp("us"), [10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6]),
        (pa.decimal128(9, 2), [1, 2, 3, 4]),
        (pa.float64(), [-1.5, 0.0, 2.5, 4.0]),
        (pa.int64(), [-(1 << 62), 0, 5, 1 << 62]),
    ],
)
def test_depth_of_every_type(lake, kind, values) -> None:
    check_depth(lake, kind, values)


@pytest.mark.not_delta("statistics of booleans and infinities")
@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.float64(), [-1.5, 0.0, 2.5, float("inf")]), (pa.bool_(), [False, True])],
)
def test_depth_of_booleans_and_infinities(lake, kind, values) -> None:
    check_depth(lake, kind, values)


def check_depth(lake, kind, values) -> None:
    table = lake.create_table("ns.x", pa.schema([pa.field("v", kind)]))
    for value in values:
        table.append(pa.table({"v": pa.array([value], kind)}))
    assert depth_of(survey(table.handle), 1).average == 1.0
    for _ in range(2):
        table.append(pa.table({"v": pa.array([values[0], values[-1]], kind)}))
    assert depth_of(survey(table.handle), 1).average > 1.0


def test_files_that_no_sorting_tells_apart_are_left_out(lake) -> None:
    table = lake.create_table("ns.x", pa.schema([("v", pa.string()), ("w", pa.int64())]))
    for number in range(3):
        urls = [f"https://example.com/{number}/{page}" for page in range(2)]
        table.append(pa.table({"v": urls, "w": [7, 7]}))
    seen = survey(table.handle)
    assert [depth_of(seen, column).average for column in (1, 2)] == [1.0, 1.0]


def test_files_without_bounds_have_no_depth(lake) -> None:
    table = lake.create_table("ns.x", pa.schema([pa.field("v", pa.list_(pa.int32()))]))
    table.append(pa.table({"v": pa.array([[1]], pa.list_(pa.int32()))}))
    assert best_depth(survey(table.handle)) is None
    assert looked_at(table).finding("sort depth").verdict is Verdict.OK


@pytest.mark.not_delta("sort orders")
def test_a_table_out_of_its_order_asks_for_a_sort(lake) -> None:
    from rowlake.model.partition import OrderBy

    table = numbers(
        lake, "s", partition_by=["store"], sort_by=[OrderBy(("store",)), OrderBy(("id",))]
    )
    add_files(table, [512 * MB] * 12, lows=[0] * 12, stores=[1] * 12)
    seen = survey(table.handle)
    assert sort_depth(seen) == best_depth(seen)
    found = looked_at(table).finding("sort depth")
    assert (found.verdict, found.value) == (Verdict.ACT, 12.0)
    assert found.command == (
        "rowlake rewrite-data-files ns.s --strategy sort --option rewrite-all=true"
    )
    assert found.sql == (
        "CALL system.rewrite_data_files(table => 'ns.s', strategy => 'sort', "
        "options => map('rewrite-all', 'true'))"
    )


def test_overlap_without_an_order_is_only_watched(lake) -> None:
    table = add_files(numbers(lake), [512 * MB] * 12, lows=[0] * 12)
    found = looked_at(table).finding("sort depth")
    assert found.verdict is Verdict.WATCH
    assert "--strategy sort --order id" in found.command


# --- deletes


def test_vectors_and_deleted_rows(lake) -> None:
    table = lake.create_table("ns.d", SALES, properties={"format-version": "3"})
    table.append(sales(20))
    table.append(sales(20, 20))
    table.delete("id < 8", mode="merge-on-read")
    found = looked_at(table)
    assert found.finding("deleted rows").value == pytest.approx(8 / 40)
    assert found.finding("deleted rows").verdict is Verdict.WATCH
    assert found.finding("deleted rows").command == "rowlake rewrite-data-files ns.d"
    assert found.finding("position deletes").value == 1.0
    assert found.finding("position deletes").verdict is Verdict.OK
    assert (
        found.finding("position deletes").shown == "0 files, 1 vector; 1.0 for each of 1 data file"
    )
    table.delete("id < 14", mode="merge-on-read")
    assert looked_at(table).finding("deleted rows").verdict is Verdict.ACT


@pytest.mark.not_delta("position delete files")
def test_position_delete_files_pile_up(lake) -> None:
    table = add_files(numbers(lake, partition_by=["store"]), [MB] * 4, stores=[1, 1, 2, 2])
    add_files(table, [1_000] * 6, stores=[1] * 6, rows=5, content=Content.POSITION_DELETES)
    found = looked_at(table)
    piled = found.finding("position deletes")
    assert (piled.value, piled.verdict, found.delete_files) == (6.0, Verdict.ACT, 6)
    assert piled.shown == "6 files, 0 vectors; 6.0 for each of 2 data files"
    assert piled.command == "rowlake rewrite-position-deletes ns.t"
    assert found.finding("deleted rows").value == pytest.approx(30 / 400)
    seen = survey(table.handle)
    assert seen.deletes.deleted.tolist() == [15.0, 15.0, 0.0, 0.0]
    assert not seen.deletes.surely_deleted.any()
    assert seen.deletes.reach.tolist() == [2] * 6


@pytest.mark.not_delta("position delete files")
def test_rows_that_no_delete_file_names_are_folded_by_counting_deletes(lake) -> None:
    table = add_files(numbers(lake), [512 * MB] * 2)
    add_files(table, [1_000], rows=150, content=Content.POSITION_DELETES)
    found = looked_at(table).finding("deleted rows")
    assert (found.verdict, found.value) == (Verdict.ACT, 0.75)
    assert found.command.endswith("--option delete-file-threshold=1")


@pytest.mark.not_delta("equality deletes")
def test_equality_deletes_and_what_they_reach(lake) -> None:
    table = lake.create_table("ns.e", SALES)
    assert looked_at(table).finding("equality deletes").shown == "none"
    table.append(sales(20))
    table.append(sales(20, 20))
    table.delete("id = 3", deletes="equality")
    found = looked_at(table)
    equality = found.finding("equality deletes")
    assert (equality.value, equality.verdict) == (1, Verdict.ACT)
    assert equality.shown == "1 delete file, on 1 of 2 data files"
    assert equality.command == "rowlake convert-equality-deletes ns.e"
    assert found.finding("dangling deletes").value == 0


@pytest.mark.not_delta("equality deletes")
def test_deletes_that_apply_to_nothing_are_dangling(lake) -> None:
    table = lake.create_table("ns.e", SALES)
    table.append(sales(20))
    table.delete("id = 1000", deletes="equality")
    found = looked_at(table).finding("dangling deletes")
    assert (found.value, found.verdict) == (1, Verdict.WATCH)
    assert found.command == "rowlake convert-equality-deletes ns.e"


# --- metadata


def with_snapshots(table, count, *, age_days=0.0, **properties):
    """Return a survey of a table with so many snapshots in a row, the head as it is."""
    handle = table.handle
    head = handle.metadata.current_snapshot()
    old = int(time.time() * 1000 - age_days * DAY_MS)
    line = [
        head.model_copy(update={"snapshot_id": number + 1, "parent_snapshot_id": number or None,
                                "timestamp_ms": old})
        for number in range(count - 1)
    ]  # fmt: skip
    last = head.model_copy(update={"parent_snapshot_id": count - 1 or None})
    metadata = handle.metadata.model_copy(
        update={
            "snapshots": [*line, last],
            "properties": {**handle.metadata.properties, **properties},
        }
    )
    return survey(replace(handle, metadata=metadata))


@pytest.mark.iceberg
def test_old_snapshots_can_expire(lake) -> None:
    table = lake.create_table("ns.s", SALES)
    table.append(sales(4))
    found = health_metadata.check_snapshots(with_snapshots(table, 1_000, age_days=6))
    assert (found.value, found.verdict) == (1_000, Verdict.ACT)
    assert found.why.startswith("999 can expire")
    assert found.command == "rowlake expire ns.s"
    found = health_metadata.check_snapshots(with_snapshots(table, 200, age_days=6))
    assert found.verdict is Verdict.WATCH
    assert health_metadata.check_snapshots(with_snapshots(table, 50, age_days=6)).command is None


@pytest.mark.iceberg
def test_young_snapshots_are_kept_however_many(lake) -> None:
    table = lake.create_table("ns.s", SALES)
    table.append(sales(4))
    found = health_metadata.check_snapshots(with_snapshots(table, 1_000, age_days=1))
    assert (found.verdict, found.command) == (Verdict.WATCH, None)
    assert "max-snapshot-age-ms" in found.why


@pytest.mark.iceberg
def test_what_expires_follows_properties_and_refs(lake) -> None:
    table = lake.create_table("ns.s", SALES)
    table.append(sales(4))
    assert health_metadata.expirable(with_snapshots(table, 10, age_days=6)) == 9
    keep = {"history.expire.min-snapshots-to-keep": "4"}
    assert health_metadata.expirable(with_snapshots(table, 10, age_days=6, **keep)) == 6
    longer = {"history.expire.max-snapshot-age-ms": str(7 * DAY_MS)}
    assert health_metadata.expirable(with_snapshots(table, 10, age_days=6, **longer)) == 0
    table.append(sales(4, 4))
    table.create_tag("kept", table.snapshots()[0].snapshot_id)
    late = replace(survey(table.handle), now_ms=int(time.time() * 1000) + 6 * DAY_MS)
    assert health_metadata.expirable(late) == 0
    table.drop_ref("kept")
    late = replace(survey(table.handle), now_ms=int(time.time() * 1000) + 6 * DAY_MS)
    assert health_metadata.expirable(late) == 1


@pytest.mark.iceberg
def test_a_large_metadata_file_is_said(lake) -> None:
    table = lake.create_table("ns.m", SALES)
    assert looked_at(table).finding("metadata file").verdict is Verdict.OK
    table.set_properties({"note": "x" * 1_000_000})
    found = looked_at(table).finding("metadata file")
    assert (found.verdict, found.value > 1_000_000) == (Verdict.WATCH, True)
    table.set_properties({"note": "x" * 8_000_000})
    assert looked_at(table).finding("metadata file").verdict is Verdict.ACT


@pytest.mark.iceberg
def test_a_metadata_file_that_cannot_be_seen_is_not_known(lake, tmp_path) -> None:
    table = lake.create_table("ns.m", SALES)
    table.append(sales(4))
    hidden = replace(table.handle, metadata_location=f"{tmp_path}/nowhere.metadata.json")
    found = health(hidden, table._engine)
    assert found.verdict is Verdict.OK
    assert found.finding("metadata file").shown == "not known"


@pytest.mark.iceberg
def test_many_small_manifests_across_partitions(lake) -> None:
    table = numbers(
        lake, partition_by=["store"], properties={"commit.manifest-merge.enabled": "false"}
    )
    for round_ in range(24):
        add_files(table, [MB] * 3, stores=[1, 2, 3], lows=[round_ * 100] * 3)
    found = looked_at(table)
    assert (found.finding("manifests").value, found.finding("manifests").verdict) == (
        24,
        Verdict.ACT,
    )
    clustering = found.finding("manifest clustering")
    assert (clustering.value, clustering.verdict) == (24.0, Verdict.ACT)
    assert clustering.command == "rowlake rewrite-manifests ns.t"
    one = lake.create_table("ns.one", SALES)
    one.append(sales(4))
    assert looked_at(one).finding("manifest clustering").value is None


@pytest.mark.iceberg
def test_metadata_files_that_left_the_log_are_orphans(lake) -> None:
    table = lake.create_table(
        "ns.o", SALES, properties={"write.metadata.previous-versions-max": "2"}
    )
    for number in range(6):
        table.set_properties({"n": str(number)})
    seen = survey(table.handle)
    kept = len(seen.handle.metadata.metadata_log)
    assert health_metadata.outdated_metadata_files(seen) == 6 - kept
    table.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    assert health_metadata.outdated_metadata_files(survey(table.handle)) == 0


# --- how it is said


def test_it_prints_for_people_notebooks_and_programs() -> None:
    found = Health(
        "ns.t",
        7,
        (
            Finding("small files", 0.9, "9 of 10", Verdict.ACT, "Why <so>.", "CALL x", "rowlake x"),
            Finding("snapshots", 3, "3", Verdict.OK, "Few."),
        ),
        data_files=10,
        record_count=1_200,
    )
    assert str(found).splitlines() == [
        "ns.t: act (1 act, 1 ok), snapshot 7",
        "10 data files, 0 delete files, 0 partitions, 1,200 rows, 0 B",
        "",
        "act    small files  9 of 10",
        "       Why <so>.",
        "       run: rowlake x",
        "       sql: CALL x",
        "ok     snapshots    3",
    ]
    assert "Why &lt;so&gt;." in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["verdict"], told["findings"][0]["verdict"]) == ("act", "act")
    assert told["findings"][1]["command"] is None


def test_names_are_quoted_for_sql_and_for_the_shell(lake) -> None:
    lake.create_namespace("odd ns")
    table = lake.create_table(
        ("odd ns", "it's"), pa.schema([("id", pa.int64()), ("store", pa.int32())])
    )
    add_files(table, [MB] * 6)
    found = looked_at(table).finding("small files")
    assert found.sql == r"CALL system.rewrite_data_files(table => '`odd ns`.`it\'s`')"
    assert found.command == """rowlake rewrite-data-files '`odd ns`.`it'"'"'s`'"""


def test_ten_thousand_files_take_less_than_two_seconds(lake) -> None:
    table = numbers(lake, partition_by=["store"])
    rng = np.random.default_rng(7)
    for _ in range(4):
        add_files(
            table,
            [MB] * 2_500,
            stores=rng.integers(0, 50, 2_500),
            lows=rng.integers(0, 1 << 40, 2_500),
        )
    started = time.process_time()  # not of other processes, which may keep this one waiting
    found = looked_at(table)
    assert found.data_files == 10_000
    assert time.process_time() - started < 2


def test_thresholds_rise() -> None:
    assert health_checks.EXCESS_WATCH < health_checks.EXCESS_ACT
    assert health_metadata.SNAPSHOTS_WATCH < health_metadata.SNAPSHOTS_ACT


@pytest.mark.not_delta("branches")
def test_health_of_a_branch(lake) -> None:
    table = add_files(numbers(lake), [MB] * 3)
    table.create_branch("b")
    add_files(table, [MB] * 3, lows=[100, 200, 300])
    assert health(table.handle, table._engine, branch="b").data_files == 3
    assert table.handle.view().snapshot_id == health(table.handle, table._engine).snapshot_id
