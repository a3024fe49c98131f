from __future__ import annotations

import math
import struct
import tempfile
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)

from rowlake.iceberg.schema import schema_from_arrow
from rowlake.write.bounds import cut_lower, cut_upper
from rowlake.write.metrics_modes import COUNTS, FULL, NONE, TRUNCATE_16, MetricsMode, metrics_modes
from tests.unit.write.test_parquet_files import FIELDS, rows_of_all_types
from tests.write_helpers import SortOrder, column, context_of, view_of, write

MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
LEAVES = [
    column("i", pa.int32(), 1),
    column("l", pa.int64(), 2),
    column("f", pa.float32(), 3),
    column("d", pa.float64(), 4),
    column("s", pa.string(), 5),
    column("b", pa.binary(), 6),
    column("dec", pa.decimal128(10, 2), 7),
    column("wide", pa.decimal128(30, 2), 8),
    column("in", pa.struct([column("x", pa.float64(), 10), column("y", pa.string(), 11)]), 9),
]


def metrics_of(written: pa.Table) -> dict[str, dict[int, object]]:
    (row,) = written.to_pylist()
    return {name: dict(row[name] or ()) for name in MAPS}


def texts() -> st.SearchStrategy[str]:
    some = st.text(
        st.one_of(
            st.characters(exclude_categories=["Cs"]), st.sampled_from("a\x7f\ud7ff\uffff\U0010ffff")
        ),
        max_size=24,
    )
    return some | st.just("q" * 5000) | st.just("\U0010ffff" * 20)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    floats = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0])
    narrow = st.floats(width=32) | st.sampled_from([0.0, -0.0])
    decimals = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda each: Decimal(each).scaleb(-2))
    wides = st.integers(-(10**27), 10**27).map(lambda each: Decimal(each).scaleb(-2))
    kinds = {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.integers(-(2**63), 2**63 - 1),
        "f": narrow,
        "d": floats,
        "s": texts(),
        "b": st.binary(max_size=24) | st.just(b"\xff" * 20) | st.just(b"b" * 5000),
        "dec": decimals,
        "wide": wides,
        "in": st.fixed_dictionaries({"x": st.none() | floats, "y": st.none() | texts()}),
    }
    rows = draw(st.integers(1, 12))
    columns = [
        pa.array(
            draw(st.lists(st.none() | kinds[each.name], min_size=rows, max_size=rows)), each.type
        )
        for each in LEAVES
    ]
    return pa.table(columns, schema=pa.schema(LEAVES))


def leaf_values(table: pa.Table) -> dict[int, list[object]]:
    found = {place: table[each.name].to_pylist() for place, each in enumerate(LEAVES[:8], 1)}
    rows = table["in"].to_pylist()
    found[10] = [None if row is None else row["x"] for row in rows]
    found[11] = [None if row is None else row["y"] for row in rows]
    return found


