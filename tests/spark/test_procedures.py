"""CALL and ALTER TABLE through a real session: what users type, and what stays after an error."""

from __future__ import annotations

import datetime as dt
import os

import pytest

import rowlake
from rowlake.errors import (
    InvalidStatementError,
    RowlakeError,
    TableNotFoundError,
    UnsupportedFeatureError,
)


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    yield found
    found.close()


@pytest.fixture
def table(lake):
    """A table of three snapshots, of 1, 2 and 3 rows."""
    lake.sql("CREATE OR REPLACE TABLE shop.t (id bigint, name string)")
    lake.drop_table("shop.t")
    lake.sql("CREATE TABLE shop.t (id bigint, name string)")
    for number in range(3):
        lake.sql(f"INSERT INTO shop.t VALUES ({number}, 'n{number}')")
    yield lake.table("shop.t")
    for setting in ("spark.wap.id", "spark.wap.branch"):
        lake.spark.conf.unset(setting)


def rows(lake, text):
    return [tuple(row) for row in lake.sql(text).collect()]


def ids(table):
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def test_history_procedures_by_position_and_by_name(lake, table):
    first, second, third = ids(table)
    found = lake.sql(f"CALL system.rollback_to_snapshot('shop.t', {second})")
    assert found.columns == ["previous_snapshot_id", "current_snapshot_id"]
    assert [tuple(row) for row in found.collect()] == [(third, second)]
    name = lake.catalog.name
    text = f"CALL `{name}`.system.set_current_snapshot(snapshot_id => {third}, table => 'shop.t')"
    assert rows(lake, text) == [(second, third)]
    found = lake.sql("CALL system.ancestors_of('shop.t')")
    assert found.columns == ["snapshot_id", "timestamp"]
    assert [row[0] for row in found.collect()] == [third, second, first]
    assert len(rows(lake, f"CALL system.ancestors_of('shop.t', {second})")) == 2
    lake.sql("ALTER TABLE shop.t CREATE TAG old AS OF VERSION " + str(first))
    text = "CALL system.set_current_snapshot(table => 'shop.t', ref => 'old')"
    assert rows(lake, text) == [(third, first)]
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(1,)]


def test_rollback_to_a_timestamp_means_the_sessions_zone(lake, table):
    first, _, third = table.snapshots()
    after = dt.datetime.fromtimestamp(third.timestamp_ms / 1000 + 1, dt.timezone.utc)
    text = after.strftime("%Y-%m-%d %H:%M:%S.%f")
    zone = lake.spark.conf.get("spark.sql.session.timeZone")
    lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        for argument in (f"TIMESTAMP '{text}'", f"'{text}'"):
            found = rows(lake, f"CALL system.rollback_to_timestamp('shop.t', {argument})")
            assert found == [(third.snapshot_id, third.snapshot_id)]
        old = "TIMESTAMP '2001-01-01 00:00:00'"
        with pytest.raises(InvalidStatementError, match="older than"):
            lake.sql(f"CALL system.rollback_to_timestamp('shop.t', {old})")
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", zone)
    assert first.snapshot_id in ids(table)


def test_cherry_pick_fast_forward_and_branches(lake, table):
    lake.sql("ALTER TABLE shop.t CREATE BRANCH b")
    lake.sql("INSERT INTO shop.t.branch_b VALUES (9, 'b')")
    picked = ids(table)[-1]
    lake.sql("INSERT INTO shop.t VALUES (7, 'm')")
    found = lake.sql(f"CALL system.cherrypick_snapshot('shop.t', {picked})")
    assert found.columns == ["source_snapshot_id", "current_snapshot_id"]
    assert found.collect()[0][0] == picked
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(5,)]
    lake.sql("ALTER TABLE shop.t CREATE OR REPLACE BRANCH b")
    lake.sql("INSERT INTO shop.t.branch_b VALUES (10, 'b')")
    found = lake.sql("CALL system.fast_forward('shop.t', 'main', 'b')")
    assert found.columns == ["branch_updated", "previous_ref", "updated_ref"]
    assert found.collect()[0][0] == "main"
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(6,)]


