"""Statements and what they ask for."""

from __future__ import annotations

import time

import pytest

from rowlake.dml.operations import Delete
from rowlake.errors import InvalidStatementError
from rowlake.model.metadata_change import (
    CreateRef,
    DropRef,
    Retention,
    SetProperties,
    UnsetProperties,
)
from rowlake.query.shape import TimeTravel
from rowlake.sql import alter_statements as alter_s
from rowlake.sql import statements as s
from rowlake.sql.parse.statement import parse
from rowlake.sqltext.lexer import Lexer
from rowlake.sqltext.terms import PartitionTerm as Part
from rowlake.sqltext.terms import SortTerm
from rowlake.sqltext.types import Field, List, Map, Primitive, Struct

INT, LONG, TEXT = Primitive("int"), Primitive("long"), Primitive("string")


def created(text: str) -> s.CreateTable:
    found = parse(text)
    assert isinstance(found, s.CreateTable)
    return found


def action(text: str) -> object:
    found = parse(f"ALTER TABLE ns.t {text}")
    assert isinstance(found, alter_s.AlterTable)
    assert found.name == ("ns", "t")
    (only,) = found.actions
    return only


ACTIONS = {
    "RENAME TO ns.u": alter_s.RenameTable(("ns", "u")),
    "rename column a.b to c": alter_s.RenameColumn(("a", "b"), "c"),
    "ADD COLUMN x int": alter_s.AddColumns((alter_s.NewColumn(Field("x", INT)),)),
    "ADD COLUMNS (x int FIRST, a.y string COMMENT 'why' AFTER z)": alter_s.AddColumns(
        (
            alter_s.NewColumn(Field("x", INT), after=""),
            alter_s.NewColumn(Field("y", TEXT, comment="why"), ("a",), "z"),
        )
    ),
    "ADD COLUMN IF NOT EXISTS x int DEFAULT 1 + f(2, 3) COMMENT 'c'": alter_s.AddColumns(
        (alter_s.NewColumn(Field("x", INT, comment="c", default="1 + f(2, 3)")),), True
    ),
    "ADD COLUMN points.element.z double": alter_s.AddColumns(
        (alter_s.NewColumn(Field("z", Primitive("double")), ("points", "element")),)
    ),
    "DROP COLUMN a.b": alter_s.DropColumns((("a", "b"),)),
    "DROP COLUMNS IF EXISTS (a, `b c`)": alter_s.DropColumns((("a",), ("b c",)), True),
    "ALTER COLUMN x TYPE bigint": alter_s.AlterColumn(("x",), type=LONG),
    "ALTER COLUMN x DROP NOT NULL": alter_s.AlterColumn(("x",), required=False),
    "ALTER COLUMN x SET NOT NULL": alter_s.AlterColumn(("x",), required=True),
    "ALTER COLUMN a.b COMMENT 'it''s'": alter_s.AlterColumn(("a", "b"), comment="it's"),
    "ALTER COLUMN x FIRST": alter_s.AlterColumn(("x",), after=""),
    "ALTER COLUMN a.x AFTER y": alter_s.AlterColumn(("a", "x"), after="y"),
    "ALTER COLUMN x SET DEFAULT 7": alter_s.AlterColumn(("x",), default="7"),
    "ALTER COLUMN x DROP DEFAULT": alter_s.AlterColumn(("x",), default=""),
    "CHANGE COLUMN x x bigint COMMENT 'c' FIRST": alter_s.AlterColumn(
        ("x",), type=LONG, comment="c", after=""
    ),
    "REPLACE COLUMNS (a int, b string)": alter_s.ReplaceColumns(
        (Field("a", INT), Field("b", TEXT))
    ),
    "SET TBLPROPERTIES ('a.b' = 'c', d.e-f = 1, g = true)": SetProperties(
        {"a.b": "c", "d.e-f": "1", "g": "true"}
    ),
    "UNSET TBLPROPERTIES IF EXISTS ('a', b.c)": UnsetProperties(("a", "b.c")),
    "SET LOCATION 's3://b/t'": alter_s.SetLocation("s3://b/t"),
    "ADD PARTITION FIELD bucket(16, id) AS shard": alter_s.AddPartitionField(
        Part("bucket[16]", ("id",), "shard")
    ),
    "ADD PARTITION FIELD truncate(data, 4)": alter_s.AddPartitionField(
        Part("truncate[4]", ("data",))
    ),
    "ADD PARTITION FIELD truncate(4, data)": alter_s.AddPartitionField(
        Part("truncate[4]", ("data",))
    ),
    "DROP PARTITION FIELD shard": alter_s.DropPartitionField(Part("identity", ("shard",))),
    "DROP PARTITION FIELD days(ts)": alter_s.DropPartitionField(Part("day", ("ts",))),
    "REPLACE PARTITION FIELD ts_day WITH hours(ts) AS h": alter_s.ReplacePartitionField(
        Part("identity", ("ts_day",)), Part("hour", ("ts",), "h")
    ),
    "WRITE ORDERED BY a, b DESC NULLS FIRST": alter_s.SetWriteOrder(
        "range",
        (SortTerm("identity", ("a",)), SortTerm("identity", ("b",), False, True)),
    ),
    "WRITE LOCALLY ORDERED BY (bucket(4, a) DESC)": alter_s.SetWriteOrder(
        None, (SortTerm("bucket[4]", ("a",), False, False),)
    ),
    "WRITE DISTRIBUTED BY PARTITION": alter_s.SetWriteOrder("hash", ()),
    "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a": alter_s.SetWriteOrder(
        "hash", (SortTerm("identity", ("a",)),)
    ),
    "WRITE LOCALLY ORDERED BY a DISTRIBUTED BY PARTITION": alter_s.SetWriteOrder(
        "hash", (SortTerm("identity", ("a",)),)
    ),
    "WRITE DISTRIBUTED BY PARTITION ORDERED BY a": alter_s.SetWriteOrder(
        "hash", (SortTerm("identity", ("a",)),)
    ),
    "WRITE DISTRIBUTED BY PARTITION UNORDERED": alter_s.SetWriteOrder("hash", ()),
    "WRITE UNORDERED": alter_s.SetWriteOrder("none", ()),
    "SET IDENTIFIER FIELDS id, a.b": alter_s.SetIdentifierFields((("id",), ("a", "b"))),
    "DROP IDENTIFIER FIELDS id": alter_s.DropIdentifierFields((("id",),)),
    "CREATE BRANCH b": CreateRef("b", "branch"),
    "CREATE OR REPLACE BRANCH `b-1` AS OF VERSION 12 RETAIN 7 DAYS "
    "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS": CreateRef(
        "b-1", "branch", 12, Retention(604_800_000, 10_800_000, 2), replace=True
    ),
    "CREATE BRANCH IF NOT EXISTS b WITH SNAPSHOT RETENTION 3 SNAPSHOTS": CreateRef(
        "b", "branch", retention=Retention(min_snapshots_to_keep=3), if_not_exists=True
    ),
    "REPLACE BRANCH b AS OF VERSION 3": CreateRef("b", "branch", 3, replace=True, create=False),
    "CREATE TAG x AS OF VERSION 5 RETAIN 30 MINUTES": CreateRef(
        "x", "tag", 5, Retention(max_ref_age_ms=1_800_000)
    ),
    "DROP BRANCH IF EXISTS b": DropRef("b", if_exists=True, kind="branch"),
    "DROP TAG x": DropRef("x", kind="tag"),
}


