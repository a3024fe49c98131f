"""Delete files rewritten beside Iceberg Java on the same table state, and read by it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.commit.phases import Phase
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.verbs.write import WriteOptions
from tests.parts.java_tables import commit_equality_deletes, load
from tests.parts.rows import rows_of
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.string())])
OUTPUT = [
    "rewritten_delete_files_count",
    "added_delete_files_count",
    "rewritten_bytes_count",
    "added_bytes_count",
]


def make(java, name: str, version: int = 2, inserts: int = 3) -> None:
    """A table of two partitions, 50 rows of each with every insert, deletes by partition."""
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.delete.granularity'='partition')"
    )
    for number in range(inserts):
        insert(java, name, 100 * number)


def insert(java, name: str, first: int, count: int = 100) -> None:
    java(
        f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), "
        f"CAST(id AS string) FROM range({first}, {first + count})"
    )


def delete_often(lake, java, name: str, times: int = 5) -> None:
    """Delete two rows more of every insert, so many times: by Java first, then by us."""
    for number in range(times):
        text = f"id % 100 IN ({number}, {number + 51})"
        if number < 2:
            java(f"DELETE FROM java.{name} WHERE {text}")
        else:
            lake.table(name).delete(text)
    java(f"REFRESH TABLE java.{name}")


def said_by(java, name: str) -> list[tuple]:
    """Return the deleted positions, and the sequence numbers of live delete files, as Java sees.

    A position that several delete files had is in Java's new file as often.
    """
    java(f"REFRESH TABLE java.{name}")
    positions = rows_of(
        java(f"SELECT DISTINCT file_path, pos, spec_id FROM java.{name}.position_deletes")
    )
    files = rows_of(
        java(
            "SELECT data_file.file_format, data_file.spec_id, sequence_number "
            f"FROM java.{name}.entries WHERE data_file.content = 1 AND status < 2"
        )
    )
    return [*positions, *files]


def check_same_rows(lake, java, name: str, expected: list[tuple] | None = None) -> list[tuple]:
    java(f"REFRESH TABLE java.{name}")
    theirs = rows_of(java(f"SELECT * FROM java.{name}"))
    assert rows_of(lake.table(name).arrow()) == theirs
    assert expected is None or theirs == expected
    return theirs


def call(run, catalog: str, name: str, options: str = "") -> dict[str, Any]:
    more = f", options => map({options})" if options else ""
    found = run(f"CALL {catalog}system.rewrite_position_delete_files(table => '{name}'{more})")
    assert found.columns == OUTPUT
    assert [kind for _, kind in found.dtypes] == ["int", "int", "bigint", "bigint"]
    return found.first().asDict()


def both(lake, java, name: str, options: str = "") -> tuple[dict, dict, list, list]:
    """Run Java's procedure, go back, run ours: what each answers, and what each leaves."""
    before = check_same_rows(lake, java, name)
    start = lake.table(name).snapshots()[-1].snapshot_id
    theirs = call(java, "java.", name, options)
    left = said_by(java, name)
    check_same_rows(lake, java, name, before)
    lake.table(name).rollback_to(snapshot_id=start)
    java(f"REFRESH TABLE java.{name}")
    ours = call(lake.sql, "", name, options)
    check_same_rows(lake, java, name, before)
    return theirs, ours, left, said_by(java, name)


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_deletes_are_rewritten_as_java_does(lake, java, name, granularity):
    make(java, name)
    delete_often(lake, java, name, 4)
    assert call(lake.sql, "", name) == dict.fromkeys(OUTPUT, 0), "four files are too few"
    assert call(java, "java.", name) == dict.fromkeys(OUTPUT, 0)
    lake.table(name).delete("id IN (48, 49, 148, 149)")
    lake.table(name).delete("id >= 200")
    lake.table(name).set_properties({"write.delete.granularity": granularity})
    theirs, ours, left, made = both(lake, java, name)
    assert theirs.pop("added_bytes_count") > 0
    assert ours.pop("added_bytes_count") > 0
    assert ours == theirs
    assert ours["rewritten_delete_files_count"] == 10
    assert ours["added_delete_files_count"] == (4 if granularity == "file" else 2)
    assert made == left
    assert call(lake.sql, "", name) == dict.fromkeys(OUTPUT, 0)
    java(f"DELETE FROM java.{name} WHERE id IN (20, 21, 120)")
    lake.table(name).delete("id IN (22, 121)")
    assert len(check_same_rows(lake, java, name)) == 200 - 2 * (8 + 2) - 5


