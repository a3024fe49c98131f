"""The delete index against the spec's rules, read one pair at a time."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.errors import CorruptTableError
from rowlake.model.files import Content, files_schema
from rowlake.model.transform import partition_type
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.delete_overlap import PATH_FIELD_ID
from rowlake.prune import row_ranges as ranges
from tests.plan_kit import UNPARTITIONED, column, entries_of, metrics_of, schema_of, spec_of

SCHEMA = schema_of(
    column("a", pa.int32(), 1), column("b", pa.string(), 2), column("f", pa.float64(), 3)
)
SPECS = {
    0: UNPARTITIONED,
    1: spec_of((1, "identity"), (3, "identity"), spec_id=1),
    2: spec_of((1, "void"), spec_id=2),
}
POSITION, EQUALITY = Content.POSITION_DELETES, Content.EQUALITY_DELETES


def table_of(rows, spec_id):
    """Make a table of files from partial rows."""
    base = {
        "status": 1,
        "content": 0,
        "file_format": "PARQUET",
        "record_count": 1,
        "file_size_in_bytes": 10,
        "spec_id": spec_id,
        "partition": {},
        "data_sequence_number": 1,
    }
    kind = partition_type(SPECS[spec_id], SCHEMA)
    return pa.Table.from_pylist([base | row for row in rows], schema=files_schema(kind))


def index_of(deletes):
    return DeleteIndex(
        {spec_id: table_of(rows, spec_id) for spec_id, rows in deletes.items()}, SPECS, SCHEMA
    )


def applied(index, data, spec_id=0):
    """Return the locations of the deletes of each data file."""
    found = index.applied_to(table_of(data, spec_id), spec_id)
    names = [
        [each.location for each in index.delete_files(found.rows_of(row))]
        for row in range(len(data))
    ]
    assert found.counts.tolist() == [len(each) for each in names]
    used = {index.files.column("location")[int(row)].as_py() for row in found.used()}
    assert used == {name for each in names for name in each}
    return names


def data_file(name, number=1, **more):
    return {"location": name, "data_sequence_number": number, **more}


def delete_file(name, content, number=1, **more):
    ids = [1] if content is EQUALITY else None
    return {
        "location": name,
        "content": content,
        "data_sequence_number": number,
        "equality_ids": ids,
        **more,
    }


def vector(name, path, number=1, **more):
    return delete_file(
        name, POSITION, number, file_format="PUFFIN", referenced_data_file=path, **more
    )


def path_bounds(lower, upper):
    return {
        "lower_bounds": [(PATH_FIELD_ID, lower.encode())],
        "upper_bounds": [(PATH_FIELD_ID, upper.encode())],
    }


@pytest.mark.spec("Scan Planning: position deletes apply to data files that are not newer")
def test_position_deletes_apply_where_not_older():
    index = index_of({0: [delete_file(f"d{n}", POSITION, n) for n in (3, 1, 2)]})
    files = [data_file("a", 1), data_file("b", 2), data_file("c", 4)]
    assert applied(index, files) == [["d1", "d2", "d3"], ["d2", "d3"], []]


@pytest.mark.spec("Scan Planning: equality deletes apply to strictly older data files")
def test_equality_deletes_apply_where_newer():
    index = index_of({0: [delete_file("d", EQUALITY, 2)]})
    assert applied(index, [data_file("a", 1), data_file("b", 2)]) == [["d"], []]


@pytest.mark.spec("Scan Planning: deletes apply within their spec and partition")
def test_deletes_stay_in_their_partition():
    one, two = {"p0": 1, "p1": None}, {"p0": 2, "p1": None}
    index = index_of(
        {
            1: [
                delete_file("pos", POSITION, 5, partition=one),
                delete_file("eq", EQUALITY, 5, partition=one),
            ]
        }
    )
    files = [data_file("a", partition=one), data_file("b", partition=two)]
    assert applied(index, files, 1) == [["pos", "eq"], []]
    assert applied(index, [data_file("c")], 0) == [[]]


@pytest.mark.spec("Scan Planning: equality deletes of an unpartitioned spec are global")
@pytest.mark.parametrize("spec_id", [0, 2])
def test_equality_deletes_of_an_unpartitioned_spec_are_global(spec_id):
    index = index_of({spec_id: [delete_file("eq", EQUALITY, 5), delete_file("pos", POSITION, 5)]})
    assert applied(index, [data_file("a", partition={"p0": 1, "p1": 2.0})], 1) == [["eq"]]


@pytest.mark.spec("Scan Planning: floating point partition values are equal by their bits")
def test_partitions_of_floats_are_equal_by_bits():
    odd_nan = np.array([0x7FF8000000000001], dtype=np.int64).view(np.float64)[0]
    nan, zero, minus = ({"p0": 1, "p1": value} for value in (float("nan"), 0.0, -0.0))
    index = index_of(
        {
            1: [
                delete_file("of_nan", POSITION, partition=nan),
                delete_file("of_zero", POSITION, partition=zero),
            ]
        }
    )
    files = [
        data_file("a", partition={"p0": 1, "p1": odd_nan}),
        data_file("b", partition=zero),
        data_file("c", partition=minus),
    ]
    assert applied(index, files, 1) == [["of_nan"], ["of_zero"], []]


@pytest.mark.spec("Scan Planning: a deletion vector takes the place of position delete files")
def test_a_vector_suppresses_position_delete_files_of_its_data_file():
    index = index_of(
        {
            0: [
                delete_file("pos", POSITION, 9),
                delete_file("of_a", POSITION, 9, referenced_data_file="a"),
                vector("dv", "a", 9, content_offset=4, content_size_in_bytes=40),
                delete_file("eq", EQUALITY, 9),
            ]
        }
    )
    assert applied(index, [data_file("a"), data_file("b")]) == [["dv", "eq"], ["pos", "eq"]]
    (made,) = index.delete_files([2])
    assert made.is_vector
    assert made.key == ("dv", 4)


@pytest.mark.spec("Scan Planning: a deletion vector applies to data files that are not newer")
def test_a_vector_older_than_its_data_file_does_not_apply():
    index = index_of({0: [vector("dv", "a", 1), delete_file("pos", POSITION, 3)]})
    assert applied(index, [data_file("a", 2)]) == [["pos"]]


def test_vectors_in_one_puffin_file_are_told_apart():
    index = index_of(
        {0: [vector("dv", "a", content_offset=4), vector("dv", "b", content_offset=9)]}
    )
    found = index.applied_to(table_of([data_file("b"), data_file("a")], 0), 0)
    offsets = [index.delete_files(found.rows_of(row))[0].content_offset for row in (0, 1)]
    assert offsets == [9, 4]


def test_two_vectors_of_one_data_file_are_a_corrupt_table():
    index = index_of({0: [vector("dv1", "a"), vector("dv2", "a")]})
    with pytest.raises(CorruptTableError, match="more than one deletion vector"):
        applied(index, [data_file("a")])


def test_a_vector_in_another_partition_is_a_corrupt_table():
    index = index_of({1: [vector("dv", "a", partition={"p0": 1, "p1": None})]})
    with pytest.raises(CorruptTableError, match="another partition") as caught:
        applied(index, [data_file("a", partition={"p0": 2, "p1": None})], 1)
    assert caught.value.location == "dv"


@pytest.mark.spec("Position Delete Files: scope by referenced_data_file or bounds of file_path")
def test_position_deletes_of_one_file_are_found_by_name_or_bounds():
    index = index_of(
        {
            0: [
                delete_file("by_name", POSITION, referenced_data_file="a"),
                delete_file("by_bounds", POSITION, **path_bounds("b", "b")),
                delete_file("by_range", POSITION, **path_bounds("b", "c")),
            ]
        }
    )
    files = [data_file(name) for name in "abcd"]
    assert applied(index, files) == [["by_name"], ["by_bounds", "by_range"], ["by_range"], []]


@pytest.mark.parametrize(
    ("data_values", "delete_values", "meet"),
    [
        ([1, 5], [5, 9], True),
        ([1, 4], [5, 9], False),
        ([6, 7], [1, 5], False),
        ([None, None], [5], False),
        ([None, 4], [None, 9], True),
        ([None, None], [None], True),
        ([1, 2], [None], False),
        ([None, 3], [5], False),
    ],
)
def test_equality_deletes_are_pruned_by_nulls_and_ranges(data_values, delete_values, meet):
    def metrics(values):
        return metrics_of([{"a": v, "b": "x", "f": 1.0} for v in values], SCHEMA)

    index = index_of({0: [delete_file("eq", EQUALITY, 5, **metrics(delete_values))]})
    assert applied(index, [data_file("a", **metrics(data_values))]) == [["eq"] if meet else []]
    unknown = index_of({0: [delete_file("eq", EQUALITY, 5)]})
    assert applied(unknown, [data_file("a", **metrics(data_values))]) == [["eq"]]


def test_equality_deletes_of_nan_reach_beyond_the_bounds():
    def metrics(values):
        return metrics_of([{"a": 1, "b": "x", "f": v} for v in values], SCHEMA)

    nan = float("nan")
    index = index_of({0: [delete_file("eq", EQUALITY, 5, equality_ids=[3], **metrics([nan, 9.0]))]})
    assert applied(index, [data_file("a", **metrics([1.0, nan]))]) == [["eq"]]
    assert applied(index, [data_file("a", **metrics([1.0, 2.0]))]) == [[]]


def test_nothing_to_apply():
    assert index_of({}).is_empty
    assert applied(index_of({}), [data_file("a")]) == [[]]
    assert applied(index_of({0: [delete_file("d", POSITION)]}), []) == []


def test_pairs_are_tested_block_by_block(monkeypatch):
    monkeypatch.setattr(ranges, "PAIR_BLOCK", 3)
    index = index_of(
        {0: [delete_file(f"d{n}", POSITION, n, **path_bounds("a", "f")) for n in range(5)]}
    )
    files = [data_file(name, 2) for name in "abxcy"]
    assert applied(index, files) == [["d2", "d3", "d4"]] * 2 + [[], ["d2", "d3", "d4"], []]


PARTITIONS = st.fixed_dictionaries(
    {"p0": st.sampled_from([None, 1, 2]), "p1": st.sampled_from([None, 0.0, float("nan")])}
)
VALUES = st.none() | st.integers(0, 6)


@st.composite
def tables(draw, kinds):
    """Draw rows of files by spec, with the rows that they hold or delete."""
    found = {0: [], 1: []}
    for number in range(draw(st.integers(0, 7))):
        spec_id = draw(st.sampled_from([0, 1]))
        content = draw(st.sampled_from(kinds))
        held = draw(st.lists(VALUES, min_size=1, max_size=3))
        row = {
            "location": f"{content}-{number}",
            "content": content,
            "data_sequence_number": draw(st.integers(1, 4)),
            "partition": draw(PARTITIONS) if spec_id else {},
            "equality_ids": [1] if content == EQUALITY else None,
            "held": held,
        }
        if content != POSITION and draw(st.booleans()):
            row |= metrics_of([{"a": value, "b": None, "f": None} for value in held], SCHEMA)
        found[spec_id].append(row)
    return found


def plain_key(row):
    return repr(sorted(row["partition"].items()))


def must_apply(data, data_spec, delete, delete_spec):
    """Read the spec's rules for one pair; equality deletes must, only if a value is shared."""
    older = data["data_sequence_number"] < delete["data_sequence_number"]
    same = data_spec == delete_spec and plain_key(data) == plain_key(delete)
    if delete["content"] == EQUALITY:
        return older and (same or delete_spec == 0)
    return same and data["data_sequence_number"] <= delete["data_sequence_number"]


@pytest.mark.spec("Scan Planning: scope rules of delete files")
@given(data=tables([0]), deletes=tables([POSITION, EQUALITY]))
@settings(max_examples=150, deadline=None)
def test_the_index_finds_what_the_rules_say(data, deletes):
    index = index_of(
        {
            n: [{k: v for k, v in r.items() if k != "held"} for r in rows]
            for n, rows in deletes.items()
        }
    )
    for spec_id, files in data.items():
        plain = [{k: v for k, v in row.items() if k != "held"} for row in files]
        for row, names in zip(files, applied(index, plain, spec_id), strict=True):
            assert max(Counter(names).values(), default=1) == 1
            for delete_spec, rows in deletes.items():
                for delete in rows:
                    wanted = must_apply(row, spec_id, delete, delete_spec)
                    found = delete["location"] in names
                    shared = delete["content"] == POSITION or set(row["held"]) & set(delete["held"])
                    assert wanted or not found
                    assert found or not (wanted and shared)


def test_entries_made_from_rows_fit_the_index():
    data = entries_of([[{"a": 1, "b": "x", "f": 0.5}]], SCHEMA, SPECS[1])
    assert index_of({1: []}).applied_to(data, 1).clean.tolist() == [True]