@pytest.mark.parametrize(("text", "expected"), ACTIONS.items(), ids=list(ACTIONS))
def test_alter_table(text, expected):
    assert action(text) == expected
    assert action(f"  {text} ;") == expected


def test_alter_several_columns_at_once():
    found = parse("ALTER TABLE t ALTER COLUMN a TYPE bigint, b COMMENT 'x'")
    assert found == alter_s.AlterTable(
        ("t",), (alter_s.AlterColumn(("a",), type=LONG), alter_s.AlterColumn(("b",), comment="x"))
    )


STATEMENTS = {
    "DROP TABLE ns.t": s.DropTable(("ns", "t")),
    "DROP TABLE IF EXISTS `a.b`.`c d` PURGE;": s.DropTable(("a.b", "c d"), True, True),
    "CREATE NAMESPACE ns": s.CreateNamespace(("ns",)),
    "CREATE SCHEMA IF NOT EXISTS a.b COMMENT 'c' LOCATION 'l' WITH DBPROPERTIES ('k'='v')": (
        s.CreateNamespace(("a", "b"), True, "c", "l", {"k": "v"})
    ),
    "DROP DATABASE IF EXISTS ns CASCADE": s.DropNamespace(("ns",), True, True),
    "ALTER NAMESPACE ns SET PROPERTIES ('a'='b')": s.AlterNamespace(("ns",), {"a": "b"}),
    "USE ns": s.Use(("ns",)),
    "USE NAMESPACE a.b": s.Use(("a", "b")),
    "SHOW TABLES": s.ShowTables(),
    "SHOW TABLES IN ns LIKE 'a*'": s.ShowTables(("ns",), "a*"),
    "SHOW TABLES FROM ns 'a*'": s.ShowTables(("ns",), "a*"),
    "SHOW NAMESPACES": s.ShowNamespaces(),
    "SHOW DATABASES LIKE 'x'": s.ShowNamespaces(None, "x"),
    "SHOW SCHEMAS IN a": s.ShowNamespaces(("a",)),
    "SHOW CREATE TABLE ns.t": s.ShowCreateTable(("ns", "t")),
    "SHOW TBLPROPERTIES t": s.ShowProperties(("t",)),
    "SHOW TBLPROPERTIES t ('a.b')": s.ShowProperties(("t",), "a.b"),
    "SHOW TBLPROPERTIES t (a.b)": s.ShowProperties(("t",), "a.b"),
    "SHOW COLUMNS IN t": s.ShowColumns(("t",)),
    "SHOW PARTITIONS t": s.ShowPartitions(("t",)),
    "SHOW FUNCTIONS": s.Passthrough("SHOW FUNCTIONS"),
    "DESCRIBE t": s.DescribeTable(("t",)),
    "DESC TABLE EXTENDED ns.t": s.DescribeTable(("ns", "t"), True),
    "DESCRIBE FORMATTED ns.t": s.DescribeTable(("ns", "t"), True),
    "DESCRIBE ns.t a.b": s.DescribeTable(("ns", "t"), False, ("a", "b")),
    "DESCRIBE extended": s.DescribeTable(("extended",)),
    "DESCRIBE HISTORY ns.t": s.DescribeHistory(("ns", "t")),
    "DESCRIBE HISTORY ns.t LIMIT 3": s.DescribeHistory(("ns", "t"), 3),
    "DESCRIBE NAMESPACE EXTENDED ns": s.DescribeNamespace(("ns",), True),
    "DESCRIBE SELECT 1": s.Passthrough("DESCRIBE SELECT 1"),
    "DESCRIBE FUNCTION abs": s.Passthrough("DESCRIBE FUNCTION abs"),
    "TRUNCATE TABLE ns.t": s.Truncate(("ns", "t")),
    "INSERT INTO ns.t VALUES (1, 'a')": s.Insert(("ns", "t"), "VALUES (1, 'a')", 17),
    "INSERT INTO TABLE t (a, `b c`) SELECT 1, 2;": s.Insert(
        ("t",), "SELECT 1, 2", 31, ("a", "b c")
    ),
    "INSERT INTO t BY NAME SELECT 1 AS a": s.Insert(("t",), "SELECT 1 AS a", 22, by_name=True),
    "INSERT INTO t (SELECT 1)": s.Insert(("t",), "(SELECT 1)", 14),
    "INSERT OVERWRITE t SELECT * FROM u": s.Insert(("t",), "SELECT * FROM u", 19, overwrite=True),
    "INSERT OVERWRITE TABLE t PARTITION (a = 1 + 2, b) (c) SELECT 3": s.Insert(
        ("t",),
        "SELECT 3",
        54,
        ("c",),
        overwrite=True,
        partition=(s.StaticPartition("a", "1 + 2"), s.StaticPartition("b", None)),
    ),
    "INSERT INTO t REPLACE WHERE a = (b) AND c < 3 SELECT 1": s.Insert(
        ("t",), "SELECT 1", 46, overwrite=True, where="a = (b) AND c < 3"
    ),
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x": s.Insert(
        ("t",), "SELECT * FROM x", 35, with_clause="WITH x AS (SELECT 1) "
    ),
    "CALL system.rollback_to_snapshot('ns.t', 12)": s.Call(
        "rollback_to_snapshot", (s.Argument("'ns.t'", None, 33), s.Argument("12", None, 41))
    ),
    "CALL cat.SYSTEM.Expire_Snapshots(table => 'a', options => map('k', 'v'))": s.Call(
        "expire_snapshots",
        (s.Argument("'a'", "table", 42), s.Argument("map('k', 'v')", "options", 58)),
        ("cat",),
    ),
    "OPTIMIZE ns.t WHERE a > 1 ZORDER BY (a, b.c)": s.Optimize(
        ("ns", "t"), "a > 1", (("a",), ("b", "c"))
    ),
    "VACUUM t RETAIN 1.5 HOURS DRY RUN": s.Vacuum(("t",), 1.5, True),
    "VACUUM '/data/t' FULL": s.Vacuum(("delta", "/data/t")),
    "RESTORE TABLE ns.t TO VERSION AS OF 3": s.Restore(("ns", "t"), TimeTravel("version", "3")),
    "RESTORE t TIMESTAMP AS OF '2024-01-01'": s.Restore(
        ("t",), TimeTravel("timestamp", "'2024-01-01'")
    ),
    "CREATE TABLE IF NOT EXISTS a SHALLOW CLONE ns.b VERSION AS OF 1 LOCATION '/x'": s.CloneTable(
        ("a",),
        ("ns", "b"),
        True,
        TimeTravel("version", "1"),
        location="/x",
        if_not_exists=True,
    ),
    "CREATE TABLE delta.`/a` CLONE b TBLPROPERTIES ('k' = 'v')": s.CloneTable(
        ("delta", "/a"), ("b",), properties={"k": "v"}
    ),
    "REORG TABLE t WHERE a = 1 APPLY (PURGE)": s.Reorg(("t",), "a = 1"),
    "GENERATE symlink_format_manifest FOR TABLE ns.t": s.Generate(
        ("ns", "t"), "symlink_format_manifest"
    ),
    "CONVERT TO DELTA parquet.`/p` NO STATISTICS": s.ConvertToDelta("/p", None, False),
    "CREATE OR REPLACE TEMP VIEW v (a, b) AS SELECT 1, 2": s.CreateTempView(
        ("v",), "SELECT 1, 2", ("a", "b"), True
    ),
    "CREATE TEMPORARY VIEW v (a COMMENT 'x', b) COMMENT 'y' AS SELECT 1, 2": s.CreateTempView(
        ("v",), "SELECT 1, 2", ("a", "b"), comments={"a": "x"}
    ),
    "CREATE OR REPLACE VIEW n.v (a) COMMENT 'y' TBLPROPERTIES (k = 'w') AS SELECT 1": s.CreateView(
        ("n", "v"), "SELECT 1", ("a",), replace=True, comment="y", properties={"k": "w"}
    ),
    "CREATE VIEW IF NOT EXISTS v AS SELECT 1;": s.CreateView(
        ("v",), "SELECT 1", if_not_exists=True
    ),
    "ALTER VIEW v AS SELECT 2": s.AlterView(("v",), "SELECT 2"),
    "ALTER VIEW v RENAME TO w": s.RenameView(("v",), ("w",)),
    "DROP VIEW IF EXISTS ns.v": s.DropView(("ns", "v"), if_exists=True),
    "SHOW VIEWS IN ns LIKE 'a*'": s.ShowViews(("ns",), "a*"),
    "SHOW CURRENT NAMESPACE": s.ShowCurrentNamespace(),
    "CACHE LAZY TABLE t OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT 1": s.CacheTable(
        ("t",), lazy=True, storage_level="DISK_ONLY", query="SELECT 1"
    ),
    "CACHE TABLE ns.t": s.CacheTable(("ns", "t")),
    "UNCACHE TABLE IF EXISTS ns.t": s.UncacheTable(("ns", "t"), if_exists=True),
    "CLEAR CACHE": s.ClearCache(),
    "ANALYZE TABLE ns.t COMPUTE STATISTICS": s.AnalyzeTable(("ns", "t")),
    "ANALYZE TABLE t COMPUTE STATISTICS NOSCAN": s.AnalyzeTable(("t",), counts_only=True),
    "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b": s.AnalyzeTable(("t",), (("a",), ("b",))),
    "COMMENT ON TABLE ns.t IS 'x'": s.CommentOn(("ns", "t"), "x"),
    "COMMENT ON SCHEMA ns IS NULL": s.CommentOn(("ns",), None, of_namespace=True),
    "REFRESH ns.t": s.RefreshTable(("ns", "t")),
    "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1": s.CreateTempView(
        ("v",), "SELECT 1", is_global=True
    ),
    "CREATE TABLE a LIKE ns.b": s.CreateTableLike(("a",), ("ns", "b")),
}


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items(), ids=list(STATEMENTS))
def test_statement(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1)",
        "VALUES (1)",
        "FROM t SELECT a",
        "TABLE t",
        "-- c\n/* d */ SELECT 1",
    ],
)
def test_queries_are_left_to_spark(text):
    assert parse(text) == s.Query(text)


