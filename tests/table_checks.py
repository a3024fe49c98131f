"""What tables promise on any catalog, storage and kind of session: checks that take a lake.

Each takes a lake and a format version, works in the namespace `checks` on a table of its own, and
asserts. `tests/interop/test_lake_on_servers.py` runs them on servers, `other_session_suite.py` in
sessions of other kinds and versions.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowlake.errors import (
    CardinalityError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
    TableNotFoundError,
)
from rowlake.iceberg import manifest_read as manifests
from rowlake.iceberg.cache import default_cache
from rowlake.model.predicate import Leaf, Op
from rowlake.plan.tasks import scan_tasks
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.scan.kernel import output_schema, scan_kernel
from rowlake.storage.files import Storage
from rowlake.verbs.read import Request, planned
from rowlake.verbs.write import WriteOptions

ROWS = 2000
DAYS = 4


def fresh(lake: Any, name: str, columns: str, version: int, rest: str = "") -> Any:
    """Create an empty table and return it."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS checks")
    lake.sql(
        f"CREATE TABLE checks.{name} ({columns}) {rest} "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    return lake.table(f"checks.{name}")


def rows(lake: Any, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    return [tuple(row) for row in lake.sql(text, args).collect()]


def numbers(lake: Any, first: int = 0, count: int = ROWS) -> Any:
    """Return a frame of ids, days, amounts and notes, in four Spark partitions."""
    return lake.spark.range(first, first + count, 1, 4).selectExpr(
        "id",
        f"date_add(DATE'2024-01-01', CAST(id % {DAYS} AS int)) AS d",
        "CAST(id AS decimal(9, 2)) AS amount",
        "IF(id % 7 = 0, NULL, concat('note ', id)) AS note",
    )


def files_of(table: Any) -> set[str]:
    """Return every file below a table's location."""
    storage = Storage(table.handle.io_properties)
    return {found.location for found in storage.list(table.location)}


def check_frames_are_spread_and_written_by_tasks(lake: Any, version: int) -> None:
    columns = "id bigint NOT NULL, d date, amount decimal(9, 2), note string"
    table = fresh(lake, "spread", columns, version, "PARTITIONED BY (bucket(3, id), days(d))")
    result = table.append(numbers(lake))
    assert result.rows_inserted == ROWS
    files = table.files()
    # Rows of one partition meet in one task.
    assert files.num_rows == 3 * DAYS
    assert sum(files["record_count"].to_pylist()) == ROWS
    found = rows(lake, "SELECT count(*), sum(id), min(d), max(amount) FROM checks.spread")
    last = dt.date(2024, 1, 1)
    assert found == [(ROWS, sum(range(ROWS)), last, Decimal(ROWS - 1))]
    narrow = table.df(["id"], where=f"d = DATE'2024-01-02' AND id < {DAYS * 10}")
    assert sorted(row.id for row in narrow.collect()) == list(range(1, DAYS * 10, DAYS))
    assert table.df(ref="main").count() == ROWS


def check_the_driver_and_tasks_read_the_same(lake: Any, version: int) -> None:
    columns = "id bigint NOT NULL, d date, amount decimal(9, 2), note string"
    table = fresh(lake, "read", columns, version, "PARTITIONED BY (d)")
    table.append(numbers(lake))
    where = Leaf(("id",), Op.GE, (ROWS - 100,))
    here = table.arrow(["id", "note", "_file"], where=where)
    assert sorted(here["id"].to_pylist()) == list(range(ROWS - 100, ROWS))
    read = planned(table.handle, Request(["id", "note", "_file"], where, exact=True))
    tasks = scan_tasks(read.plan, read.context, slots=2)
    there = lake.engine.run(scan_kernel, tasks, output_schema(read.context))
    assert there.sort_by("id").equals(here.sort_by("id"))
    assert rows(lake, "SELECT count(DISTINCT _file) FROM checks.read") == [(DAYS,)]


def check_statements_write_and_history_is_kept(lake: Any, version: int) -> None:
    table = fresh(lake, "history", "id bigint NOT NULL, name string", version)
    lake.sql("INSERT INTO checks.history VALUES (1, 'a'), (2, 'b')")
    lake.sql("ALTER TABLE checks.history CREATE TAG two")
    lake.sql("INSERT INTO checks.history SELECT id + 2, upper(name) FROM checks.history")
    first, second = table.snapshots()
    count = "SELECT count(*) FROM checks.history"
    assert rows(lake, f"{count} VERSION AS OF {first.snapshot_id}") == [(2,)]
    assert rows(lake, f"{count} VERSION AS OF 'two'") == [(2,)]
    assert rows(lake, f"{count} TIMESTAMP AS OF current_timestamp()") == [(4,)]
    found = rows(lake, "SELECT snapshot_id, operation FROM checks.history.snapshots ORDER BY 1")
    assert sorted(found) == sorted([(s.snapshot_id, "append") for s in (first, second)])
    table.create_branch("dev")
    table.append([{"id": 9, "name": "z"}], branch="dev")
    assert rows(lake, f"{count}.branch_dev") == [(5,)]
    assert rows(lake, count) == [(4,)]
    table.fast_forward("main", "dev")
    assert table.arrow().num_rows == 5
    table.rollback_to(second.snapshot_id)
    assert table.arrow().num_rows == 4


def check_tables_are_made_from_queries(lake: Any, version: int) -> None:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS checks")
    numbers(lake, count=100).createOrReplaceTempView("hundred")
    properties = f"TBLPROPERTIES ('format-version' = '{version}')"
    text = f"TABLE checks.made PARTITIONED BY (days(d)) {properties} AS SELECT * FROM hundred"
    lake.sql(f"CREATE {text}")
    assert rows(lake, "SELECT count(*), count(note) FROM checks.made") == [(100, 85)]
    assert lake.table("checks.made").format_version == version
    lake.sql(f"CREATE OR REPLACE {text} WHERE id < 10")
    assert rows(lake, "SELECT count(*), count(note) FROM checks.made") == [(10, 8)]
    assert len(lake.table("checks.made").snapshots()) == 2


def check_queries_join_group_and_take_arguments(lake: Any, version: int) -> None:
    columns = "id bigint NOT NULL, d date, amount decimal(9, 2), note string"
    table = fresh(lake, "queried", columns, version, "PARTITIONED BY (d)")
    table.append(numbers(lake, count=400))
    lake.spark.range(5).selectExpr("id", "id * 10 AS tens").createOrReplaceTempView("five")
    joined = (
        "WITH few AS (SELECT id, note FROM checks.queried WHERE id < :most) "
        "SELECT few.note, five.tens FROM few JOIN five ON few.id = five.id ORDER BY five.tens"
    )
    assert rows(lake, joined, {"most": 3}) == [(None, 0), ("note 1", 10), ("note 2", 20)]
    twice = (
        "SELECT a.id FROM checks.queried a LEFT ANTI JOIN checks.queried b "
        "ON a.id = b.id AND b.id < 398 ORDER BY 1"
    )
    assert rows(lake, twice) == [(398,), (399,)]
    grouped = (
        "SELECT d, count(*), count(note), sum(amount), avg(id), max(note) FROM checks.queried "
        "WHERE id < ? GROUP BY d ORDER BY d"
    )
    found = rows(lake, grouped, [8])
    assert [row[1:5] for row in found] == [
        (2, 1, Decimal(0 + 4), 2.0),
        (2, 2, Decimal(1 + 5), 3.0),
        (2, 2, Decimal(2 + 6), 4.0),
        (2, 1, Decimal(3 + 7), 5.0),
    ]
    lake.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT id FROM checks.queried WHERE id < 3")
    assert rows(lake, "SELECT sum(id) FROM some") == [(3,)]


def check_metadata_tables_are_frames(lake: Any, version: int) -> None:
    fresh(lake, "looked", "id bigint, p string", version, "PARTITIONED BY (p)")
    lake.sql("INSERT INTO checks.looked VALUES (1, 'x'), (2, 'y'), (3, 'y')")
    text = "SELECT partition.p, record_count FROM checks.looked.{} ORDER BY 1"
    for name in ("files", "partitions"):
        assert rows(lake, text.format(name)) == [("x", 1), ("y", 2)]
    joined = (
        "SELECT s.operation, r.type FROM checks.looked.snapshots s "
        "JOIN checks.looked.refs r USING (snapshot_id)"
    )
    assert rows(lake, joined) == [("append", "BRANCH")]
    assert rows(lake, "SELECT added_data_files_count FROM checks.looked.manifests") == [(2,)]


def check_rows_are_overwritten(lake: Any, version: int) -> None:
    table = fresh(lake, "replaced", "id bigint, p string", version, "PARTITIONED BY (p)")
    lake.sql("INSERT INTO checks.replaced VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    table.overwrite([{"id": 10, "p": "x"}], where="p = 'x'")
    shown = "SELECT id FROM checks.replaced ORDER BY id"
    assert rows(lake, shown) == [(2,), (3,), (10,)]
    frame = lake.spark.sql("SELECT 20L AS id, 'y' AS p")
    table.overwrite(frame, dynamic=True)
    assert rows(lake, shown) == [(3,), (10,), (20,)]
    lake.sql("INSERT OVERWRITE checks.replaced SELECT id + 1, p FROM checks.replaced")
    assert rows(lake, shown) == [(4,), (11,), (21,)]
    table.truncate()
    assert rows(lake, shown) == []


def check_schemas_and_specs_change(lake: Any, version: int) -> None:
    table = fresh(lake, "evolved", "id int, name string, p string", version)
    lake.sql("INSERT INTO checks.evolved VALUES (1, 'a', 'x')")
    for change in (
        "ALTER COLUMN id TYPE bigint",
        "RENAME COLUMN name TO label",
        "ADD COLUMN extra struct<a: int, b: string>",
        "ADD PARTITION FIELD p",
    ):
        lake.sql(f"ALTER TABLE checks.evolved {change}")
    lake.sql(
        "INSERT INTO checks.evolved SELECT 5000000000, 'b', p, named_struct('a', 1, 'b', 'q') "
        "FROM (SELECT 'y' AS p)"
    )
    shown = "SELECT id, label, p, extra.b FROM checks.evolved ORDER BY id"
    assert rows(lake, shown) == [(1, "a", "x", None), (5_000_000_000, "b", "y", "q")]
    assert rows(lake, "SELECT label FROM checks.evolved WHERE p = 'y'") == [("b",)]
    with table.evolve().update_schema() as update:
        update.delete_column("label")
    assert lake.sql("SELECT * FROM checks.evolved").columns == ["id", "p", "extra"]


def check_a_failing_task_is_a_rowlake_error_and_leaves_nothing(lake: Any, version: int) -> None:
    table = fresh(lake, "refused", "id bigint NOT NULL, name string", version)
    table.append([{"id": 1, "name": "a"}])
    before = files_of(table)
    bad = lake.spark.range(0, 100, 1, 2).selectExpr("IF(id = 77, NULL, id) AS id", "'b' AS name")
    with pytest.raises(SchemaMismatchError, match="id"):
        table.append(bad)
    assert len(table.snapshots()) == 1
    assert {place for place in files_of(table) - before if "/data/" in place} == set()
    with pytest.raises(TableNotFoundError):
        lake.sql("SELECT * FROM checks.none")
    with pytest.raises(RowlakeError):
        lake.sql("INSERT INTO checks.refused VALUES (1)")


def check_row_ids_are_given_once(lake: Any, version: int) -> None:
    if version < 3:
        return
    table = fresh(lake, "lineage", "id bigint", version)
    for first in (0, 100, 200):
        table.append(lake.spark.range(first, first + 50, 1, 2).select("id"))
    found = rows(
        lake,
        "SELECT count(DISTINCT _row_id), min(_row_id), max(_row_id), "
        "max(_last_updated_sequence_number) FROM checks.lineage",
    )
    assert found == [(150, 0, 149, 3)]
    metadata = table.handle.metadata
    assert metadata.next_row_id == 150
    assert [(each.first_row_id, each.added_rows) for each in metadata.snapshots] == [
        (0, 50),
        (50, 50),
        (100, 50),
    ]


def check_many_manifests_are_read_by_tasks(lake: Any, version: int) -> None:
    table = fresh(lake, "manifold", "id bigint, p string", version, "PARTITIONED BY (p)")
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    for number in range(6):
        table.append([{"id": number, "p": "xyz"[number % 3]}, {"id": number + 100, "p": "w"}])
    labels = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifests, "MANY_MANIFESTS", 3)
        run = lake.engine.run

        def watched(*arguments: Any, label: str, **options: Any) -> pa.Table:
            labels.append(label)
            return run(*arguments, label=label, **options)

        patched.setattr(lake.engine, "run", watched)
        default_cache().clear()
        patched.setattr(default_cache(), "folder", None)
        found = table.df(["id"], where="p = 'w' AND id > 102")
    assert labels == ["reading manifests of checks.manifold"]
    assert sorted(row.id for row in found.collect()) == [103, 104, 105]


def check_spark_reads_the_format(lake: Any, version: int) -> None:
    table = fresh(lake, "source", "id bigint, name string", version)
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}))
    table.create_tag("three")
    table.append([{"id": 4, "name": "d"}])
    reader = lake.spark.read.format("rowlake")
    whole = reader.load("checks.source")
    found = whole.where("id > 1")
    assert sorted(map(tuple, found.collect()), key=repr) == [(2, None), (3, "c"), (4, "d")]
    assert whole.where("id = 4").count() == 1
    assert whole.count() == 4
    assert whole.where("id = 4").union(whole).count() == 5
    assert reader.option("tag", "three").load("checks.source").count() == 3


