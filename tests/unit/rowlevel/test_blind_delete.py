"""Blind deletes: predicates of key equality become equality delete files, and no row is read."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.types import StringType

from rowlake.errors import CommitConflictError, InvalidStatementError, UnsupportedFeatureError
from rowlake.model.predicate import FALSE, TRUE, And, Leaf, Op, Or
from rowlake.prune.bind import bind
from rowlake.rowlevel import equality_writes, key_sets, strategy
from rowlake.scan import kernel as scan
from rowlake.verbs.write import WriteOptions
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, rows_of, sales


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def version(request):
    return request.param


TABLES = {"whole": ("3", ()), "store": ("2", ("store",)), "bucket": ("3", ("bucket(2, id)",))}


@pytest.fixture(params=TABLES)
def table(lake, request):
    format_version, partitions = TABLES[request.param]
    return lake.create_table(
        "shop.sales",
        SALES,
        partition_by=partitions,
        properties={"format-version": format_version},
    )


def kept(rows: pa.Table, keep) -> list[tuple]:
    return rows_of(pa.Table.from_pylist([row for row in rows.to_pylist() if keep(row)], SALES))


CONDITIONS = {
    "id = 7": lambda row: row["id"] == 7,
    "id IN (1, 2, 3, 100)": lambda row: row["id"] in (1, 2, 3),
    "note IS NULL": lambda row: row["note"] is None,
    "id = 7 AND note IS NULL": lambda row: row["id"] == 7 and row["note"] is None,
    "store = 1 AND id IN (1, 2, 5)": lambda row: row["store"] == 1 and row["id"] in (1, 2, 5),
    "id = 4 OR note = 'note 5' OR store = 3": lambda row: (
        row["id"] == 4 or row["note"] == "note 5" or row["store"] == 3
    ),
    "(id = 4 OR id = 8) AND (store = 0 OR note IS NULL)": lambda row: (
        row["id"] in (4, 8) and (row["store"] == 0 or row["note"] is None)
    ),
    "sold_on = DATE'2024-01-03'": lambda row: row["sold_on"] == dt.date(2024, 1, 3),
    "amount = 12": lambda row: row["amount"] == Decimal(12),
    "id = 3 AND id IN (3, 4)": lambda row: row["id"] == 3,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_rows_go_unread(table, where, monkeypatch):
    table.append(sales(40))

    def unread(*_):
        raise AssertionError("a row was read")

    with monkeypatch.context() as patched:
        patched.setattr(scan, "scan_kernel", unread)
        result = table.delete(where, deletes="equality")
    assert rows_of(table.arrow()) == kept(sales(40), lambda row: not CONDITIONS[where](row))
    assert (result.operation, result.rows_deleted, result.data_files_added) == ("delete", 0, 0)
    assert result.delete_files_added == table.inspect("delete_files").num_rows > 0
    assert result.bytes_written > 0
    assert table.snapshots()[-1].operation == "delete"


@pytest.mark.parametrize(
    "where", ["id = 3 AND id = 4", "id IS NULL", "id = 1.5", "store IN (NULL)", "amount = 0.001"]
)
def test_conditions_that_no_row_fulfils_commit_nothing(table, where):
    table.append(sales(40))
    assert table.delete(where, deletes="equality").snapshot_id is None
    assert table.arrow().num_rows == 40


def test_a_table_without_rows_has_nothing_to_delete(table):
    assert table.delete("id = 1", deletes="equality").snapshot_id is None


def test_each_set_of_columns_has_files_of_its_own(lake, version):
    table = lake.create_table("shop.sets", SALES, properties={"format-version": version})
    table.append(sales(40))
    table.delete(
        "id = 1 OR id = 2 OR note = 'note 9' OR (id = 5 AND store = 1)", deletes="equality"
    )
    found = table.inspect("delete_files").to_pylist()
    sets = {tuple(file["equality_ids"]): file["record_count"] for file in found}
    assert sets == {(1,): 2, (5,): 1, (1, 2): 1}
    assert table.snapshots()[-1].summary["added-equality-deletes"] == "4"
    assert sorted(set(range(40)) - set(table.arrow()["id"].to_pylist())) == [1, 2, 5, 9]


def test_later_rows_stay(table):
    table.append(sales(10))
    table.delete("id IN (1, 2)", deletes="equality")
    table.append(sales(1, 1))
    assert sorted(table.arrow()["id"].to_pylist()) == [0, 1, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    "where",
    [
        "id > 3",
        "id <> 3",
        "NOT id = 3",
        "note LIKE 'a%'",
        "id % 2 = 0",
        "id = store",
        "id = 3 AND store > 2",
        "id NOT IN (1, 2)",
        "note IS NOT NULL",
    ],
)
def test_other_conditions_are_refused(lake, where):
    table = lake.create_table("shop.refused", SALES)
    table.append(sales(5))
    with pytest.raises(InvalidStatementError, match="deletes='equality'"):
        table.delete(where, deletes="equality")
    assert len(table.snapshots()) == 1


def test_everything_and_nothing(lake):
    table = lake.create_table("shop.all", SALES)
    table.append(sales(5))
    with pytest.raises(InvalidStatementError, match="truncate"):
        table.delete(TRUE, deletes="equality")
    with pytest.raises(InvalidStatementError, match="needs a condition"):
        table.delete(None, deletes="equality")
    assert table.delete(FALSE, deletes="equality").snapshot_id is None


def test_floats_lists_and_too_many_keys_are_refused(lake, monkeypatch):
    schema = pa.schema([pa.field("f", pa.float64()), pa.field("k", pa.int64()), SALES.field(1)])
    table = lake.create_table("shop.kinds", schema)
    table.append([{"f": 1.0, "k": 1, "store": 1}])
    with pytest.raises(UnsupportedFeatureError, match="Column f"):
        table.delete("f = 1.0", deletes="equality")
    monkeypatch.setattr(key_sets, "MOST_KEYS", 10)
    with pytest.raises(InvalidStatementError, match="names 12 keys"):
        table.delete("k IN (1, 2, 3) AND store IN (1, 2, 3, 4)", deletes="equality")


def test_kinds_of_deletes_are_checked(lake):
    made = {
        version: lake.create_table(
            f"shop.v{version}", SALES, properties={"format-version": str(version)}
        )
        for version in (1, 2, 3)
    }
    for table in made.values():
        table.append(sales(5))
    with pytest.raises(InvalidStatementError, match="Unknown kind of deletes 'bitmap'"):
        made[2].delete("id = 1", deletes="bitmap")
    for version, kind in ((1, "equality"), (1, "position"), (2, "vector"), (3, "position")):
        with pytest.raises(UnsupportedFeatureError, match="format version"):
            made[version].delete("id = 1", deletes=kind)
    with pytest.raises(InvalidStatementError, match="copy-on-write"):
        made[2].delete("id = 1", deletes="equality", mode="copy-on-write")
    assert strategy.deletes_of(None, made[1].handle) is strategy.Deletes.AUTO
    assert strategy.deletes_of("vector", made[3].handle) is strategy.Deletes.VECTOR
    asked = strategy.deletes_of("position", made[2].handle, "merge-on-read")
    assert asked is strategy.Deletes.POSITION


def test_nulls_of_nested_keys(lake, version):
    inner = pa.struct([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.string())])
    schema = pa.schema([pa.field("who", inner), pa.field("v", pa.int64())])
    table = lake.create_table("shop.nested", schema, properties={"format-version": version})
    rows = [
        {"who": {"id": 1, "x": "a"}, "v": 1},
        {"who": None, "v": 2},
        {"who": {"id": 3, "x": None}, "v": 3},
    ]
    table.append(rows)
    table.delete("who.x = 'a'", deletes="equality")
    assert sorted(table.arrow()["v"].to_pylist()) == [2, 3]
    table.delete("who.id IS NULL", deletes="equality")
    assert table.arrow()["v"].to_pylist() == [3]
    table.delete("who.id = 3 AND who.x IS NULL", deletes="equality")
    assert table.arrow().num_rows == 0


def test_uuids_and_bytes(lake, version):
    schema = pa.schema([pa.field("u", pa.uuid()), pa.field("b", pa.binary())])
    table = lake.create_table("shop.bytes", schema, properties={"format-version": version})
    table.append([{"u": uuid.UUID(int=n).bytes, "b": bytes([n])} for n in range(4)])
    table.delete(f"u = '{uuid.UUID(int=2)}' OR b = X'03'", deletes="equality")
    assert sorted(table.arrow()["b"].to_pylist()) == [b"\x00", b"\x01"]


def test_a_column_that_old_files_lack_is_null_in_them(lake, version):
    table = lake.create_table("shop.late", SALES, properties={"format-version": version})
    table.append(sales(4))
    with changing(table, "schema") as update:
        update.add_column("late", StringType())
    table.append(sales(2, 4).append_column("late", pa.array(["x", None])))
    table.delete("late IS NULL AND id IN (0, 5)", deletes="equality")
    assert sorted(table.arrow()["id"].to_pylist()) == [1, 2, 3, 4]


def test_a_spec_that_comes_meanwhile_is_a_conflict(lake):
    table = lake.create_table("shop.race", SALES, partition_by=["bucket(2, id)"])
    table.append(sales(10))
    stale = table.handle
    with changing(table, "spec") as update:
        update.add_field("store", "identity", "store")
    table.append(sales(10, 10))
    before = files_in(table.location)
    predicate = Leaf(("id",), Op.EQ, (1,))
    with pytest.raises(CommitConflictError, match="partition spec was changed"):
        equality_writes.blind_delete(stale, predicate, WriteOptions())
    assert files_in(table.location) == before


NUMBERS = st.integers(0, 5)
LEAVES = st.one_of(
    st.builds(lambda c, v: Leaf((c,), Op.EQ, (v,)), st.sampled_from("abc"), NUMBERS),
    st.builds(
        lambda c, v: Leaf((c,), Op.IN, tuple(v)),
        st.sampled_from("abc"),
        st.lists(NUMBERS, min_size=1, max_size=3, unique=True),
    ),
    st.builds(lambda c: Leaf((c,), Op.IS_NULL), st.sampled_from("abc")),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([And, Or]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
ROWS = st.lists(st.tuples(*[st.one_of(st.none(), NUMBERS)] * 3), min_size=1, max_size=12)
SMALL = pa.schema([pa.field(name, pa.int64()) for name in "abc"])


def holds(predicate, row) -> bool:
    if isinstance(predicate, And):
        return all(holds(part, row) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, row) for part in predicate.parts)
    value = row["abc".index(predicate.path[0])]
    return value is None if predicate.op is Op.IS_NULL else value in predicate.values


@given(PREDICATES, ROWS)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_key_sets_name_the_rows_of_the_predicate(predicate, rows):
    from rowlake.model.schema import FIELD_ID, Schema

    fields = [field.with_metadata({FIELD_ID: str(n + 1)}) for n, field in enumerate(SMALL)]
    schema = Schema(pa.schema(fields))
    sets = key_sets.key_sets(bind(predicate, schema), schema)
    named = [
        (
            each.field_ids,
            set(zip(*(each.columns[i].to_pylist() for i in each.field_ids), strict=True)),
        )
        for each in sets
    ]
    for row in rows:
        found = any(tuple(row[i - 1] for i in ids) in keys for ids, keys in named)
        assert found == holds(predicate, row)


@given(st.lists(PREDICATES, min_size=1, max_size=3), ROWS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_blind_deletes(tmp_path_factory, table_format, predicates, rows):
    with make_lake(tmp_path_factory.mktemp("lake")) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", SMALL, partition_by=["bucket(2, a)"])
        table.append(pa.table(list(map(list, zip(*rows, strict=True))), schema=SMALL))
        for predicate in predicates:
            table.delete(predicate, deletes="equality")
        left = [row for row in rows if not any(holds(each, row) for each in predicates)]
        assert rows_of(table.arrow()) == sorted(left, key=repr)
