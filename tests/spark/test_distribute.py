from __future__ import annotations

import datetime
import itertools
import uuid
from collections import defaultdict

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from rowlake.engine.distribute import HELPER, distribute, key_column
from rowlake.engine.spark import Engine
from rowlake.model.partition import SortField
from rowlake.model.schema import Schema
from rowlake.model.transform import apply_transform
from rowlake.write.distribution import Distribution, Kind

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


def test_hash_brings_partitions_together_and_leaves_no_column_behind(engine, frame):
    keys = (SortField(IDS["i"], "truncate[100]"), SortField(IDS["i"], "bucket[2]"))
    spread = distribute(frame, Distribution(Kind.HASH, keys), SCHEMA, slots=2, asked=True)
    assert spread.columns == frame.columns
    assert HELPER.format(0) not in spread.columns
    assert spread.count() == 601


def test_range_keeps_neighbours_together(engine, frame):
    keys = (SortField(IDS["i"], "identity"),)
    spread = distribute(frame, Distribution(Kind.RANGE, keys), SCHEMA, slots=2, asked=True)
    spans = sorted(
        (min(found - {None}), max(found - {None})) for found in tasks_of(spread).values()
    )
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))


def test_nothing_is_shuffled_where_nothing_asks_for_it(engine, frame):
    keys = (SortField(IDS["i"], "identity"),)
    unasked = Distribution(Kind.HASH, keys)
    assert distribute(frame, unasked, SCHEMA, slots=1, asked=False) is frame
    assert distribute(frame, Distribution(Kind.NONE), SCHEMA, slots=2, asked=True) is frame


def test_uuids_are_kept_together_by_their_text(engine):
    field = pa.field("u", pa.binary(16), metadata={"PARQUET:field_id": "1", "rowlake:type": "uuid"})
    schema = Schema(pa.schema([field]))
    table = pa.table([pa.array([uuid.UUID(int=7).bytes] * 3, pa.binary(16))], schema=schema.arrow)
    key = key_column(SortField(1, "bucket[4]"), schema)
    assert engine.from_arrow(table).select(key.alias("k")).distinct().count() == 1