def test_write_audit_publish_by_settings_of_the_session(lake, table):
    lake.sql("ALTER TABLE shop.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    lake.spark.conf.set("spark.wap.id", "job-1")
    lake.sql("INSERT INTO shop.t VALUES (50, 'staged')")
    lake.spark.conf.unset("spark.wap.id")
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(3,)]
    staged = ids(table)[-1]
    lake.sql("INSERT INTO shop.t VALUES (51, 'now')")
    found = lake.sql("CALL system.publish_changes(table => 'shop.t', wap_id => 'job-1')")
    assert found.columns == ["source_snapshot_id", "current_snapshot_id"]
    assert found.collect()[0][0] == staged
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(5,)]
    lake.spark.conf.set("spark.wap.branch", "etl")
    lake.sql("INSERT INTO shop.t VALUES (52, 'branch')")
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(6,)]
    assert rows(lake, "SELECT count(*) FROM shop.t.branch_main") == [(5,)]
    assert table.df(where="id = 52").count() == 1
    lake.spark.conf.unset("spark.wap.branch")
    assert rows(lake, "SELECT count(*) FROM shop.t") == [(5,)]
    assert rows(lake, "SELECT count(*) FROM shop.t.branch_etl") == [(6,)]


@pytest.fixture
def directory(spark, tmp_path):
    """A directory that Spark wrote, partitioned by a date and a text."""
    target = str(tmp_path / "plain")
    spark.sql(
        "SELECT id, CAST(id AS decimal(9, 2)) AS amount, TIMESTAMP'2024-01-01 10:00:00' AS at, "
        "date_add(DATE'2024-01-01', CAST(id % 2 AS int)) AS d, concat('a/', id % 3) AS k "
        "FROM range(12)"
    ).write.partitionBy("d", "k").parquet(target)
    return target


def test_add_files_of_a_directory_that_spark_wrote(lake, spark, directory):
    lake.sql(
        "CREATE TABLE shop.added (id bigint, amount decimal(9, 2), at timestamp, d date, k string) "
        "PARTITIONED BY (d, k)"
    )
    text = f"table => 'shop.added', source_table => '`parquet`.`{directory}`'"
    found = lake.sql(f"CALL system.add_files({text}, partition_filter => map('d', '2024-01-02'))")
    assert found.columns == ["added_files_count", "changed_partition_count"]
    added = found.collect()[0]
    assert added[1] == 3
    expected = spark.read.parquet(directory)
    columns = "id, amount, at, d, k"
    assert sorted(rows(lake, f"SELECT {columns} FROM shop.added")) == sorted(
        tuple(row)
        for row in expected.where("d = '2024-01-02'").selectExpr(*columns.split(", ")).collect()
    )
    with pytest.raises(InvalidStatementError, match="already"):
        lake.sql(f"CALL system.add_files({text})")
    lake.sql("TRUNCATE TABLE shop.added")
    lake.sql(f"CALL system.add_files({text})")
    assert rows(lake, "SELECT count(*), count(DISTINCT k) FROM shop.added WHERE amount < 6") == [
        (6, 3)
    ]
    lake.drop_table("shop.added")


def test_many_footers_are_read_by_spark_tasks(lake, spark, tmp_path):
    target = str(tmp_path / "many")
    spark.range(0, 700, 1, 70).write.parquet(target)
    lake.sql("CREATE TABLE shop.many (id bigint)")
    assert rows(lake, f"CALL system.add_files('shop.many', 'parquet.`{target}`')") == [(70, 1)]
    assert rows(lake, "SELECT count(*), sum(id) FROM shop.many") == [(700, 244650)]
    lake.drop_table("shop.many")