def check_rows_are_replaced_by_key_unread(lake: Any, version: int) -> None:
    columns = "id bigint NOT NULL, d date, amount decimal(9, 2), note string"
    for name, partitions in (("by_key", "bucket(3, id)"), ("by_day", "days(d)")):
        table = fresh(lake, f"blind_{name}", columns, version, f"PARTITIONED BY ({partitions})")
        table.append(numbers(lake, count=200))

        def upserted(rows: Any, target: Any = table) -> Any:
            return blind_upsert(target.handle, lake.engine, rows, ["id"], WriteOptions())[1]

        newer = numbers(lake, 150, 100).selectExpr("id", "d", "amount", "'new' AS note")
        assert upserted(newer).rows_inserted == 100
        table.delete("id IN (0, 151) OR note = 'note 5'", deletes="equality")
        with pytest.raises(CardinalityError):
            upserted(newer.union(newer.where("id = 160")))
        count = f"SELECT count(*), count(DISTINCT id), count_if(note = 'new') FROM {table.name}"
        assert rows(lake, count) == [(247, 247, 99)]


def check_purging_leaves_nothing(lake: Any, version: int) -> None:
    table = fresh(lake, "purged", "id bigint, p string", version, "PARTITIONED BY (p)")
    table.append(pa.table({"id": [1, 2], "p": ["x", "y"]}))
    table.overwrite(pa.table({"id": [3], "p": ["z"]}))
    location, storage = table.location, Storage(table.handle.io_properties)
    assert list(storage.list(location))
    lake.sql("DROP TABLE checks.purged PURGE")
    assert not lake.exists("checks.purged")
    assert list(storage.list(location)) == []


