"""Adds and removes: what is written is what our reader, and others, read back."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.delta.actions import PARTITION_VALUES
from rowlake.delta.add_actions import (
    RowIds,
    add_actions,
    cdc_actions,
    readd_actions,
    remove_actions,
)
from rowlake.delta.live_files import with_stats
from rowlake.delta.metadata import metadata_of
from rowlake.delta.partitions import partition_texts, partitions_of
from rowlake.delta.paths import are_odd, location_of, paths_of
from rowlake.delta.schema import columns_of
from rowlake.delta.statistics import Statistics
from rowlake.delta.stats_writer import longest_texts, stats_columns_of
from rowlake.delta.vector_file import VectorDescriptor
from rowlake.errors import InvalidStatementError
from rowlake.model.transform import partition_type
from rowlake.model.values import decode
from tests.delta_logs import column, features, metadata
from tests.delta_writing import NOW_MS, WrittenTable

UTC = datetime.timezone.utc
STRUCT = {"type": "struct", "fields": [column("x", "long"), column("y", "string")]}


def columns(fields, partition_by=(), **configuration):
    action = metadata(fields, partition_by, **configuration)["metaData"]
    return columns_of(metadata_of(action, "t"), "t")


def test_an_add_has_the_fields_of_delta_in_their_order(tmp_path):
    table = WrittenTable(tmp_path / "t").create([("id", "long"), ("p", "string")], ("p",))
    written = table.write(pa.table({"id": [3, None, 1]}), file="p=a b/é.parquet", p="a b")
    (made,) = add_actions(
        written,
        table.adding,
        modified_ms=7,
        row_ids=RowIds(10, 4),
        tags={"k": "v"},
        clustering_provider="liquid",
    )
    size = written["file_size_in_bytes"][0].as_py()
    assert json.dumps(made, ensure_ascii=False, separators=(",", ":")) == (
        '{"add":{"path":"p=a%20b/%C3%A9.parquet","partitionValues":{"p":"a b"},'
        f'"size":{size},"modificationTime":7,"dataChange":true,'
        r'"stats":"{\"numRecords\":3,\"minValues\":{\"id\":1},\"maxValues\":{\"id\":3},'
        r'\"nullCount\":{\"id\":1}}",'
        '"tags":{"k":"v"},"baseRowId":10,"defaultRowCommitVersion":4,"clusteringProvider":"liquid"}}'
    )


def test_row_ids_follow_the_rows_of_files(tmp_path):
    table = WrittenTable(tmp_path / "t").create([("id", "long")])
    written = [table.write(pa.table({"id": range(count)})) for count in (3, 0, 2)]
    made = add_actions(pa.concat_tables(written), table.adding, modified_ms=0, row_ids=RowIds(5, 1))
    assert [one["add"]["baseRowId"] for one in made] == [5, 8, 8]


def test_an_add_with_a_vector_has_wide_bounds(tmp_path):
    protocol = features("deletionVectors")
    table = WrittenTable(tmp_path / "t").create([("id", "long")], protocol=protocol)
    written = table.write(pa.table({"id": [1, 2]}))
    place = written["location"][0].as_py()
    vector = VectorDescriptor("u", "x" * 20, 34, 1, 1)
    (plain,) = add_actions(written, table.adding, modified_ms=0)
    (made,) = add_actions(written, table.adding, modified_ms=0, vectors={place: vector})
    assert json.loads(plain["add"]["stats"])["tightBounds"] is True
    assert json.loads(made["add"]["stats"])["tightBounds"] is False
    assert made["add"]["deletionVector"]["cardinality"] == 1


def test_change_files_are_no_change_of_rows(tmp_path):
    table = WrittenTable(tmp_path / "t").create([("id", "long")])
    written = table.write(pa.table({"id": [1]}), file="_change_data/cdc-1.parquet")
    (made,) = cdc_actions(written, table.adding)
    assert made["cdc"]["path"] == "_change_data/cdc-1.parquet"
    assert made["cdc"]["dataChange"] is False
    assert list(made["cdc"]) == ["path", "partitionValues", "size", "dataChange"]


def test_removes_and_adds_again_keep_what_the_first_add_said(tmp_path):
    protocol = features("deletionVectors")
    table = WrittenTable(tmp_path / "t").create(
        [("id", "long"), ("p", "string")], ("p",), protocol=protocol
    )
    # As another writer spells it: not escaped the way that we do.
    spelled = "p=x/a%3db+%E9%81%93.parquet"
    first = {
        "path": spelled,
        "partitionValues": {"p": None},
        "size": 9,
        "modificationTime": 3,
        "dataChange": True,
        "stats": '{"numRecords":4}',
        "tags": {"a": None, "b": "c"},
        "baseRowId": 0,
        "defaultRowCommitVersion": 1,
        "clusteringProvider": "liquid",
    }
    table.commit("WRITE", {"add": first})
    state = table.state
    place = state.files["location"][0].as_py()
    vector = VectorDescriptor("u", "x" * 20, 34, 1, 1)
    (gone,) = remove_actions(state.files, state.table, deleted_ms=8)
    (again,) = readd_actions(state.files, state.table, {place: vector})
    assert gone["remove"] == {
        "path": spelled,
        "deletionTimestamp": 8,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"p": None},
        "size": 9,
        "tags": {"a": None, "b": "c"},
        "baseRowId": 0,
        "defaultRowCommitVersion": 1,
    }
    expected = {"stats": '{"numRecords":4,"tightBounds":false}', "deletionVector": vector.json()}
    assert again["add"] == {**first, **expected}


def test_a_file_without_row_count_gets_one_with_its_vector(tmp_path):
    table = WrittenTable(tmp_path / "t").create([("id", "long")])
    table.commit("WRITE", {"add": {"path": "f", "size": 1, "dataChange": True}})
    state = table.state
    place = state.files["location"][0].as_py()
    vector = VectorDescriptor("u", "x" * 20, 34, 1, 1)
    (made,) = readd_actions(state.files, state.table, {place: vector}, record_counts=pa.array([6]))
    assert json.loads(made["add"]["stats"]) == {"numRecords": 6, "tightBounds": False}


def test_a_remove_names_the_vector_that_the_file_has(tmp_path):
    table = WrittenTable(tmp_path / "t").create(
        [("id", "long")], protocol=features("deletionVectors"), enableDeletionVectors="true"
    )
    written = table.write(pa.table({"id": range(5)}))
    table.append(written)
    place = written["location"][0].as_py()
    table.delete({place: [1]})
    (made,) = remove_actions(table.state.files, str(table.folder), deleted_ms=1)
    (added,) = (one["add"] for one in table.actions(2) if "add" in one)
    assert made["remove"]["deletionVector"] == added["deletionVector"]


names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/"), min_size=1
)


@given(st.lists(names.filter(lambda one: one not in (".", "..")), min_size=1, max_size=3))
def test_any_file_of_the_table_has_a_path_that_leads_back(parts):
    location = "/lake/a b%/t/" + "/".join(parts)
    path = paths_of(pa.array([location]), "/lake/a b%/t")[0].as_py()
    assert path.isascii()
    assert location_of(path, "/lake/a b%/t") == location


@pytest.mark.parametrize(
    ("location", "folder", "path"),
    [
        ("/other/a b.parquet", "/lake/t", "file:///other/a%20b.parquet"),
        ("s3://b:9/other/a:b", "s3://b:9/t", "s3://b:9/other/a:b"),
        ("s3://b/t/p=1/f.parquet", "s3://b/t", "p=1/f.parquet"),
        ("s3://b/t/a:b", "s3://b/t", "a%3Ab"),
        ("/lake/tt/f", "/lake/t", "file:///lake/tt/f"),
    ],
)
def test_files_elsewhere_have_absolute_paths(location, folder, path):
    assert paths_of(pa.array([location]), folder)[0].as_py() == path
    assert location_of(path, folder) == location


def test_paths_that_all_writers_spell_alike_are_not_odd():
    some = pa.array(["p=1/a-b_c.parquet", "a%20b", "/x", "é", "s3://b/x", "a b"])
    assert are_odd(some).to_pylist() == [False, True, True, True, True, True]
    assert are_odd(some.slice(0, 1)).to_pylist() == [False]


VALUES = {
    "string": st.text(st.characters(blacklist_categories=("Cs",))),
    "long": st.integers(-(2**63), 2**63 - 1),
    "byte": st.integers(-128, 127),
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(20,5)": st.decimals(-(10**14), 10**14, places=5),
    "binary": st.text(st.characters(blacklist_categories=("Cs",))).map(str.encode),
}


@pytest.mark.parametrize("kind", VALUES)
@settings(deadline=None)
@given(data=st.data())
def test_partition_values_come_back_from_their_texts(kind, data):
    some = data.draw(st.lists(st.none() | VALUES[kind], max_size=4))
    some = [None if one in ("__HIVE_DEFAULT_PARTITION__", "") else one for one in some]
    of = columns([("id", "long"), ("p", kind)], ("p",))
    struct = partition_type(of.spec, of.schema)
    given_values = pa.array([{"p": one} for one in some], struct)
    texts = partition_texts(given_values, of)["p"].to_pylist()
    maps = pa.array([[("p", one)] for one in texts], PARTITION_VALUES)
    assert partitions_of(maps, of, "t").to_pylist() == given_values.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("timestamp", datetime.datetime(2024, 5, 1, 12, tzinfo=UTC), "2024-05-01T12:00:00.000000Z"),
        ("timestamp_ntz", datetime.datetime(2024, 5, 1, 12), "2024-05-01 12:00:00.000000"),
        ("date", datetime.date(2024, 5, 1), "2024-05-01"),
        ("boolean", True, "true"),
        ("double", math.nan, "NaN"),
        ("double", -math.inf, "-Infinity"),
        ("decimal(12,8)", Decimal("0.00000001"), "0.00000001"),
        ("string", "", None),
        ("binary", b"", ""),
    ],
)
def test_partition_values_are_written_as_the_protocol_says(kind, value, text):
    of = columns([("id", "long"), ("p", kind)], ("p",))
    struct = pa.array([{"p": value}, {"p": None}], partition_type(of.spec, of.schema))
    assert partition_texts(struct, of)["p"].to_pylist() == [text, None]


def test_bytes_that_are_no_text_cannot_be_a_partition():
    of = columns([("id", "long"), ("p", "binary")], ("p",))
    struct = pa.array([{"p": b"\xff"}], partition_type(of.spec, of.schema))
    with pytest.raises(InvalidStatementError, match="UTF-8"):
        partition_texts(struct, of)


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",))), max_size=5))
def test_cut_texts_are_bounds_of_the_whole_ones(texts):
    long = [one * 9 for one in texts]
    found = longest_texts(pa.array(long, pa.string())).to_pylist()
    for text, bound in zip(long, found, strict=True):
        assert bound is None or (bound.encode() >= text.encode() and len(bound) <= 65)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "é", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "\U0010ffff" * 2 + "b", "a" * 32 + "\U0010ffff" * 2 + "\x7f"),
        ("\U0010ffff" * 70, None),
    ],
)
def test_upper_bounds_of_long_texts(text, expected):
    assert longest_texts(pa.array([text])).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ["a", "s.x", "s.y", "l"]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["a", "s.x"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ["a", "s.x", "s.y", "l"]),
        ({"delta.dataSkippingStatsColumns": "s, `a`"}, ["a", "s.x", "s.y"]),
        ({"delta.dataSkippingStatsColumns": "S.y,nope"}, ["s.y"]),
        ({"delta.dataSkippingStatsColumns": ""}, []),
    ],
)
def test_columns_with_statistics_are_those_that_properties_name(properties, expected):
    fields = [
        ("p", "long"),
        ("a", "long"),
        ("s", STRUCT),
        ("l", {"type": "array", "elementType": "long", "containsNull": True}),
    ]
    of = columns(fields, ("p",))
    chosen = stats_columns_of(of, properties)
    assert [".".join(of.physical[one]) for one in chosen.ids] == expected


def test_of_many_columns_the_first_32_have_statistics():
    of = columns([(f"c{number}", "long") for number in range(40)])
    assert len(stats_columns_of(of, {}).ids) == 32


def test_a_number_of_columns_that_is_none_is_refused():
    with pytest.raises(InvalidStatementError, match="must be a number"):
        stats_columns_of(columns([("a", "long")]), {"delta.dataSkippingNumIndexedCols": "all"})


def stats_of(tmp_path, kind, values):
    table = WrittenTable(tmp_path / "t").create([("c", kind)])
    field = table.columns.schema.find(("c",))
    table.rows(pa.table({"c": pa.array(values, field.type)}))
    return json.loads(table.state.files["stats"][0].as_py())


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        ("double", [1.5, math.nan], 1.5, None),  # NaN is the greatest of numbers
        ("double", [-math.inf, 2.0], None, 2),
        ("boolean", [True, False], None, None),
        ("binary", [b"a"], None, None),
        ("date", [datetime.date(2024, 5, 1)], "2024-05-01", "2024-05-01"),
        (
            "timestamp",
            [datetime.datetime(1960, 1, 1, 0, 0, 0, 1999, UTC)],
            "1960-01-01T00:00:00.001Z",
            "1960-01-01T00:00:00.001Z",
        ),
        (
            "timestamp_ntz",
            [datetime.datetime(2024, 1, 1, 0, 0, 0, 999999)],
            "2024-01-01T00:00:00.999",
            "2024-01-01T00:00:00.999",
        ),
        ("decimal(12,8)", [Decimal("0.00000001")], 1e-8, 1e-8),
        ("string", ['a"\\\n\x01é'], 'a"\\\n\x01é', 'a"\\\n\x01é'),
        ("string", [None], None, None),
    ],
)
def test_statistics_are_what_delta_writes(tmp_path, kind, values, low, high):
    found = stats_of(tmp_path, kind, values)
    assert found["minValues"].get("c") == low
    assert found["maxValues"].get("c") == high
    assert found["nullCount"] == {"c": sum(one is None for one in values)}


def test_statistics_of_structs_are_nested(tmp_path):
    found = stats_of(tmp_path, STRUCT, [{"x": 1, "y": None}, None])
    assert found["minValues"] == {"c": {"x": 1}}
    assert found["nullCount"] == {"c": {"x": 1, "y": 2}}


@pytest.mark.parametrize("kind", [one for one in VALUES if one not in ("boolean", "binary")])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_bounds_hold_for_every_row_that_our_reader_reads(kind, data, tmp_path_factory):
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=3))
    table = WrittenTable(tmp_path_factory.mktemp("s") / "t").create([("c", kind)])
    field = table.columns.schema.find(("c",))
    array = pa.array(values, field.type)
    table.rows(pa.table({"c": array}))
    state = table.state
    maps = Statistics(state.files, state, table.columns, (1,)).maps()
    known = array.drop_null().to_pylist()
    for name, holds in (
        ("lower_bounds", lambda a, b: a <= b),
        ("upper_bounds", lambda a, b: a >= b),
    ):
        for _, encoded in maps[name][0].as_py() or ():
            bound = decode(pa.array([encoded], pa.binary()), field.type)[0].as_py()
            assert all(holds(bound, one) for one in known)


def test_statistics_that_are_in_a_checkpoint_come_back_as_texts(tmp_path):
    table = WrittenTable(tmp_path / "t").create([("c", "timestamp")], checkpointInterval="1")
    moment = datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, UTC)
    table.rows(pa.table({"c": [moment, None]}))
    (add,) = (one["add"] for one in table.actions(1) if "add" in one)
    state = table.state
    assert state.files["stats"][0].as_py() is None
    found = with_stats(state.files, state, table.columns)
    assert found["stats"].to_pylist() == [add["stats"]]
    assert state.files["modification_time"].to_pylist() == [NOW_MS]