def test_snapshot_and_migrate_of_spark_tables(lake, spark, tmp_path, directory):
    spark.sql("CREATE DATABASE IF NOT EXISTS plain")
    spark.sql("DROP TABLE IF EXISTS plain.src")
    spark.sql(f"CREATE TABLE plain.src USING parquet LOCATION '{directory}'")
    spark.sql("MSCK REPAIR TABLE plain.src")
    found = lake.sql(
        "CALL system.snapshot(source_table => 'spark_catalog.plain.src', table => 'shop.snap', "
        "properties => map('owner', 'me'))"
    )
    assert found.columns == ["imported_files_count"]
    assert rows(lake, "SELECT count(*), max(d) FROM shop.snap") == [(12, dt.date(2024, 1, 2))]
    assert lake.table("shop.snap").properties["owner"] == "me"
    lake.create_namespace("plain", if_not_exists=True)
    found = lake.sql("CALL system.migrate('plain.src', drop_backup => true)")
    assert found.columns == ["migrated_files_count"]
    assert not spark.catalog.tableExists("spark_catalog.plain.src")
    lake.sql("INSERT INTO plain.src (id) VALUES (100)")
    assert rows(lake, "SELECT count(*) FROM plain.src") == [(13,)]
    spark.sql("DROP DATABASE plain CASCADE")


def test_register_table(lake, table):
    location = table.handle.metadata_location
    lake.sql("CREATE NAMESPACE IF NOT EXISTS other")
    found = lake.sql(
        f"CALL system.register_table(table => 'other.t', metadata_file => '{location}')"
    )
    assert found.columns == [
        "current_snapshot_id",
        "total_records_count",
        "total_data_files_count",
    ]
    assert [tuple(row) for row in found.collect()] == [(ids(table)[-1], 3, 3)]
    lake.drop_table("other.t")


WRONG_CALLS = {
    "system.rewrite_nothing('shop.t')": (UnsupportedFeatureError, "ancestors_of"),
    "system.rollback_to_snapshot('shop.t')": (InvalidStatementError, "snapshot_id"),
    "system.rollback_to_snapshot('shop.t', NULL)": (InvalidStatementError, "snapshot_id"),
    "system.rollback_to_snapshot('shop.t', 'x')": (InvalidStatementError, "whole number"),
    "system.rollback_to_snapshot('shop.t', 1, 2)": (InvalidStatementError, "argument 3"),
    "system.rollback_to_snapshot('shop.t', 1)": (InvalidStatementError, "no snapshot 1"),
    "system.rollback_to_snapshot(5, 1)": (InvalidStatementError, "a string"),
    "system.rollback_to_snapshot('shop.none', 1)": (TableNotFoundError, "shop.none"),
    "system.set_current_snapshot('shop.t')": (InvalidStatementError, "either"),
    "system.set_current_snapshot('shop.t', ref => 'x')": (InvalidStatementError, "x"),
    "system.ancestors_of('shop.t', 3)": (InvalidStatementError, "no snapshot 3"),
    "system.publish_changes('shop.t', 'w')": (InvalidStatementError, "staged as w"),
    "system.fast_forward('shop.t', 'main', 'nope')": (InvalidStatementError, "nope"),
    "system.add_files('shop.t', 'parquet.`/no/where`')": (InvalidStatementError, "/no/where"),
    "system.add_files('shop.t', 'nowhere.at_all')": (InvalidStatementError, "Spark's catalog"),
    "system.migrate('parquet.`/x`')": (InvalidStatementError, "lake.migrate"),
}


@pytest.mark.parametrize("call", list(WRONG_CALLS))
def test_wrong_calls_say_what_is_wrong_and_change_nothing(lake, table, call):
    error, words = WRONG_CALLS[call]
    before = table.handle.metadata_location
    with pytest.raises(error, match=words):
        lake.sql(f"CALL {call}")
    assert table.handle.metadata_location == before


