"""Make the golden tables: written by Delta on Spark, with the rows that it reads of them.

Run it as `python -m tests.golden.delta.make_delta [table …]`. Each folder has a table of a kind
that other writers cannot write; `expected.json` has its rows by version.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.parts.delta_spark import delta_session
from tests.plain_values import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
PREFIX = "spark.databricks.delta"

VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"


def vectors(run: Callable[[str], Any]) -> None:
    """Deletion vectors in files, beside column mapping by name and partitions."""
    run(
        f"CREATE TABLE t (id BIGINT, v STRING, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({VECTORS}, {MAPPED})"
    )
    run(
        "INSERT INTO t SELECT /*+ COALESCE(1) */ id, concat('v', id), "
        "IF(id % 2 = 0, 'a/b', 'c d%') FROM range(40)"
    )
    run("DELETE FROM t WHERE id IN (3, 4)")
    run("DELETE FROM t WHERE id % 10 = 5")
    run("UPDATE t SET v = 'new' WHERE id = 8")
    run("ALTER TABLE t RENAME COLUMN v TO w")
    run("INSERT INTO t VALUES (100, 'x', NULL)")


def mapped_by_id(run: Callable[[str], Any]) -> None:
    """Column mapping by id, with nested columns renamed, dropped and added."""
    run(
        "CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT, y: INT>>, "
        "m MAP<STRING, STRUCT<z: INT>>) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"
    )
    run(
        "INSERT INTO t VALUES (1, named_struct('a', 1, 'b', 'one'), "
        "array(named_struct('x', 1, 'y', 2)), map('k', named_struct('z', 3)))"
    )
    run("ALTER TABLE t RENAME COLUMN s.a TO c")
    run("ALTER TABLE t DROP COLUMN l.element.x")
    run("ALTER TABLE t ADD COLUMN (s.d DOUBLE)")
    run(
        "INSERT INTO t VALUES (2, named_struct('c', 5, 'b', 'two', 'd', 0.5D), "
        "array(named_struct('y', 4)), map('q', named_struct('z', NULL)))"
    )


def widened(run: Callable[[str], Any]) -> None:
    """Types made wider after files were written."""
    run(
        "CREATE TABLE t (b BYTE, s SHORT, i INT, f FLOAT, d DECIMAL(5, 2), n INT, x INT, day DATE) "
        "USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
        "'delta.feature.timestampNtz' = 'supported')"
    )
    run(
        "INSERT INTO t VALUES (1, 2, 3, 1.5, 1.25, 7, 8, DATE'2024-02-29'), "
        "(NULL, -2, -3, -1.5, -1.25, NULL, -8, NULL)"
    )
    for column, kind in {
        "b": "INT",
        "s": "BIGINT",
        "i": "BIGINT",
        "f": "DOUBLE",
        "d": "DECIMAL(12, 4)",
        "n": "DECIMAL(14, 2)",
        "x": "DOUBLE",
        "day": "TIMESTAMP_NTZ",
    }.items():
        run(f"ALTER TABLE t ALTER COLUMN {column} TYPE {kind}")
    run(
        "INSERT INTO t VALUES (1000, 3000000000, 3000000000, 1e200, 12345.6789, 123.45, 0.5, "
        "TIMESTAMP_NTZ'2024-03-01 12:30:00')"
    )


def types(run: Callable[[str], Any]) -> None:
    """All simple types, void, char and varchar, generated and default columns, no time zone."""
    run(
        "CREATE TABLE t (bo BOOLEAN, by BYTE, sh SHORT, i INT, l BIGINT, f FLOAT, d DOUBLE, "
        "de DECIMAL(38, 10), s STRING, bi BINARY, da DATE, ts TIMESTAMP, nt TIMESTAMP_NTZ, "
        "c CHAR(4), vc VARCHAR(9), g INT GENERATED ALWAYS AS (i + 1), "
        "k BIGINT GENERATED ALWAYS AS IDENTITY, df INT DEFAULT 7, nn INT NOT NULL, vo VOID) "
        "USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    run(
        "INSERT INTO t (bo, by, sh, i, l, f, d, de, s, bi, da, ts, nt, c, vc, nn) VALUES "
        "(true, 1, 2, 3, 4, 1.5, 2.5, 12345678901234567890.0123456789, 'é', X'00ff', "
        "DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999Z', "
        "TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', 'abcd', 'vc', 1), "
        "(NULL, NULL, NULL, NULL, NULL, float('NaN'), double('-Infinity'), NULL, '', NULL, "
        "DATE'0001-01-01', TIMESTAMP'1700-01-01 00:00:00Z', NULL, NULL, NULL, 2)"
    )


def variants(run: Callable[[str], Any]) -> None:
    """A variant column beside others."""
    run("CREATE TABLE t (id INT, v VARIANT) USING delta")
    run("""INSERT INTO t SELECT 1, parse_json('{"a": [1, "x"]}')""")


def sidecars_json(run: Callable[[str], Any]) -> None:
    """A v2 checkpoint whose top file is JSON, with sidecars, and vectors."""
    _sidecars(run, "json")


def sidecars_parquet(run: Callable[[str], Any]) -> None:
    """A v2 checkpoint whose top file is Parquet, with sidecars, and vectors."""
    _sidecars(run, "parquet")


def _sidecars(run: Callable[[str], Any], kind: str) -> None:
    run(f"SET {PREFIX}.checkpointV2.topLevelFileFormat = {kind}")
    run(
        f"CREATE TABLE t (id BIGINT, day DATE) USING delta PARTITIONED BY (day) TBLPROPERTIES "
        f"('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3', {VECTORS})"
    )
    for number in range(4):
        run(
            f"INSERT INTO t SELECT id, DATE'2024-01-01' + int({number}) "
            f"FROM range({number}, {number} + 10, 1, 1)"
        )
        run(f"DELETE FROM t WHERE id = {number} + 1")


def several_parts(run: Callable[[str], Any]) -> None:
    """A checkpoint of several parts, statistics as columns alone."""
    run(f"SET {PREFIX}.checkpoint.partSize = 3")
    run(
        "CREATE TABLE t (id BIGINT, name STRING, at TIMESTAMP, d DOUBLE) USING delta TBLPROPERTIES "
        "('delta.checkpointInterval' = '4', 'delta.checkpoint.writeStatsAsJson' = 'false', "
        "'delta.checkpoint.writeStatsAsStruct' = 'true')"
    )
    for number in range(5):
        run(
            f"INSERT INTO t SELECT id + {number} * 100, concat('n', id), "
            f"timestamp_micros(1700000000000000 + id * 1001 + {number}L * 1000000000L), id / 2 "
            f"FROM range(0, 10, 1, 2)"
        )
    run(f"SET {PREFIX}.checkpoint.partSize = 1000000")


def in_commit_times(run: Callable[[str], Any]) -> None:
    """In-commit timestamps, turned on after the first commits; change data beside."""
    run(
        "CREATE TABLE t (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    run("INSERT INTO t VALUES (1), (2), (3)")
    run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    run("DELETE FROM t WHERE id = 2")
    run("INSERT INTO t VALUES (4)")


def clustered(run: Callable[[str], Any]) -> None:
    """Liquid clustering with row tracking, optimized."""
    run(
        "CREATE TABLE t (a INT, b STRING) USING delta CLUSTER BY (a) "
        f"TBLPROPERTIES ('delta.enableRowTracking' = 'true', {VECTORS})"
    )
    run("INSERT INTO t SELECT int(id), string(id % 3) FROM range(0, 50, 1, 2)")
    run("DELETE FROM t WHERE a = 7")
    run("OPTIMIZE t")
    run("UPDATE t SET b = 'u' WHERE a = 9")


def legacy_lists(run: Callable[[str], Any]) -> None:
    """Lists and maps in the layout that Spark 1.x wrote, decimals as bytes."""
    run("SET spark.sql.parquet.writeLegacyFormat = true")
    run(
        "CREATE TABLE t (l ARRAY<INT>, ll ARRAY<ARRAY<STRING>>, m MAP<STRING, ARRAY<INT>>, "
        "d DECIMAL(9, 2)) USING delta"
    )
    run(
        "INSERT INTO t VALUES (array(1, NULL), array(array('a'), NULL), map('k', array(5)), 1.5), "
        "(NULL, NULL, NULL, NULL)"
    )
    run("SET spark.sql.parquet.writeLegacyFormat = false")


TABLES = [
    vectors,
    mapped_by_id,
    widened,
    types,
    variants,
    sidecars_json,
    sidecars_parquet,
    several_parts,
    in_commit_times,
    clustered,
    legacy_lists,
]


def main() -> None:
    """Write all tables, or those named on the command line."""
    spark = delta_session()
    wanted = set(sys.argv[1:])
    for make in TABLES:
        if wanted and make.__name__ not in wanted:
            continue
        folder = HERE / make.__name__
        shutil.rmtree(folder, ignore_errors=True)
        make(_runner(spark, folder))
        (folder / "expected.json").write_text(json.dumps(_expected(spark, folder), indent=0))
        for checksum in [*folder.rglob(".*.crc")]:
            checksum.unlink()
    spark.stop()


def _runner(spark: Any, folder: Path) -> Callable[[str], Any]:
    """Return what runs statements on the table `t`, which is the one in the folder."""
    name = f"delta.`{folder}`"

    def run(text: str) -> Any:
        words = text.split(" ")
        return spark.sql(" ".join(name if word == "t" else word for word in words)).collect()

    return run


def _expected(spark: Any, folder: Path) -> dict[str, Any]:
    newest = max(
        int(one.stem) for one in (folder / "_delta_log").glob("*.json") if one.stem.isdigit()
    )
    found = {}
    for version in range(newest + 1):
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(folder))
        columns = [one for one in frame.columns if dict(frame.dtypes)[one] != "variant"]
        rows = [one.asDict(recursive=True) for one in frame.select(columns).collect()]
        found[str(version)] = in_order(rows)
    return found


if __name__ == "__main__":
    main()