def test_position_deletes_become_vectors_as_java_makes_them(lake, java, name):
    make(java, name)
    delete_often(lake, java, name)
    java(f"ALTER TABLE java.{name} ADD PARTITION FIELD truncate(1, v)")
    insert(java, name, 300, 10)
    java(f"DELETE FROM java.{name} WHERE id = 301 OR id = 150")
    java(f"DELETE FROM java.{name} WHERE id < 100")
    java(f"ALTER TABLE java.{name} SET TBLPROPERTIES ('format-version'='3')")
    theirs, ours, left, made = both(lake, java, name, "'rewrite-all', 'true'")
    assert ours.pop("added_bytes_count") == pytest.approx(theirs.pop("added_bytes_count"), rel=0.5)
    assert ours == theirs
    assert ours["added_delete_files_count"] == 5
    positions = [row for row in made if row[0] != "PUFFIN"]
    assert positions == [row for row in left if row[0] != "PUFFIN"]
    assert len(made) - len(positions) == 5
    assert call(java, "java.", name, "'rewrite-all', 'true'") == dict.fromkeys(OUTPUT, 0)
    java(f"DELETE FROM java.{name} WHERE id IN (160, 302)")
    lake.table(name).delete("id IN (161, 303)")
    check_same_rows(lake, java, name)


def upsert(lake, name: str, first: int, count: int) -> None:
    table = lake.table(name)
    ids = list(range(first, first + count))
    rows = pa.table([ids, [i % 2 for i in ids], [f"new {i}" for i in ids]], schema=COLUMNS)
    blind_upsert(table.handle, lake.engine, rows, ["id"], WriteOptions())


def convert(lake, java, name: str, **where: str) -> dict[str, Any]:
    before = check_same_rows(lake, java, name)
    more = "".join(f', {key} => "{value}"' for key, value in where.items())
    found = lake.sql(f"CALL system.convert_equality_deletes(table => '{name}'{more})")
    check_same_rows(lake, java, name, before)
    return found.first().asDict()


def kinds(java, name: str) -> set[tuple[int, str]]:
    query = f"SELECT DISTINCT content, file_format FROM java.{name}.delete_files"
    return {tuple(row) for row in java(query).collect()}


def test_equality_deletes_become_positions_that_java_reads(lake, java, spark, name, version):
    make(java, name, version, 2)
    java(f"INSERT INTO java.{name} VALUES (900, NULL, NULL), (901, NULL, 'x'), (NULL, 1, 'y')")
    java(f"DELETE FROM java.{name} WHERE id IN (1, 2, 150)")
    upsert(lake, name, 90, 20)
    java_table = load(spark, lake.table(name).location)
    v = pa.table({"v": pa.array(["5", "7", None])})
    commit_equality_deletes(spark, java_table, v, [3], partition="p=1")
    nulls = pa.table({"id": pa.array([None, 6], pa.int64()), "v": pa.array(["y", "6"])})
    commit_equality_deletes(spark, java_table, nulls, [1, 3], partition="p=1")
    lake.table(name).delete("v IS NULL OR id = 8", deletes="equality")
    java(f"INSERT INTO java.{name} VALUES (8, 0, 'again'), (5, 1, '5')")
    some = convert(lake, java, name, where="p = 1")
    # 10 upserted of each partition, 5 and 7, the one without an id, 6 in no file of p=1.
    assert some["rows_deleted"] == 10 + 2 + 1
    assert some["removed_equality_delete_files_count"] == 2
    rest = convert(lake, java, name)
    assert rest["rows_deleted"] == 10 + 2
    assert kinds(java, name) == {(1, "PUFFIN" if version == 3 else "PARQUET")}
    assert rows_of(lake.table(name).evolve().scan().to_arrow()) == check_same_rows(lake, java, name)
    assert convert(lake, java, name)["data_files_read"] == 0
    java(f"DELETE FROM java.{name} WHERE id IN (10, 95, 900)")
    java(
        f"CALL java.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    check_same_rows(lake, java, name)


@contextmanager
def in_tasks(monkeypatch) -> Iterator[None]:
    """Leave no work to the driver's threads: kernels and their tasks go to Spark's workers."""
    with monkeypatch.context() as patch:
        patch.setattr("rowlake.engine.spark.is_tiny", lambda *_, **__: False)
        yield


def test_java_deletes_between_planning_and_commit(lake, java, name, version, monkeypatch):
    make(java, name, 2, 2)
    delete_often(lake, java, name)
    java(f"ALTER TABLE java.{name} SET TBLPROPERTIES ('format-version'='{version}')")
    table = lake.table(name)
    expected = {row[0] for row in check_same_rows(lake, java, name)} - {30, 31, 130}
    delete = f"DELETE FROM java.{name} WHERE id IN (30, 31, 130)"
    with stopped_at(Phase.WRITTEN, lambda: java(delete)), in_tasks(monkeypatch):
        assert table.rewrite_position_delete_files().rewritten_delete_files_count == 10
    assert {row[0] for row in check_same_rows(lake, java, name)} == expected
    upsert(lake, name, 40, 10)
    expected |= set(range(40, 50))
    delete = f"DELETE FROM java.{name} WHERE id IN (32, 45)"
    with stopped_at(Phase.WRITTEN, lambda: java(delete)), in_tasks(monkeypatch):
        assert table.convert_equality_deletes().rows_deleted > 0
    left = check_same_rows(lake, java, name)
    assert {row[0] for row in left} == expected - {32, 45}
    assert len(left) == len(expected - {32, 45})
    assert (2, "PARQUET") not in kinds(java, name)