@pytest.mark.parametrize(
    "text",
    [
        "SET a = b",
        "CREATE FUNCTION f AS 'x'",
        "CREATE VIEW spark_catalog.default.v AS SELECT 1",
        "CREATE TEMPORARY VIEW v USING csv OPTIONS (path '/x')",
        "CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT 1",
        "REFRESH '/a/path'",
        "REFRESH FUNCTION f",
        "CREATE TABLE t (a int) USING csv",
        "CREATE TABLE spark_catalog.default.t (a int) USING parquet",
        "CREATE TABLE t LIKE u USING json",
        "EXPLAIN SELECT 1",
        "CREATE TABLE t (a int) STORED AS ORC",
    ],
)
def test_other_statements_are_left_to_spark(text):
    assert parse(text) == s.Passthrough(text)


@pytest.mark.parametrize("name", ["parquet", "ORC", "avro"])
def test_a_file_format_makes_a_lake_table_of_such_files(name):
    found = created(f"CREATE TABLE ns.t (a int) USING {name} TBLPROPERTIES ('k' = 'v')")
    assert found.properties == {"k": "v", "write.format.default": name.lower()}
    same = f"CREATE TABLE ns.t (a int) USING {name} TBLPROPERTIES ('write.format.default'='{name}')"
    assert created(same).properties == {"write.format.default": name}
    like = parse(f"CREATE TABLE ns.t LIKE ns.u USING {name}")
    assert like == s.CreateTableLike(("ns", "t"), ("ns", "u"), file_format=name.lower())


