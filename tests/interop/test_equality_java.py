"""Blind upserts and deletes by us, read and gone on with by Iceberg Java."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.verbs.write import WriteOptions
from tests.parts.rows import rows_of

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.string())])
SPECS = {
    "whole": "",
    "by key": "PARTITIONED BY (bucket(4, id))",
    "by other": "PARTITIONED BY (p)",
    "by both": "PARTITIONED BY (p, bucket(2, id))",
}


def make(java, name: str, version: int, partitioned: str, count: int = 200) -> None:
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string) USING iceberg {partitioned} "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.merge.mode'='merge-on-read')"
    )
    if count:
        java(
            f"INSERT INTO java.{name} SELECT id, CAST(id % 2 AS int), CAST(id AS string) "
            f"FROM range(0, {count})"
        )


def source(first: int, count: int, text: str) -> pa.Table:
    ids = list(range(first, first + count))
    # Every third row moves to the other partition.
    places = [(number + (number % 3 == 0)) % 2 for number in ids]
    return pa.table([ids, places, [f"{text} {number}" for number in ids]], schema=COLUMNS)


def upsert(lake, name: str, rows, keys=("id",), **more):
    table = lake.table(name)
    _, result = blind_upsert(table.handle, lake.engine, rows, keys, WriteOptions(), **more)
    return result


def check(lake, java, name: str, expected: dict[int, str] | None = None) -> list[tuple]:
    java(f"REFRESH TABLE java.{name}")
    theirs = rows_of(java(f"SELECT * FROM java.{name}"))
    assert rows_of(lake.table(name).arrow()) == theirs
    if expected is not None:
        assert {row[0]: row[2] for row in theirs} == expected
        assert len(theirs) == len(expected)
    return theirs


@pytest.mark.parametrize("kind", SPECS)
def test_java_reads_blind_upserts_and_goes_on(lake, java, name, version, kind):
    make(java, name, version, SPECS[kind])
    expected = {number: str(number) for number in range(200)}
    for first, text in ((150, "a"), (0, "b"), (195, "c")):
        upsert(lake, name, source(first, 60, text))
        expected |= {number: f"{text} {number}" for number in range(first, first + 60)}
    check(lake, java, name, expected)

    java(f"INSERT INTO java.{name} VALUES (1000, 0, 'java')")
    java(f"DELETE FROM java.{name} WHERE id IN (3, 160, 200)")
    java(
        f"MERGE INTO java.{name} t USING (SELECT 5L AS id, 'merged' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    expected |= {1000: "java", 5: "merged"}
    expected = {key: v for key, v in expected.items() if key not in (3, 160, 200)}
    check(lake, java, name, expected)

    upsert(lake, name, source(1, 10, "again"))
    expected |= {number: f"again {number}" for number in range(1, 11)}
    check(lake, java, name, expected)
    java(
        f"CALL java.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    check(lake, java, name, expected)
    java(f"CALL java.system.rewrite_manifests('{name}')")
    check(lake, java, name, expected)


def test_specs_that_java_evolved_are_all_reached(lake, java, name, version):
    make(java, name, version, "PARTITIONED BY (bucket(4, id))", 50)
    java(f"ALTER TABLE java.{name} REPLACE PARTITION FIELD id_bucket WITH bucket(3, id)")
    java(f"INSERT INTO java.{name} SELECT id, 0, 'later' FROM range(50, 100)")
    assert len(upsert(lake, name, source(40, 20, "new")).phases) == 2
    expected = {number: str(number) if number < 50 else "later" for number in range(100)}
    expected |= {number: f"new {number}" for number in range(40, 60)}
    check(lake, java, name, expected)
    java(f"ALTER TABLE java.{name} ADD PARTITION FIELD p")
    java(f"INSERT INTO java.{name} SELECT id, 1, 'last' FROM range(100, 110)")
    upsert(lake, name, source(95, 10, "newer"))
    expected |= dict.fromkeys(range(100, 110), "last")
    expected |= {number: f"newer {number}" for number in range(95, 105)}
    check(lake, java, name, expected)
    java(f"ALTER TABLE java.{name} DROP PARTITION FIELD p")
    java(f"INSERT INTO java.{name} VALUES (500, 0, 'on')")
    check(lake, java, name, expected | {500: "on"})


def test_java_reads_blind_deletes_of_nulls_and_several_key_sets(lake, java, name, version):
    make(java, name, version, "PARTITIONED BY (p)", 20)
    java(f"INSERT INTO java.{name} VALUES (100, NULL, NULL), (101, 1, NULL), (NULL, 0, 'x')")
    table = lake.table(name)
    table.delete("id = 3 OR v IN ('5', '6') OR (p = 1 AND v IS NULL)", deletes="equality")
    left = check(lake, java, name)
    gone = {3, 5, 6, 101}
    assert {row[0] for row in left} == ({*range(20), 100, None} - gone)
    table.delete("id IS NULL", deletes="equality")
    table.delete("p IS NULL", deletes="equality")
    left = check(lake, java, name)
    assert {row[0] for row in left} == set(range(20)) - gone


def test_keys_of_many_types(lake, java, name, version):
    kinds = "s string, d decimal(20, 3), day date, at timestamp, b binary, ok boolean, n int"
    java(
        f"CREATE TABLE java.{name} ({kinds}) USING iceberg PARTITIONED BY (truncate(2, s), "
        f"days(at)) TBLPROPERTIES ('format-version'='{version}')"
    )
    java(
        f"INSERT INTO java.{name} SELECT concat('key', id), CAST(id AS decimal(20, 3)) / 8, "
        "date_add(DATE'1969-12-30', CAST(id AS int)), timestamp_seconds(id * 50000 - 100000), "
        "CAST(concat('b', id) AS binary), id % 2 = 0, CAST(id AS int) FROM range(0, 12)"
    )
    table = lake.table(name)
    rows = table.arrow()
    keys = ["s", "d", "day", "at", "b", "ok"]
    some = rows.slice(2, 5)
    place = some.schema.get_field_index("n")
    changed = some.set_column(place, some.schema.field(place), pa.array([77] * 5, pa.int32()))
    upsert(lake, name, changed, keys)
    assert sorted(row[6] for row in check(lake, java, name)).count(77) == 5
    for key in ("d", "day", "b"):
        upsert(lake, name, rows.slice(0, 3), [key])
        assert len(check(lake, java, name)) == 12
    assert rows_of(java(f"SELECT count(*) FROM java.{name}")) == [(12,)]


def test_pyiceberg_refuses_rather_than_misreads(lake, java, name, version):
    make(java, name, version, "", 10)
    upsert(lake, name, source(5, 10, "new"))
    with pytest.raises(ValueError, match="equality deletes"):
        lake.table(name).evolve().scan().to_arrow()
    check(lake, java, name)