def order_of(value: object) -> object:
    if isinstance(value, float):
        return (value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def decoded(encoded: bytes, field_id: int) -> object:
    if field_id in (1, 2):
        return int.from_bytes(encoded, "little", signed=True)
    if field_id in (3, 4, 10):
        return struct.unpack("<f" if field_id == 3 else "<d", encoded)[0]
    if field_id in (7, 8):
        return Decimal(int.from_bytes(encoded, "big", signed=True)).scaleb(-2)
    return encoded.decode() if field_id in (5, 11) else encoded


def expected_bounds(values: list[object], *, cut: bool) -> tuple[object, object]:
    lowest, highest = min(values, key=order_of), max(values, key=order_of)
    if lowest == 0.0 and isinstance(lowest, float):
        lowest = -0.0
    if highest == 0.0 and isinstance(highest, float):
        highest = 0.0
    if not cut:
        return lowest, highest
    is_text = isinstance(lowest, str)
    kind = pa.string() if is_text else pa.binary()
    low = cut_lower(lowest.encode() if is_text else lowest, kind, TRUNCATE_16)
    high = cut_upper(highest.encode() if is_text else highest, kind, TRUNCATE_16)
    if is_text:
        return low.decode(), None if high is None else high.decode()
    return low, high


@settings(max_examples=60, deadline=None)
@given(
    table=tables(),
    file_format=st.sampled_from(["PARQUET", "ORC", "AVRO"]),
    split=st.booleans(),
)
def test_metrics_equal_those_of_a_plain_count(table, file_format, split):
    with tempfile.TemporaryDirectory() as folder:
        view = view_of(folder, LEAVES, properties={"write.format.default": file_format})
        context = context_of(view)
        batches = table.to_batches(max_chunksize=3) if split else table
        metrics = metrics_of(write(context, batches))
    for field_id, values in leaf_values(table).items():
        assert metrics["value_counts"][field_id] == len(values)
        assert metrics["null_value_counts"][field_id] == values.count(None)
        if field_id in (3, 4, 10):
            assert metrics["nan_value_counts"][field_id] == sum(map(is_nan, values))
        else:
            assert field_id not in metrics["nan_value_counts"]
        bounded = [value for value in values if value is not None and not is_nan(value)]
        if not bounded:
            assert field_id not in metrics["lower_bounds"]
            assert field_id not in metrics["upper_bounds"]
            continue
        low, high = expected_bounds(bounded, cut=field_id in (5, 6, 11))
        assert repr(decoded(metrics["lower_bounds"][field_id], field_id)) == repr(low)
        found = metrics["upper_bounds"].get(field_id)
        assert repr(None if found is None else decoded(found, field_id)) == repr(high)


def test_metrics_equal_those_of_pyiceberg(tmp_path):
    fields = [each for each in FIELDS if each.name not in ("nothing", "nanos", "nanos tz")]
    table = rows_of_all_types().select([each.name for each in fields])
    written = write(context_of(view_of(tmp_path, fields)), table)
    footer = pq.read_metadata(written["location"][0].as_py())
    schema = schema_from_arrow(pa.schema(fields))
    ours = {each: number for number, each in enumerate(_ids_in_order(fields), 1)}
    theirs = data_file_statistics_from_parquet_metadata(
        footer,
        compute_statistics_plan(schema, {}),
        parquet_path_to_id_mapping(schema),
    )
    metrics = metrics_of(written)
    repeated = {ours[each] for each in (23, 25, 27)}
    for name, expected in {
        "column_sizes": theirs.column_sizes,
        "value_counts": theirs.value_counts,
        "null_value_counts": theirs.null_value_counts,
    }.items():
        # PyIceberg also counts values below lists and maps, which Iceberg Java does not.
        kept = {
            key: value
            for key, value in expected.items()
            if name == "column_sizes" or key not in repeated
        }
        assert {ours[key]: value for key, value in metrics[name].items()} == kept, name
    bounds = {
        "lower_bounds": theirs.column_aggregates,
        "upper_bounds": theirs.column_aggregates,
    }
    for name, aggregates in bounds.items():
        end = "min" if name == "lower_bounds" else "max"
        expected = {key: getattr(each, f"{end}_as_bytes")() for key, each in aggregates.items()}
        kept = {key: value for key, value in expected.items() if value is not None}
        # PyIceberg keeps no bounds inside structs; Iceberg Java and we do.
        found = {ours[key]: value for key, value in metrics[name].items() if key != 21}
        assert found == kept, name


def _ids_in_order(fields: list[pa.Field]) -> list[int]:
    from rowlake.model.schema import Schema

    return [
        int(found.metadata[b"PARQUET:field_id"]) for _, found in Schema(pa.schema(fields)).walk()
    ]


def test_leaves_below_lists_and_maps_have_sizes_only(tmp_path):
    metrics = metrics_of(write(context_of(view_of(tmp_path, FIELDS)), rows_of_all_types()))
    for repeated in (23, 25, 27):
        assert repeated in metrics["column_sizes"]
        for name in MAPS[1:]:
            assert repeated not in metrics[name]
    assert 21 in metrics["lower_bounds"]


def test_modes_decide_what_is_kept(tmp_path):
    properties = {
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.s": "full",
        "write.metadata.metrics.column.b": "truncate(2)",
        "write.metadata.metrics.column.i": "none",
        "write.metadata.metrics.column.in.y": "truncate(1)",
    }
    table = pa.table(
        [
            pa.array([1]),
            pa.array([1]),
            pa.array([1.0]),
            pa.array([1.0]),
            pa.array(["x" * 40]),
            pa.array([b"abc"]),
            pa.array([Decimal(1)]),
            pa.array([Decimal(1)]),
            pa.array([{"x": 1.0, "y": "abc"}]),
        ],
        names=[each.name for each in LEAVES],
    )
    written = write(context_of(view_of(tmp_path, LEAVES, properties=properties)), table)
    metrics = metrics_of(written)
    assert set(metrics["column_sizes"]) == {2, 3, 4, 5, 6, 7, 8, 10, 11}
    assert set(metrics["value_counts"]) == {2, 3, 4, 5, 6, 7, 8, 10, 11}
    assert metrics["lower_bounds"] == {5: b"x" * 40, 6: b"ab", 11: b"a"}
    assert metrics["upper_bounds"] == {5: b"x" * 40, 6: b"ac", 11: b"b"}


def test_a_short_value_beside_a_long_one_still_bounds(tmp_path):
    fields = [column("s", pa.string(), 1)]
    batches = [
        pa.record_batch([pa.array([each])], names=["s"]) for each in ("aa", "m" * 5000, "zz")
    ]
    metrics = metrics_of(write(context_of(view_of(tmp_path, fields)), batches))
    assert (metrics["lower_bounds"][1], metrics["upper_bounds"][1]) == (b"aa", b"zz")


@pytest.mark.spec("Manifests: bounds of text are cut at code points, upper ones incremented")
@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abd"),
        ("ab\U0010ffffd", 3, "ac"),
        ("\U0010ffff" * 4, 3, None),
        ("a\ud7ffx", 2, "a\ue000"),
        ("🐎🐎", 1, "🐏"),
    ],
)
def test_upper_bounds_of_text(text, length, expected):
    found = cut_upper(text.encode(), pa.string(), MetricsMode(length=length))
    assert found == (None if expected is None else expected.encode())