def test_two_file_formats_contradict_each_other():
    with pytest.raises(InvalidStatementError, match="USING orc contradicts"):
        parse("CREATE TABLE t (a int) USING orc TBLPROPERTIES ('write.format.default' = 'avro')")


def test_create_table_with_everything():
    found = created(
        """CREATE OR REPLACE TABLE ns.t (
             id bigint NOT NULL COMMENT 'key', name string DEFAULT 'x, y',
             s struct<a: int NOT NULL COMMENT 'in', `b c`: array<map<string, bigint>>>
           ) USING iceberg
           PARTITIONED BY (id, bucket(16, name), truncate(s.a, 10), years(t1), month(t2),
                           date(t3), date_hour(t4), identity(x))
           TBLPROPERTIES ('format-version' = '3', write.format.default = 'orc')
           COMMENT 'sales' LOCATION 's3://b/t' AS SELECT * FROM u"""
    )
    assert found.mode == "create or replace"
    assert found.columns == (
        Field("id", LONG, True, "key"),
        Field("name", TEXT, default="'x, y'"),
        Field(
            "s",
            Struct((Field("a", INT, True, "in"), Field("b c", List(Map(TEXT, LONG))))),
        ),
    )
    assert found.partition_by == (
        Part("identity", ("id",)),
        Part("bucket[16]", ("name",)),
        Part("truncate[10]", ("s", "a")),
        Part("year", ("t1",)),
        Part("month", ("t2",)),
        Part("day", ("t3",)),
        Part("hour", ("t4",)),
        Part("identity", ("x",)),
    )
    assert found.properties == {"format-version": "3", "write.format.default": "orc"}
    assert (found.comment, found.location) == ("sales", "s3://b/t")
    assert found.query == "SELECT * FROM u"


