"""Bad input through the Python face and the parser: an error of ours, the table as it was.

Each case says which error, and words that its text must have: what, where, what to do.
"""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import (
    CorruptTableError,
    InvalidStatementError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, files_in, make_lake, rows_of, sales

I, S = InvalidStatementError, SchemaMismatchError  # noqa: E741


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("bad") / "lake") as opened:
        opened.create_namespace("shop")
        made = opened.create_table("shop.sales", SALES, partition_by=["store"])
        made.append(sales(8))
        made.create_tag("kept")
        yield opened


TABLE_CASES = {
    "unknown column": (I, ["idd", "id"], lambda t: t.arrow(["idd"])),
    "unknown column in a filter": (
        I,
        ["idd"],
        lambda t: t.arrow(where=Leaf(("idd",), Op.EQ, (1,))),
    ),
    "literal of another type": (
        I,
        ["id", "int64", "'x'"],
        lambda t: t.arrow(where=Leaf(("id",), Op.EQ, ("x",))),
    ),
    "unknown snapshot": (
        I,
        ["shop.sales", "5", "rowlake snapshots"],
        lambda t: t.arrow(snapshot_id=5),
    ),
    "unknown ref": (I, ["shop.sales", "nope", "main"], lambda t: t.arrow(ref="nope")),
    "before the first snapshot": (I, ["shop.sales"], lambda t: t.arrow(as_of="1999-01-01")),
    "no time": (I, ["'yesterday'", "2024-05-01"], lambda t: t.arrow(as_of="yesterday")),
    "two moments": (I, ["one of"], lambda t: t.arrow(snapshot_id=1, ref="main")),
    "text for a number": (
        S,
        ["id", "STRING", "BIGINT"],
        lambda t: t.append(pa.table({"id": ["x"]})),
    ),
    "number out of range": (
        S,
        ["store", "1099511627776", "INT"],
        lambda t: t.append(pa.table({"id": [1], "store": pa.array([2**40])})),
    ),
    "decimal out of range": (S, ["amount"], lambda t: t.append([{"id": 1, "amount": 10**12}])),
    "null for a required column": (S, ["required", "id"], lambda t: t.append([{"id": None}])),
    "required column missing": (S, ["id", "required"], lambda t: t.append([{"store": 1}])),
    "unknown column in rows": (
        S,
        ["shop.sales", "x", "ADD COLUMN"],
        lambda t: t.append([{"id": 1, "x": 1}]),
    ),
    "column twice": (
        S,
        ["Two", "id"],
        lambda t: t.append(pa.table([pa.array([1]), pa.array([1])], names=["id", "ID"])),
    ),
    "rows that are none": (I, ["int", "pyarrow"], lambda t: t.append(5)),
    "list of numbers": (I, ["dicts"], lambda t: t.append([1, 2])),
    "values of two types": (I, ["'x'"], lambda t: t.append([{"id": 1}, {"id": "x"}])),
    "unknown option": (I, ["brunch", "branch"], lambda t: t.append(sales(1), brunch="x")),
    "unknown isolation": (
        I,
        ["odd", "serializable"],
        lambda t: t.overwrite(sales(1), isolation="odd"),
    ),
    "unknown mode": (I, ["odd", "merge-on-read"], lambda t: t.delete("id = 1", mode="odd")),
    "delete without a condition": (I, ["shop.sales", "truncate"], lambda t: t.delete(None)),
    "unknown branch": (I, ["nope", "create_branch"], lambda t: t.append(sales(1), branch="nope")),
    "writing to a tag": (I, ["kept", "tag"], lambda t: t.append(sales(1), branch="kept")),
    "filter that cuts files": (
        I,
        ["some rows", "DELETE"],
        lambda t: t.overwrite(sales(1), where=Leaf(("id",), Op.LT, (3,))),
    ),
    "unknown metadata table": (I, ["fils", "files"], lambda t: t.inspect("fils")),
    "rollback to nothing": (I, ["shop.sales", "5"], lambda t: t.rollback_to(5)),
    "set to nothing": (I, ["shop.sales", "5"], lambda t: t.set_current_snapshot(5)),
    "cherry-pick of nothing": (I, ["shop.sales", "5"], lambda t: t.cherry_pick(5)),
    "publish of nothing": (I, ["shop.sales", "w9"], lambda t: t.publish("w9")),
    "fast-forward to nothing": (I, ["nope"], lambda t: t.fast_forward("main", "nope")),
    "tag twice": (I, ["kept", "already"], lambda t: t.create_tag("kept")),
    "tag at nothing": (I, ["5"], lambda t: t.create_tag("new", snapshot_id=5)),
    "unknown tag option": (I, ["keep", "max_ref_age_ms"], lambda t: t.create_tag("new", keep=5)),
    "drop of nothing": (I, ["nope"], lambda t: t.drop_ref("nope")),
    "drop of main": (I, ["main"], lambda t: t.drop_ref("main")),
    "older format version": (I, ["2", "1"], lambda t: t.set_properties({"format-version": "1"})),
    "unknown format version": (I, ["9", "3"], lambda t: t.set_properties({"format-version": "9"})),
}


