from __future__ import annotations

import datetime
import itertools
import uuid
from collections import defaultdict
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import rowlake
from rowlake.engine.distribute import key_column
from rowlake.engine.spark import Engine, Spread
from rowlake.model.partition import SortField
from rowlake.model.schema import Schema
from rowlake.model.transform import apply_transform
from tests import engine_kernels as kernels
from tests.spark_session import having

UTC = datetime.timezone.utc
HOURS = [datetime.timedelta(hours=7 * number) for number in range(-300, 300)]
NAIVE = [datetime.datetime(1970, 1, 1) + step for step in HOURS]
VALUES = {
    "i": (pa.int32(), list(range(-300, 300))),
    "l": (pa.int64(), [number * 10**10 for number in range(-300, 300)]),
    "d": (pa.decimal128(9, 2), list(range(-300, 300))),
    "s": (pa.string(), [f"text-{number}" for number in range(600)]),
    "b": (pa.binary(), [b"bin-%d" % number for number in range(600)]),
    "day": (pa.date32(), [stamp.date() for stamp in NAIVE]),
    "ts": (pa.timestamp("us"), NAIVE),
    "tz": (pa.timestamp("us", "UTC"), [stamp.replace(tzinfo=UTC) for stamp in NAIVE]),
    "two words.`q`": (pa.int64(), list(range(600))),
}
SCHEMA = Schema(
    pa.schema(
        [
            pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
            for number, (name, (kind, _)) in enumerate(VALUES.items(), start=1)
        ]
    )
)
IDS = {name: number for number, name in enumerate(VALUES, start=1)}
ARRAYS = {name: pa.array([*values, None], kind) for name, (kind, values) in VALUES.items()}

MEANT = [
    ("i", "identity"),
    ("two words.`q`", "identity"),
    *((name, "bucket[7]") for name in ("i", "l", "d", "s", "b", "day", "ts", "tz")),
    *((name, "truncate[4]") for name in ("i", "l", "d", "s", "b")),
    *((name, unit) for name in ("day", "ts", "tz") for unit in ("year", "month", "day")),
    *((name, "hour") for name in ("ts", "tz")),
]


@pytest.fixture
def engine(spark):
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    yield Engine(spark)
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize(("name", "transform"), MEANT, ids=lambda value: value)
def test_rows_of_one_partition_have_one_key(engine, name, transform):
    frame = engine.from_arrow(pa.table(list(ARRAYS.values()), schema=SCHEMA.arrow))
    key = key_column(SortField(IDS[name], transform), SCHEMA)
    keys = frame.select(f.hash(key).alias("key")).toArrow()["key"].to_pylist()
    met = defaultdict(set)
    for value, found in zip(
        apply_transform(transform, ARRAYS[name]).to_pylist(), keys, strict=True
    ):
        met[value].add(found)
    assert all(len(found) == 1 for found in met.values())
    assert len({found for one in met.values() for found in one}) == len(met)


def tasks_of(frame):
    rows = frame.select("i", f.spark_partition_id().alias("task")).collect()
    tasks = defaultdict(set)
    for row in rows:
        tasks[row.task].add(row.i)
    return tasks


@pytest.fixture
def frame(engine):
    return engine.from_arrow(pa.table(list(ARRAYS.values()), schema=SCHEMA.arrow)).repartition(4)


def test_ranges_keep_neighbours_together(engine, frame):
    spread = engine.ordered_by(frame, (SortField(IDS["i"], "identity"),), SCHEMA)
    assert spread.columns == frame.columns
    spans = sorted(
        (min(found - {None}), max(found - {None})) for found in tasks_of(spread).values()
    )
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))


def test_what_a_spread_yields_comes_together_by_its_key(engine, frame):
    spread = Spread(kernels.numbers_by_last_digit, kernels.DIGITS, "digit")
    found = engine.consume(
        frame.select("i").repartition(4), kernels.digits_seen, kernels.SEEN, spread=spread
    )
    rows = found.to_pylist()
    assert sum(row["rows"] for row in rows) == 601
    assert sorted(row["digit"] for row in rows) == list(range(10))


@pytest.mark.parametrize("mode", [None, "hash", "none"])
def test_appends_make_as_many_files_as_the_table_asks_for(tmp_path, spark, mode):
    lake = rowlake.connect(warehouse=str(tmp_path), spark=spark)
    asked = f"TBLPROPERTIES ('write.distribution-mode' = '{mode}')" if mode else ""
    lake.sql("CREATE NAMESPACE db")
    lake.sql(
        "CREATE TABLE db.t (id bigint NOT NULL, name string, price decimal(9, 2)) "
        f"USING iceberg PARTITIONED BY (bucket(3, id)) {asked}"
    )
    rows = spark.range(0, 4000, 1, 4).selectExpr(
        "id", "concat('n', id) AS name", "CAST(id AS decimal(9, 2)) / 4 AS price"
    )
    done = lake.table("db.t").append(rows.withColumn("price", f.col("price").cast("decimal(9, 2)")))
    assert done.data_files_added == (12 if mode == "none" else 3)
    counted = lake.sql("SELECT count(*), sum(id), sum(price), max(name) FROM db.t").collect()[0]
    assert tuple(map(str, counted)) == ("4000", "7998000", "1999500.00", "n999")


@pytest.mark.parametrize("scale", [0, 2, 7, 15])
def test_decimals_come_to_kernels_exactly(engine, scale):
    largest = 10**15 - 1
    near = itertools.chain.from_iterable((10**n - 1, 10**n, 10**n + 1) for n in range(15))
    random = Random(scale)
    whole = [largest, *near, *(random.randint(-largest, largest) for _ in range(20_000))]
    numbers = [Decimal(n).scaleb(-scale) for n in (*whole, *(-n for n in whole))]
    kind = pa.decimal128(15, scale)
    wide = pa.array([None, *numbers], kind).cast(pa.decimal128(16, scale))
    table = pa.table({"a.b": pa.array([None, *numbers], kind), "wide": wide, "n": range(len(wide))})
    found = engine.consume(engine.from_arrow(table), kernels.rows_as_they_come, table.schema)
    assert found.sort_by("n").to_pydict() == table.to_pydict()


def test_uuids_are_kept_together_by_their_text(engine):
    field = pa.field("u", pa.binary(16), metadata={"PARQUET:field_id": "1", "rowlake:type": "uuid"})
    schema = Schema(pa.schema([field]))
    table = pa.table([pa.array([uuid.UUID(int=7).bytes] * 3, pa.binary(16))], schema=schema.arrow)
    key = key_column(SortField(1, "bucket[4]"), schema)
    assert engine.from_arrow(table).select(key.alias("k")).distinct().count() == 1


@pytest.mark.parametrize("is_adaptive", ["true", "false"])
def test_rows_of_one_partition_are_in_one_file_with_and_without_adaptive_execution(
    spark, tmp_path, is_adaptive
):
    with (
        having(spark, {"spark.sql.adaptive.enabled": is_adaptive}),
        rowlake.connect(str(tmp_path), spark=spark) as lake,
    ):
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", "id bigint, p bigint", partition_by=["p"])
        table.append(spark.range(0, 4000, 1, 4).selectExpr("id", "id % 5 AS p"))
        assert table.files()["record_count"].to_pylist() == [800] * 5