def test_create_table_forms():
    assert created("CREATE TABLE IF NOT EXISTS t (a int)").if_not_exists
    assert created("REPLACE TABLE t AS SELECT 1 AS a").mode == "replace"
    plain = created("CREATE TABLE t AS (SELECT 1 AS a)")
    assert plain.columns is None
    assert plain.query == "(SELECT 1 AS a)"
    assert created("CREATE TABLE t USING rowlake SELECT 1").query == "SELECT 1"
    hive = created("CREATE TABLE t (a int) PARTITIONED BY (b string, c date)")
    assert [column.name for column in hive.columns or ()] == ["a", "b", "c"]
    assert hive.partition_by == (Part("identity", ("b",)), Part("identity", ("c",)))
    buckets = created("CREATE TABLE t (a int) CLUSTERED BY (a) INTO 8 BUCKETS")
    assert buckets.partition_by == (Part("bucket[8]", ("a",)),)


@pytest.mark.parametrize(
    "name, parts",
    [
        ("`a.b`", ("a.b",)),
        ("ns.`t``x`", ("ns", "t`x")),
        ("`größe`.Ünï", ("größe", "Ünï")),
        ("select.`from`", ("select", "from")),
        ("`with space`.T", ("with space", "T")),
        ("日本.表", ("日本", "表")),
        ("a.b.c.d", ("a", "b", "c", "d")),
    ],
)
def test_odd_names(name, parts):
    assert parse(f"DROP TABLE {name}") == s.DropTable(parts)


