from __future__ import annotations

import datetime as dt
from collections import defaultdict
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import SchemaMismatchError
from rowlake.model.transform import apply_transform
from rowlake.model.values import encode
from tests.write_helpers import column, context_of, spec_of, view_of, write

UTC = dt.timezone.utc
ROWS = 400
SOURCES = {
    "int": (pa.int32(), [i % 37 - 10 for i in range(ROWS)]),
    "long": (pa.int64(), [i * 7919 % 101 for i in range(ROWS)]),
    "text": (pa.string(), [f"{'žx'[i % 2]}{i % 13}" for i in range(ROWS)]),
    "bytes": (pa.binary(), [bytes([i % 5, 1, 2]) for i in range(ROWS)]),
    "decimal": (pa.decimal128(9, 2), [Decimal(i % 40 - 20) / 4 for i in range(ROWS)]),
    "date": (pa.date32(), [dt.date(1969, 11, 1) + dt.timedelta(days=i % 90) for i in range(ROWS)]),
    "time": (
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 30) + dt.timedelta(hours=i % 50) for i in range(ROWS)],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 2, 1, tzinfo=UTC) + dt.timedelta(hours=i % 50) for i in range(ROWS)],
    ),
    "uuid": (pa.binary(16), [bytes([i % 7] * 16) for i in range(ROWS)]),
    "flag": (pa.bool_(), [i % 3 == 0 for i in range(ROWS)]),
    "double": (pa.float64(), [[0.5, float("nan"), float("inf")][i % 3] for i in range(ROWS)]),
}
CASES = [
    *[(source, "identity") for source in SOURCES],
    *[(source, "bucket[4]") for source in SOURCES if source not in ("flag", "double")],
    *[(source, "truncate[2]") for source in ("int", "long", "text", "bytes", "decimal")],
    *[
        (source, name)
        for source in ("date", "time", "instant")
        for name in ("year", "month", "day")
    ],
    ("time", "hour"),
    ("instant", "hour"),
    ("int", "void"),
]


def rows_of(source: str) -> tuple[list[pa.Field], pa.Table]:
    kind, values = SOURCES[source]
    extra = {"type": "uuid"} if source == "uuid" else {}
    fields = [column("n", pa.int64(), 1), column("c", kind, 2, **extra)]
    with_nulls = [None if place % 11 == 0 else value for place, value in enumerate(values)]
    table = pa.table(
        [pa.array(range(ROWS), pa.int64()), pa.array(with_nulls, kind)], schema=pa.schema(fields)
    )
    return fields, table