@pytest.mark.parametrize("form", ["array('{}')", "'/nowhere, {}'"])
def test_expiry_and_orphans_touch_other_folders_where_the_call_says_so(spark, tmp_path, form):
    # A lake of its own: a table that cannot be read leaves open whose a shared folder is.
    lake = rowlake.connect(str(tmp_path / "lake"), spark=spark)
    lake.create_namespace("shop")
    outside = f"TBLPROPERTIES ('write.data.path' = '{tmp_path}/data')"
    lake.sql(f"CREATE TABLE shop.outside (id bigint) {outside}")
    lake.sql("INSERT INTO shop.outside VALUES (1)")
    first = ids(lake.table("shop.outside"))[0]
    lake.sql("TRUNCATE TABLE shop.outside")
    (orphan,) = (tmp_path / "data").glob("*.parquet")
    stray = orphan.with_name("stray.parquet")
    stray.write_bytes(b"1")
    os.utime(stray, (0, 0))
    also = f"also_below => {form.format(tmp_path / 'data')}"
    call = "CALL system.remove_orphan_files(table => 'shop.outside'"
    assert rows(lake, f"{call})") == []
    assert rows(lake, f"{call}, {also})") == [(str(stray),)]
    found = lake.sql(
        f"CALL system.expire_snapshots(table => 'shop.outside', snapshot_ids => array({first}), "
        f"{also})"
    )
    assert found.collect()[0]["deleted_data_files_count"] == 1
    assert len(found.columns) == 6
    assert not orphan.exists()


def test_describe_history(lake, table):
    found = lake.sql("DESCRIBE HISTORY shop.t")
    assert found.count() == 3
    lake.sql(f"CALL system.rollback_to_snapshot('shop.t', {ids(table)[0]})")
    assert rows(lake, "SELECT count(*) FROM shop.t.history") == [(4,)]


# ---------------------------------------------------------------------- evolution


@pytest.fixture
def shaped(lake):
    lake.drop_table("shop.s", if_exists=True)
    lake.sql(
        "CREATE TABLE shop.s (id bigint NOT NULL, price float, qty int, amount decimal(9, 2), "
        "place struct<lat: double, city: string>, tags array<struct<k: string>>, d date) "
        "PARTITIONED BY (d)"
    )
    lake.sql(
        "INSERT INTO shop.s VALUES (1, 1.5, 2, 3.25, named_struct('lat', 1.0, 'city', 'Oslo'), "
        "array(named_struct('k', 'x')), DATE'2024-01-01')"
    )
    return lake.table("shop.s")


def test_columns_are_added_dropped_renamed_and_reordered_nested_too(lake, shaped):
    for action in (
        "ADD COLUMN note string COMMENT 'free text' AFTER id",
        "ADD COLUMNS (place.zip string, tags.element.v int)",
        "ADD COLUMN first_one int FIRST",
        "RENAME COLUMN place.city TO town",
        "ALTER COLUMN place.town FIRST",
        "DROP COLUMN qty",
        "ALTER COLUMN price TYPE double",
        "ALTER COLUMN amount TYPE decimal(12, 2)",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN note COMMENT 'changed'",
    ):
        lake.sql(f"ALTER TABLE shop.s {action}")
    found = lake.sql("SELECT * FROM shop.s")
    assert found.columns == [
        "first_one",
        "id",
        "note",
        "price",
        "amount",
        "place",
        "tags",
        "d",
    ]
    row = found.collect()[0]
    assert row.place.asDict() == {"town": "Oslo", "lat": 1.0, "zip": None}
    assert row.tags[0].asDict() == {"k": "x", "v": None}
    assert (row.price, row.note, row.first_one) == (1.5, None, None)
    assert shaped.schema.find_field("note").doc == "changed"
    lake.sql("ALTER TABLE shop.s ADD COLUMN qty string")
    assert rows(lake, "SELECT qty FROM shop.s") == [(None,)]


