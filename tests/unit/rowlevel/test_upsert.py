"""Upserts without Spark: rows in place of those with the same keys, in every mode and layout."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import IntegerType

from rowlake.errors import (
    CardinalityError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from rowlake.rowlevel import change
from rowlake.storage.files import Storage
from tests.any_format import changing, read_by_others, referenced_files
from tests.lakes import SALES, files_in, make_lake, rows_of, sales

pytestmark = pytest.mark.delta

LAYOUTS = {
    "whole": (),
    "by key": ("bucket(3, id)",),
    "by other": ("store",),
    "by both": ("store", "bucket(2, id)"),
}

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
def version(way):
    return way[0]


@pytest.fixture
def mode(way):
    return way[1]


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


def create(lake, version="3", layout=(), schema=SALES, **properties):
    properties = {key.replace("_", "."): value for key, value in properties.items()}
    return lake.create_table(
        "shop.sales",
        schema,
        partition_by=layout,
        properties={"format-version": version, **properties},
    )


def changed(rows: pa.Table, note: str) -> pa.Table:
    place = rows.schema.get_field_index("note")
    notes = pa.array([f"{note} {each}" for each in rows["id"].to_pylist()], pa.string())
    return rows.set_column(place, rows.schema.field(place), notes)


def merged(*tables: pa.Table) -> list[tuple]:
    """Return the rows of the last table for each id."""
    found = {row["id"]: tuple(row.values()) for rows in tables for row in rows.to_pylist()}
    return sorted(found.values(), key=repr)


def check(table, expected: list[tuple]) -> None:
    assert rows_of(table.arrow()) == expected
    for found in read_by_others(table):
        assert rows_of(found) == expected


def test_rows_are_replaced_and_added_and_counted(lake, version, mode, layout):
    table = create(lake, version, layout)
    table.append(sales(100))
    source = changed(sales(60, 70), "new")
    result = table.upsert(source, ["id"], mode=mode)
    check(table, merged(sales(100), source))
    assert (result.operation, result.rows_updated, result.rows_inserted) == ("upsert", 30, 30)
    assert (result.rows_deleted, result.rows_unchanged) == (0, 0)
    snapshot = table.snapshots()[-1]
    assert snapshot.snapshot_id == result.snapshot_id
    summary = snapshot.summary
    assert summary["rowlake.rows-updated"] == summary["rowlake.rows-inserted"] == "30"
    if mode == "copy-on-write":
        assert (result.rows_copied > 0, result.delete_files_added) == (True, 0)
    if mode == "merge-on-read":
        assert (result.rows_copied, result.delete_files_added > 0) == (0, True)


def test_upserting_again_and_again_keeps_one_row_per_key(lake, version, mode, layout):
    table = create(lake, version, layout)
    rounds = [changed(sales(30, 10 * number), f"round {number}") for number in range(4)]
    for source in rounds:
        table.upsert(source, ["id"], mode=mode)
    check(table, merged(*rounds))


@pytest.mark.not_delta("tables without a first version")
def test_rows_that_hold_the_values_already_stay_where_they_are(lake, version, mode):
    table = create(lake, version, ("bucket(2, id)",))
    table.append(sales(40))
    before = table.inspect("data_files")["file_path"].to_pylist()
    result = table.upsert(sales(40), ["id"], mode=mode)
    assert (result.rows_unchanged, result.rows_updated, result.snapshot_id) == (40, 0, None)
    assert table.inspect("data_files")["file_path"].to_pylist() == before
    source = pa.concat_tables([sales(39), changed(sales(1, 39), "new"), sales(2, 100)])
    result = table.upsert(source, ["id"], mode=mode)
    counts = (result.rows_unchanged, result.rows_updated, result.rows_inserted)
    assert counts == (39, 1, 2)
    check(table, merged(sales(40), source))


def test_a_row_moves_to_another_partition(lake, version, mode):
    table = create(lake, version, ("store",))
    table.append(sales(20))
    moved = sales(3, 2).set_column(1, SALES.field("store"), pa.array([77] * 3, pa.int32()))
    table.upsert(moved, ["id"], mode=mode)
    check(table, merged(sales(20), moved))


@pytest.mark.not_delta("partition specs that change")
def test_files_of_older_partition_specs_are_upserted_too(lake, version, mode):
    table = create(lake, version, ("store",))
    table.append(sales(20))
    with changing(table, "spec") as update:
        update.remove_field("store")
    table.append(sales(20, 20))
    with changing(table, "spec") as update:
        update.add_field("id", "bucket[3]")
    table.append(sales(20, 40))
    sources = [changed(sales(30, 5), "one"), changed(sales(40, 30), "two")]
    result = table.upsert(sources[0], ["id"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (30, 0)
    result = table.upsert(sources[1], ["id"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (30, 10)
    check(table, merged(sales(60), *sources))


def test_columns_that_the_source_lacks_keep_their_values(lake, version, mode):
    table = create(lake, version)
    table.append(sales(10))
    table.upsert(pa.table({"note": ["x", "y"], "id": [3, 10]}), ["id"], mode=mode)
    expected = {row["id"]: row for row in sales(10).to_pylist()}
    expected[3]["note"] = "x"
    expected[10] = {**dict.fromkeys(SALES.names), "id": 10, "note": "y"}
    check(table, sorted((tuple(row.values()) for row in expected.values()), key=repr))


@pytest.mark.not_delta("column defaults")
def test_new_rows_take_the_defaults_of_columns_that_the_source_lacks(lake):
    columns = pa.schema([("id", pa.int64()), ("note", pa.string())])
    table = create(lake, "3", schema=columns)
    table.append([{"id": 1, "note": "a"}])
    with changing(table, "schema") as update:
        update.add_column("level", IntegerType(), default_value=5)
    result = table.upsert([{"id": 1, "note": "b"}, {"id": 2, "note": "c"}], ["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert rows_of(table.arrow()) == [(1, "b", 5), (2, "c", 5)]


def test_keys_alone_add_what_is_not_there(lake, mode):
    table = create(lake)
    table.append(sales(3))
    result = table.upsert(pa.table({"id": [1, 2, 3]}), ["id"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (0, 1)
    check(table, merged(sales(3), pa.table({n: [3 if n == "id" else None] for n in SALES.names})))


@pytest.mark.not_delta("tables without a first version")
def test_rejected_keys_leave_the_table_as_it_is(lake, layout):
    table = create(lake, "3", layout)
    table.append(sales(20))
    before = files_in(table.location)
    with pytest.raises(CardinalityError) as raised:
        table.upsert(sales(30, 15), ["id"], if_exists="reject")
    assert raised.value.keys[0].startswith("id=")
    assert len(table.snapshots()) == 1
    assert files_in(table.location) == before
    result = table.upsert(sales(10, 20), ["id"], if_exists="reject")
    assert (result.rows_inserted, result.rows_updated) == (10, 0)
    assert table.snapshots()[-1].operation == "append"
    check(table, rows_of(sales(30)))


@pytest.mark.not_delta("tables without a first version")
def test_duplicates_in_the_source_are_an_error(lake):
    table = create(lake, "3", ("bucket(2, id)",))
    table.append(sales(5))
    before = files_in(table.location)
    twice = pa.concat_tables([sales(5), changed(sales(1, 3), "again"), sales(1, 9), sales(1, 9)])
    with pytest.raises(CardinalityError, match="id=3"):
        table.upsert(twice, ["id"])
    assert files_in(table.location) == before


def test_the_latest_of_duplicates_is_written(lake, mode):
    table = create(lake, "3", ("bucket(2, id)",))
    table.append(sales(5))
    ids = pa.array([3, 3, 3, 9, 9], pa.int64())
    days = pa.array([1, 3, 2, 5, 4], pa.int32()).cast(pa.date32())
    source = pa.table({"id": ids, "sold_on": days, "note": list("abcde")})
    result = table.upsert(source, ["id"], on_duplicates="latest by sold_on", mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    found = {row["id"]: row["note"] for row in table.arrow().to_pylist()}
    assert (found[3], found[9], len(found)) == ("b", "d", 6)
    same = pa.concat_tables([source, source.slice(1, 1)])
    with pytest.raises(CardinalityError):
        table.upsert(same, ["id"], on_duplicates="latest by sold_on")


def test_a_null_key_of_the_source_is_an_error_and_of_the_target_matches_nothing(lake, mode):
    columns = pa.schema([("a", pa.int64()), ("b", pa.string()), ("v", pa.int32())])
    table = create(lake, "3", schema=columns)
    held = [(1, "x", 1), (None, "x", 2), (1, None, 3), (None, None, 4)]
    names = ("a", "b", "v")
    table.append([dict(zip(names, row, strict=True)) for row in held])
    before = files_in(table.location)
    for null in ({"a": None, "b": "x", "v": 0}, {"a": 1, "b": None, "v": 0}):
        with pytest.raises(SchemaMismatchError, match="null"):
            table.upsert([null, {"a": 7, "b": "y", "v": 0}], ["a", "b"], mode=mode)
    assert files_in(table.location) == before
    source = pa.table({"a": pa.array([1, 2]), "b": ["x", "x"], "v": pa.array([9, 8], pa.int32())})
    result = table.upsert(source, ["a", "b"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    check(table, sorted([(1, "x", 9), (2, "x", 8), *held[1:]], key=repr))


@pytest.mark.not_delta("tables without a first version")
@pytest.mark.parametrize(
    "empty", [sales(0), [], sales(0).to_batches(), pa.table({"id": pa.array([], pa.int64())})]
)
def test_an_empty_source_opens_no_file_and_commits_nothing(lake, monkeypatch, empty):
    table = create(lake, "3", ("store",))
    table.append(sales(20))
    table.delete("id = 3", mode="merge-on-read")
    opened = []
    whole = Storage.open_input

    def watched(self, location):
        opened.append(location)
        return whole(self, location)

    monkeypatch.setattr(Storage, "open_input", watched)
    result = table.upsert(empty, ["id"])
    assert (result.snapshot_id, result.rows_inserted, result.rows_updated) == (None, 0, 0)
    assert [place for place in opened if place.endswith((".parquet", ".puffin"))] == []
    assert len(table.snapshots()) == 2


def test_a_source_beyond_all_files_opens_none(lake, monkeypatch):
    table = create(lake)
    table.append(sales(20))
    opened = []
    whole = Storage.open_input
    monkeypatch.setattr(
        Storage, "open_input", lambda self, place: (opened.append(place), whole(self, place))[1]
    )
    result = table.upsert(sales(5, 1000), ["id"])
    assert (result.rows_inserted, result.files_pruned) == (5, 1)
    assert [place for place in opened if place.endswith(".parquet")] == []


def test_only_files_with_a_key_are_rewritten(lake):
    table = create(lake)
    for first in (0, 100, 200):
        table.append(sales(50, first))
    result = table.upsert(changed(sales(2, 110), "new"), ["id"], mode="copy-on-write")
    assert (result.data_files_removed, result.rows_copied, result.files_pruned) == (1, 48, 2)


@pytest.mark.not_delta("branches")
def test_a_branch_is_upserted_alone(lake, version, mode):
    table = create(lake, version)
    table.append(sales(10))
    table.create_branch("dev")
    source = changed(sales(10, 5), "dev")
    result = table.upsert(source, ["id"], branch="dev", mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (5, 5)
    assert rows_of(table.arrow()) == rows_of(sales(10))
    assert rows_of(table.arrow(ref="dev")) == merged(sales(10), source)


@pytest.mark.not_delta("identifier fields")
def test_identifier_fields_are_the_default_keys(lake):
    table = create(lake)
    with pytest.raises(RowlakeError, match="key"):
        table.upsert(sales(1))
    with changing(table, "schema") as update:
        update.set_identifier_fields("id")
    table.append(sales(3))
    table.upsert(changed(sales(3, 1), "new"))
    check(table, merged(sales(3), changed(sales(3, 1), "new")))


@pytest.mark.not_delta("tables without a first version")
def test_what_cannot_be_upserted_is_said(lake):
    table = create(lake)
    for given, error in (
        ({"keys": ["nope"]}, InvalidStatementError),
        ({"keys": ["id"], "if_exists": "ignore"}, InvalidStatementError),
        ({"keys": ["id"], "on_duplicates": "first"}, InvalidStatementError),
        ({"keys": ["id"], "mode": "eager"}, InvalidStatementError),
        ({"keys": ["id"], "if_exists": "reject", "deletes": "equality"}, InvalidStatementError),
    ):
        with pytest.raises(error):
            table.upsert(sales(1), **given)
    with pytest.raises(SchemaMismatchError, match="lacks the key store"):
        table.upsert(pa.table({"id": [1]}), ["id", "store"])
    with pytest.raises(SchemaMismatchError, match="id"):
        table.upsert(pa.table({"note": ["a"]}), ["store"])
    assert table.snapshots() == []


def test_keys_of_no_value_are_refused(lake):
    columns = pa.schema([("x", pa.float64()), ("l", pa.list_(pa.int32())), ("v", pa.int32())])
    table = create(lake, schema=columns)
    for key in ("x", "l"):
        with pytest.raises(UnsupportedFeatureError, match=f"Column {key} .* cannot be a key"):
            table.upsert([{"x": 1.0, "l": [], "v": 1}], [key])


RACES = [
    *((way, ("serializable", "serializable")) for way in MODES),
    (("3", "auto"), ("snapshot", "snapshot")),
    (("2", "merge-on-read"), ("serializable", "snapshot")),
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: "-".join([MODES[race[0]], *race[1]]))
@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
def test_upserts_of_one_key_at_once_end_as_one_row(lake, monkeypatch, race, there):
    (version, mode), isolation = race
    table = create(lake, version, ("bucket(2, id)",))
    table.append(sales(20 if there else 5))
    mine, theirs = changed(sales(3, 10), "mine"), changed(sales(4, 8), "theirs")
    commit = change.commit_or_raise

    def overtaken(*args, **kwargs):
        monkeypatch.setattr(change, "commit_or_raise", commit)
        lake.table("shop.sales").upsert(theirs, ["id"], mode=mode, isolation=isolation[0])
        return commit(*args, **kwargs)

    monkeypatch.setattr(change, "commit_or_raise", overtaken)
    before = files_in(table.location)
    result = table.upsert(mine, ["id"], mode=mode, isolation=isolation[1])
    assert (result.rows_updated, result.rows_inserted) == (3, 0) if there else (2, 1)
    check(table, merged(sales(20 if there else 5), theirs, mine))
    kept = referenced_files(table)
    data = {place for place in files_in(table.location) - before if "/data/" in place}
    assert data <= kept