@pytest.mark.parametrize("fanout", [True, False])
@pytest.mark.parametrize(("source", "transform"), CASES)
def test_rows_land_in_the_partition_of_their_value(tmp_path, source, transform, fanout):
    fields, table = rows_of(source)
    spec = spec_of((2, transform, "part"))
    context = context_of(view_of(tmp_path, fields, spec=spec), fanout=fanout)
    written = write(context, table)
    keys = encode(apply_transform(transform, table["c"].combine_chunks())).to_pylist()
    expected: dict[object, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        expected[key].append(number)
    found: dict[object, list[int]] = defaultdict(list)
    for row in written.to_pylist():
        (key,) = row["partition"]
        found[key] += pq.read_table(row["location"])["n"].to_pylist()
        assert row["spec_id"] == 1
    assert found == expected
    assert len(written) == len(expected)


def test_several_fields_make_one_partition_and_one_folder(tmp_path):
    fields = [column("a", pa.string(), 1), column("b", pa.date32(), 2), column("n", pa.int64(), 3)]
    rows = pa.table(
        {
            "a": ["x/y", None, "x/y", "z"],
            "b": [dt.date(2024, 1, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 2), None],
            "n": [1, 2, 3, 4],
        }
    )
    spec = spec_of((1, "identity", "a"), (3, "void", "gone"), (2, "month", "b_month"))
    written = write(context_of(view_of(tmp_path, fields, spec=spec)), rows)
    folders = {
        row["location"].removeprefix(f"{tmp_path}/data/").rsplit("/", 1)[0]: row["record_count"]
        for row in written.to_pylist()
    }
    assert folders == {
        "a=x%2Fy/gone=null/b_month=2024-01": 2,
        "a=null/gone=null/b_month=2024-01": 1,
        "a=z/gone=null/b_month=null": 1,
    }
    by_count = {row["record_count"]: row["partition"] for row in written.to_pylist()}
    assert by_count[2] == [b"x/y", None, (54 * 12).to_bytes(4, "little")]


def test_a_column_inside_a_struct_can_partition(tmp_path):
    inner = pa.struct([column("x", pa.int32(), 2)])
    fields = [column("s", inner, 1)]
    rows = pa.table([pa.array([{"x": 1}, None, {"x": None}, {"x": 1}], inner)], names=["s"])
    spec = spec_of((2, "identity", "x"))
    written = write(context_of(view_of(tmp_path, fields, spec=spec)), rows)
    assert sorted(row["record_count"] for row in written.to_pylist()) == [2, 2]


def test_clustered_input_opens_one_file_per_partition_over_many_batches(tmp_path):
    fields = [column("n", pa.int64(), 1)]
    spec = spec_of((1, "truncate[100]", "n"))
    batches = pa.table({"n": list(range(1000))}).to_batches(max_chunksize=30)
    written = write(context_of(view_of(tmp_path, fields, spec=spec), fanout=False), batches)
    assert written["record_count"].to_pylist() == [100] * 10


def test_a_partition_that_comes_back_opens_another_file(tmp_path, monkeypatch):
    monkeypatch.setattr("rowlake.write.kernel.PIECE_ROWS", 2)
    fields = [column("n", pa.int64(), 1)]
    spec = spec_of((1, "identity", "n"))
    rows = pa.table({"n": [1, 1, 2, 2, 1, 1]})
    view = view_of(tmp_path, fields, spec=spec)
    assert len(write(context_of(view, fanout=False), rows)) == 3
    assert len(write(context_of(view, fanout=True), rows)) == 2


def test_fan_out_keeps_to_its_memory_and_its_open_files(tmp_path, monkeypatch):
    monkeypatch.setattr("rowlake.write.kernel.PIECE_ROWS", 100)
    fields = [column("n", pa.int64(), 1)]
    spec = spec_of((1, "bucket[8]", "n"))
    table = pa.table({"n": list(range(5000))})
    context = context_of(
        view_of(tmp_path, fields, spec=spec), buffer_size_in_bytes=4000, open_files=3
    )
    written = write(context, table)
    assert sum(written["record_count"].to_pylist()) == 5000
    assert len(written) > 8
    numbers = [
        number
        for location in written["location"].to_pylist()
        for number in pq.read_table(location)["n"].to_pylist()
    ]
    assert sorted(numbers) == list(range(5000))


def test_many_partitions_in_several_fields(tmp_path):
    fields = [column("a", pa.int64(), 1), column("b", pa.int64(), 2)]
    spec = spec_of((1, "identity", "a"), (2, "identity", "b"))
    rows = pa.table({"a": [i * 31 % 30 for i in range(900)], "b": [i % 30 for i in range(900)]})
    written = write(context_of(view_of(tmp_path, fields, spec=spec)), rows)
    for row in written.to_pylist():
        key = [int.from_bytes(each, "little") for each in row["partition"]]
        found = pq.read_table(row["location"]).to_pylist()
        assert all([each["a"], each["b"]] == key for each in found)
    assert sum(written["record_count"].to_pylist()) == 900


@pytest.mark.parametrize(("precision", "width"), [(9, 10), (18, 8), (38, 10)])
def test_a_decimal_that_truncating_takes_out_of_its_type_is_refused(tmp_path, precision, width):
    kind = pa.decimal128(precision, 2)
    greatest = Decimal(10**precision - 1).scaleb(-2, context=Context(prec=38))
    fields = [column("c", kind, 1)]
    spec = spec_of((1, f"truncate[{width}]", "c_trunc"))
    context = context_of(view_of(tmp_path, fields, spec=spec))
    write(context, pa.table([pa.array([greatest, None], kind)], schema=pa.schema(fields)))
    with pytest.raises(SchemaMismatchError, match=r"by truncate\[\d+\] of c: .* Widen") as raised:
        write(
            context, pa.table([pa.array([greatest.copy_negate()], kind)], schema=pa.schema(fields))
        )
    assert raised.value.column == "c"