def test_upper_bounds_of_bytes():
    two = MetricsMode(length=2)
    assert cut_upper(b"ab", pa.binary(), two) == b"ab"
    assert cut_upper(b"a\xffc", pa.binary(), two) == b"b"
    assert cut_upper(b"\xff\xff\xff", pa.binary(), two) is None
    assert cut_upper(b"\xff\xff\xff", pa.binary(3), two) == b"\xff\xff\xff"


def test_wide_tables_keep_metrics_of_the_first_hundred_columns_and_of_sorted_ones(tmp_path):
    from rowlake.model.partition import SortField

    fields = [column(f"c{number}", pa.int32(), number) for number in range(1, 121)]
    order = SortOrder(3, (SortField(119, "identity"), SortField(120, "bucket[4]")))
    view = view_of(tmp_path, fields, order=order)
    modes = metrics_modes({}, view.schema, order)
    assert [key for key, mode in modes.items() if mode == TRUNCATE_16] == [*range(1, 101), 119]
    assert modes[118] == modes[120] == NONE
    counted = metrics_modes({"write.metadata.metrics.default": "counts"}, view.schema, order)
    assert (counted[119], counted[118]) == (TRUNCATE_16, COUNTS)
    full = metrics_modes({"write.metadata.metrics.default": "full"}, view.schema, order)
    assert full[119] == FULL
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "2"}
    assert [
        key for key, mode in metrics_modes(limit, view.schema, None).items() if mode != NONE
    ] == [
        1,
        2,
    ]