def check_views_and_cached_rows_show_the_table_as_it_is(lake: Any, version: int) -> None:
    """A temporary view is resolved at each use, until Spark has another of its name."""
    table = fresh(lake, "viewed", "id bigint", version)
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW seen_rows AS SELECT id FROM checks.viewed")
    lake.sql("CACHE LAZY TABLE seen_rows")
    assert rows(lake, "SELECT * FROM seen_rows") == []
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    assert rows(lake, "SELECT * FROM seen_rows") == [(1,)]
    lake.sql("UNCACHE TABLE seen_rows")
    lake.spark.range(7, 8).createOrReplaceTempView("seen_rows")
    assert rows(lake, "SELECT * FROM seen_rows") == [(7,)]
    lake.sql("DROP VIEW seen_rows")


def check_errors_of_queries_are_ours(lake: Any, version: int) -> None:
    """Spark's errors are told as ours when a statement is run and when its rows are asked for."""
    table = fresh(lake, "failing", "id bigint, v string", version)
    table.append(pa.table({"id": pa.array([1], pa.int64()), "v": ["one"]}))
    text = "SELECT CAST(v AS INT) AS n FROM checks.failing"
    for ask in ("collect", "first", "toPandas", "toArrow", "show"):
        found = lake.sql(text)
        assert found.columns == ["n"]
        with pytest.raises(InvalidStatementError, match=r"^\[CAST_INVALID_INPUT\]"):
            getattr(found, ask)()
    with pytest.raises(InvalidStatementError, match="nope") as raised:
        lake.sql("SELECT nope FROM checks.failing").collect()
    assert raised.value.position == len("SELECT ")
    with pytest.raises(InvalidStatementError, match=r"^\[CAST_INVALID_INPUT\]"):
        table.delete("CAST(v AS INT) = 1")


CHECKS = [found for name, found in sorted(globals().items()) if name.startswith("check_")]