ERRORS = {
    "": "",
    "CREATE TABLE t (a int": "",
    "CREATE TABLE t (a blob)": "blob)",
    "CREATE TABLE t (a int, A string)": "A string",
    "CREATE TABLE t (a decimal(50, 2))": "(50",
    "CREATE TABLE t (a int) PARTITIONED BY (nope(a))": "nope(a",
    "CREATE TABLE t (a int) PARTITIONED BY (bucket(0, a))": "0, a",
    "CREATE TABLE t (a int) NONSENSE": "NONSENSE",
    "ALTER TABLE t": "",
    "ALTER TABLE t FROBNICATE": "FROBNICATE",
    "ALTER TABLE t ADD COLUMN": "",
    "ALTER TABLE t CREATE BRANCH b RETAIN 3 WEEKS": "WEEKS",
    "ALTER TABLE t WRITE": "",
    "ALTER TABLE t WRITE UNORDERED ORDERED BY a": "ORDERED BY a",
    "DROP TABLE t EXTRA": "EXTRA",
    "INSERT INTO t": "",
    "INSERT t VALUES (1)": "t VALUES",
    "CALL other.proc()": "other.proc",
    "CALL system.p(a => 1, 2)": "2)",
    "CALL system.p(a => 1, a => 2)": "a => 2",
    "SELECT 'open": "'open",
    "DROP TABLE t /* open": "/* open",
    "DESCRIBE HISTORY": "",
    "USE": "",
}


@pytest.mark.parametrize(("text", "place"), ERRORS.items(), ids=list(ERRORS))
def test_mistakes_name_their_place(text, place):
    with pytest.raises(InvalidStatementError) as caught:
        parse(text)
        Lexer(text).all()
    expected = text.index(place) if place else len(text)
    assert caught.value.position == expected
    assert caught.value.statement == text


def test_an_error_shows_the_line_and_the_column():
    with pytest.raises(InvalidStatementError, match=r"line 2, column 4\)\n  \(a blob\)\n     \^"):
        parse("CREATE TABLE t\n(a blob)")


def test_long_inserts_are_not_read():
    rows = ",".join(f"({i}, 'name {i}', {i}.5)" for i in range(50_000))
    started = time.perf_counter()
    found = parse(f"INSERT INTO ns.t VALUES {rows}")
    assert time.perf_counter() - started < 0.1
    assert isinstance(found, s.Insert)
    assert len(found.query) > 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE FROM ns.t", Delete(("ns", "t"))),
        ("DELETE FROM ns.t;", Delete(("ns", "t"))),
        ("DELETE FROM ns.t WHERE a = 1", Delete(("ns", "t"), None, "a = 1")),
        ("delete from ns.t AS x where x.a = 1;", Delete(("ns", "t"), "x", "x.a = 1")),
        ("DELETE FROM ns.`a b` x WHERE x.a", Delete(("ns", "a b"), "x", "x.a")),
    ],
)
def test_delete(text, expected):
    assert parse(text) == expected