@pytest.mark.parametrize("case", TABLE_CASES)
def test_bad_input_to_a_table_changes_nothing(lake, case) -> None:
    kind, words, run = TABLE_CASES[case]
    table = lake.table("shop.sales")
    pointer, files = table.handle.metadata_location, files_in(table.location)
    with pytest.raises(kind) as raised:
        run(table)
    assert type(raised.value) is kind
    missing = [word for word in words if word not in str(raised.value)]
    assert not missing, str(raised.value)
    assert table.handle.metadata_location == pointer
    assert files_in(table.location) == files


def create(schema=SALES, **options):
    return lambda lake: lake.create_table("shop.new", schema, **options)


LAKE_CASES = {
    "unknown table": (
        TableNotFoundError,
        ["shop.sale", "shop.sales"],
        lambda k: k.table("shop.sale"),
    ),
    "unknown namespace": (TableNotFoundError, ["namespace no"], lambda k: k.table("no.t")),
    "no namespace": (TableNotFoundError, ["table default.t"], lambda k: k.table("t")),
    "empty name": (I, ["not a name"], lambda k: k.table("")),
    "number for a name": (I, ["5", "ns.t"], lambda k: k.table(5)),
    "tables of nothing": (TableNotFoundError, ["nope"], lambda k: k.tables("nope")),
    "table twice": (
        I,
        ["shop.sales", "IF NOT EXISTS"],
        lambda k: k.create_table("shop.sales", SALES),
    ),
    "table as twice": (
        I,
        ["shop.sales", "CREATE OR REPLACE"],
        lambda k: k.create_table_as("shop.sales", sales(1), TableDefinition(SALES)),
    ),
    "create in no namespace": (
        TableNotFoundError,
        ["namespace nope"],
        lambda k: k.create_table("nope.t", SALES),
    ),
    "unknown transform": (I, ["weeks", "bucket"], create(partition_by=["weeks(sold_on)"])),
    "transform of another type": (I, ["day", "id", "long"], create(partition_by=["days(id)"])),
    "transform of no column": (I, ["nope", "sold_on"], create(partition_by=["days(nope)"])),
    "no buckets": (I, ["bucket[0]", "at least 1"], create(partition_by=["bucket(0, id)"])),
    "partition field twice": (I, ["different names"], create(partition_by=["store", "store"])),
    "number for a partition field": (I, ["5", "days(ts)"], create(partition_by=[5])),
    "text for a sort key": (I, ["'store'", "OrderBy"], create(sort_by=["store"])),
    "no schema": (I, ["int", "pyarrow"], create(5)),
    "column name twice": (
        I,
        ["a"],
        create(pa.schema([("a", pa.int64()), ("a", pa.int64())])),
    ),
    "type that tables cannot hold": (
        S,
        ["duration", "Cast"],
        create(pa.schema([("a", pa.duration("s"))])),
    ),
    "format version 4": (
        UnsupportedFeatureError,
        ["4", "3"],
        create(properties={"format-version": "4"}),
    ),
    "format version x": (
        UnsupportedFeatureError,
        ["x", "3"],
        create(properties={"format-version": "x"}),
    ),
    "location that nothing opens": (
        UnsupportedFeatureError,
        ["xyz://", "s3"],
        create(location="xyz://a/b"),
    ),
    "drop of nothing": (TableNotFoundError, ["shop.nope"], lambda k: k.drop_table("shop.nope")),
    "rename of nothing": (
        TableNotFoundError,
        ["shop.nope"],
        lambda k: k.rename_table("shop.nope", "shop.b"),
    ),
    "rename into nothing": (
        TableNotFoundError,
        ["namespace nope"],
        lambda k: k.rename_table("shop.sales", "nope.b"),
    ),
    "register of nothing": (
        CorruptTableError,
        ["/nope/v1.metadata.json", "missing"],
        lambda k: k.register_table("shop.r", "/nope/v1.metadata.json"),
    ),
    "drop of a full namespace": (I, ["shop", "not empty"], lambda k: k.drop_namespace("shop")),
    "drop of no namespace": (TableNotFoundError, ["nope"], lambda k: k.drop_namespace("nope")),
    "namespace twice": (I, ["shop", "exists"], lambda k: k.create_namespace("shop")),
}


@pytest.mark.parametrize("case", LAKE_CASES)
def test_bad_input_to_a_lake_makes_nothing(lake, case) -> None:
    kind, words, run = LAKE_CASES[case]
    warehouse = lake.catalog.properties["warehouse"]
    names, files = lake.tables(), files_in(warehouse)
    with pytest.raises(kind) as raised:
        run(lake)
    assert type(raised.value) is kind
    missing = [word for word in words if word not in str(raised.value)]
    assert not missing, str(raised.value)
    assert (lake.tables(), files_in(warehouse)) == (names, files)