def test_identifier_fields_partition_fields_and_order(lake, shaped):
    lake.sql("ALTER TABLE shop.s SET IDENTIFIER FIELDS id")
    assert shaped.schema.identifier_field_names() == {"id"}
    lake.sql("ALTER TABLE shop.s DROP IDENTIFIER FIELDS id")
    assert not shaped.schema.identifier_field_names()
    lake.sql("ALTER TABLE shop.s ADD PARTITION FIELD bucket(4, id) AS shard")
    lake.sql("ALTER TABLE shop.s REPLACE PARTITION FIELD d WITH months(d)")
    lake.sql("INSERT INTO shop.s (id, d) VALUES (2, DATE'2024-02-02')")
    assert rows(lake, "SELECT id FROM shop.s WHERE d > DATE'2024-01-15'") == [(2,)]
    assert [field.name for field in shaped.spec.fields if str(field.transform) != "void"] == [
        "shard",
        "d_month",
    ]
    lake.sql("ALTER TABLE shop.s DROP PARTITION FIELD shard")
    lake.sql("ALTER TABLE shop.s WRITE ORDERED BY d DESC NULLS LAST, bucket(4, id)")
    order = shaped.handle.metadata.sort_order_by_id(shaped.handle.metadata.default_sort_order_id)
    assert [str(field.transform) for field in order.fields] == ["identity", "bucket[4]"]
    lake.sql("INSERT INTO shop.s (id, d) VALUES (3, DATE'2024-03-03')")
    assert rows(lake, "SELECT count(*) FROM shop.s") == [(3,)]


def test_odd_names_partition_and_order_through_statements(lake):
    lake.drop_table("shop.odd", if_exists=True)
    lake.sql(
        "CREATE TABLE shop.odd (`a.b` int, `with space` bigint, `(x)` string, "
        "st struct<`c.d`: int>) PARTITIONED BY (`a.b`, bucket(4, `with space`))"
    )
    lake.sql("INSERT INTO shop.odd VALUES (1, 2, 'x', named_struct('c.d', 5))")
    lake.sql("ALTER TABLE shop.odd ADD PARTITION FIELD truncate(3, `(x)`)")
    lake.sql("ALTER TABLE shop.odd WRITE ORDERED BY `a.b`, `(x)` DESC")
    lake.sql("INSERT INTO shop.odd VALUES (2, 3, 'y', NULL)")
    assert rows(lake, "SELECT `a.b`, `(x)` FROM shop.odd WHERE `a.b` = 2") == [(2, "y")]
    lake.sql("ALTER TABLE shop.odd DROP PARTITION FIELD `a.b`")
    lake.sql("ALTER TABLE shop.odd RENAME COLUMN `a.b` TO `c d`")
    lake.sql("INSERT INTO shop.odd VALUES (3, 3, 'z', NULL)")
    assert sorted(rows(lake, "SELECT `c d` FROM shop.odd")) == [(1,), (2,), (3,)]


WRONG_CHANGES = {
    "drop of a partition column": "DROP COLUMN d",
    "narrowing": "ALTER COLUMN id TYPE int",
    "another type": "ALTER COLUMN qty TYPE string",
    "text to bytes": "ALTER COLUMN place.city TYPE binary",
    "decimal scale": "ALTER COLUMN amount TYPE decimal(12, 3)",
    "required without default": "ADD COLUMN must int NOT NULL",
    "required later": "ALTER COLUMN qty SET NOT NULL",
    "a name twice": "ADD COLUMN qty int",
    "unknown column": "DROP COLUMN nope",
    "unknown parent": "ADD COLUMN nope.x int",
    "rename onto another": "RENAME COLUMN qty TO price",
    "identifier that may be null": "SET IDENTIFIER FIELDS qty",
    "no identifier": "DROP IDENTIFIER FIELDS id",
    "partition field twice": "ADD PARTITION FIELD d",
    "unknown partition field": "DROP PARTITION FIELD nope",
    "transform that does not fit": "ADD PARTITION FIELD days(qty)",
    "unknown transform": "ADD PARTITION FIELD fortnight(d)",
    "order by nothing known": "WRITE ORDERED BY nope",
    "move after nothing": "ALTER COLUMN qty AFTER nope",
    "format version": "SET TBLPROPERTIES ('format-version' = '1')",
}


@pytest.mark.parametrize("name", list(WRONG_CHANGES))
def test_wrong_changes_are_refused_and_leave_the_table_as_it_was(lake, shaped, name):
    before = shaped.handle.metadata_location
    with pytest.raises(RowlakeError):
        lake.sql(f"ALTER TABLE shop.s {WRONG_CHANGES[name]}")
    assert shaped.handle.metadata_location == before
    assert rows(lake, "SELECT id FROM shop.s") == [(1,)]