PROPERTIES = {
    "commit.retry.num-retries": "x",
    "commit.retry.min-wait-ms": "-1",
    "commit.manifest.min-count-to-merge": "lots",
    "commit.manifest.target-size-bytes": "0",
    "write.target-file-size-bytes": "big",
    "write.parquet.compression-codec": "rar",
    "write.avro.compression-codec": "rar",
    "write.format.default": "csv",
    "write.metadata.metrics.default": "lots",
    "write.metadata.previous-versions-max": "x",
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_value_that_nobody_understands_is_named_and_nothing_is_written(
    tmp_path, name
) -> None:
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        try:
            table = lake.create_table("shop.t", SALES, properties={name: PROPERTIES[name]})
            files = files_in(table.location)
            with pytest.raises(InvalidStatementError) as raised:
                table.append(sales(4))
        except InvalidStatementError as error:
            assert name in str(error)
            return
    assert name in str(raised.value)
    assert PROPERTIES[name] in str(raised.value)
    assert files_in(table.location) == files


def test_summary_values_are_texts(lake) -> None:
    table = lake.create_table("shop.summary", SALES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.append(sales(1), properties={"job": 7})
    assert table.snapshots()[-1].summary["job"] == "7"
    lake.drop_table("shop.summary", purge=True)


@pytest.mark.parametrize("catalog", [None, "filesystem"])
def test_a_warehouse_that_is_a_file_or_below_one_is_refused(tmp_path, catalog) -> None:
    (tmp_path / "file").write_text("here")
    for place in (tmp_path / "file", tmp_path / "file" / "lake"):
        with pytest.raises(StorageError) as raised:
            connect(str(place), catalog)
        assert raised.value.location == str(place)
        assert "folder" in str(raised.value)
    assert (tmp_path / "file").read_text() == "here"


def test_catalogs_that_are_none_are_refused(tmp_path) -> None:
    with pytest.raises(InvalidStatementError, match=r"no catalog nope.*\.pyiceberg\.yaml"):
        connect(str(tmp_path), "nope")
    with pytest.raises(InvalidStatementError, match="5 is no catalog"):
        connect(str(tmp_path), 5)
    with pytest.raises(InvalidStatementError, match="5 is no warehouse"):
        connect(5)
    with pytest.raises(UnsupportedFeatureError, match="xyz://"):
        connect("xyz://a/b")


def test_a_folder_that_may_not_be_written_leaves_the_table_as_it_was(lake, monkeypatch) -> None:
    from rowlake.storage import local
    from rowlake.storage.files import Storage

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    table = lake.table("shop.sales")
    before, files = rows_of(table.arrow()), files_in(table.location)
    with monkeypatch.context() as patch, pytest.raises(StorageError) as raised:
        patch.setattr(local, "with_parent", refuse)
        table.append(sales(4, 50))
    assert raised.value.cause == "permission denied"
    assert "permissions" in str(raised.value)
    with monkeypatch.context() as patch, pytest.raises(StorageError) as raised:
        patch.setattr(local, "write", refuse)  # data files go, manifests do not
        table.append(sales(4, 50))
    assert raised.value.cause == "permission denied"
    assert raised.value.location.startswith(table.location)
    assert rows_of(table.arrow()) == before
    assert files_in(table.location) == files
    assert Storage({}).exists(table.location)


STATEMENTS = {
    "CREATE TABLE shop.b (id bigintt)": (I, ["bigintt", "column 25"]),
    "CREATE TABLE shop.b (id bigint) PARTITIONED BY (weeks(id))": (I, ["weeks", "bucket"]),
    "CREATE TABLE shop.b (id bigint) TBLPROPERTIES ('format-version'='7')": (
        UnsupportedFeatureError,
        ["7", "3"],
    ),
    "ALTER TABLE shop.sales DROP COLUMN nope": (I, ["shop.sales", "nope"]),
    "ALTER TABLE shop.sales ALTER COLUMN id TYPE int": (I, ["id", "long", "int"]),
    "ALTER TABLE shop.sales ADD COLUMN note string": (I, ["note", "exists"]),
    "ALTER TABLE shop.sales DROP PARTITION FIELD nope": (I, ["nope"]),
    "CALL system.nope('x')": (UnsupportedFeatureError, ["nope", "rollback_to_snapshot"]),
    "CALL system.rollback_to_snapshot('shop.sales')": (I, ["snapshot_id"]),
    "DROP TABLE shop.sales shop.b": (I, ["end of the statement", "column 23"]),
    "DROP TABLE shop.a; DROP TABLE shop.b": (I, ["column 18"]),
    "  ": (I, ["empty"]),
    "DROP TABLE `shop.a": (I, ["not closed", "column 12"]),
    "ALTER TABLE shop.sales SET TBLPROPERTIES ('a'='b)": (I, ["not closed"]),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_bad_statements_are_refused_before_spark_starts(lake, statement, monkeypatch) -> None:
    kind, words = STATEMENTS[statement]
    pointer = lake.table("shop.sales").handle.metadata_location
    monkeypatch.setattr(type(lake.engine), "spark", property(lambda _: pytest.fail("Spark")))
    with pytest.raises(kind) as raised:
        lake.sql(statement)
    assert not [word for word in words if word not in str(raised.value)], str(raised.value)
    assert lake.table("shop.sales").handle.metadata_location == pointer


def test_a_statement_is_text(lake) -> None:
    with pytest.raises(InvalidStatementError, match="NoneType"):
        lake.sql(None)
