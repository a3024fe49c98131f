"""What mutated logs were found to break: an error of rowlake, or what the files hold."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, InvalidStatementError
from tests.delta_logs import PROTOCOL, HandMade, column, features, metadata, people

NOW = {"retention_hours": 0, "enforce_retention_duration": False}
ALL = {"rewrite-all": "true"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def made(tmp_path):
    return HandMade(tmp_path / "t")


def ids(lake, made):
    return sorted(lake.table(made.name).arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        5,
        "long",
        {},
        {"type": "struct"},
        {"type": "struct", "fields": None},
        {"type": "struct", "fields": [5]},
        {"type": "struct", "fields": [{"type": "long", "nullable": True, "metadata": {}}]},
        {"type": "struct", "fields": [column("a", 5)]},
        {"type": "struct", "fields": [column(5, "long")]},
        {"type": "struct", "fields": [column("a", "long"), column("a", "string")]},
        {"type": "struct", "fields": [{**column("a", "long"), "metadata": 5}]},
        {"type": "struct", "fields": [column("a", {"type": "struct"})]},
    ],
    ids=repr,
)
def test_a_schema_that_is_none_is_refused_when_the_table_is_loaded(lake, made, schema):
    action = metadata()
    action["metaData"]["schemaString"] = json.dumps(schema)
    made.create(action)
    with pytest.raises(CorruptTableError, match="schema is damaged"):
        lake.table(made.name)


@pytest.mark.parametrize(
    ("partition_by", "cause"), [(("a", "a"), "listed twice"), (("tags",), "is a list")]
)
def test_partition_columns_that_no_table_can_have_are_refused(lake, made, partition_by, cause):
    tags = {"type": "array", "elementType": "string", "containsNull": True}
    made.create(metadata([("a", "long"), column("tags", tags)], partition_by))
    with pytest.raises(CorruptTableError, match=cause):
        lake.table(made.name).arrow()


@pytest.mark.parametrize(
    "stats", ["null", "null {}", " ", "{} {}", "5", "[]", '{"numRecords": -1}']
)
def test_statistics_that_are_no_object_say_nothing(lake, made, stats):
    made.create(
        made.add("a.parquet", people(1), stats=stats),
        made.add("b.parquet", people(2), stats=stats),
    )
    table = lake.table(made.name)
    assert table.inspect("files")["record_count"].to_pylist() == [None, None]
    assert table.inspect("partitions").num_rows
    assert ids(lake, made) == [1, 2]


@pytest.mark.parametrize("stats", [None, "{}", '{"numRecords": "x"}'])
def test_files_without_statistics_are_compacted(lake, made, stats):
    made.create(
        made.add("a.parquet", people(1, 2), stats=stats),
        made.add("b.parquet", people(3), stats=stats),
    )
    report = lake.table(made.name).rewrite_data_files(options=ALL)
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (2, 1)
    assert ids(lake, made) == [1, 2, 3]


def test_a_negative_retention_is_refused(lake, made):
    made.create(metadata(deletedFileRetentionDuration="interval -1 days"))
    with pytest.raises(InvalidStatementError, match="must not be negative"):
        lake.table(made.name).vacuum()


def test_an_empty_table_can_be_vacuumed(lake, made):
    made.create()
    stray = made.folder / "stray.parquet"
    stray.write_bytes(b"")
    assert lake.table(made.name).vacuum(dry_run=False, **NOW).path == (str(stray),)


@pytest.mark.parametrize("size", [-1, 24, 2**62])
def test_an_inline_vector_of_another_size_is_refused(lake, made, size):
    vector = {"storageType": "i", "pathOrInlineDv": "0" * 25, "cardinality": 1, "sizeInBytes": size}
    made.create(
        features("deletionVectors"), made.add("a.parquet", people(1), deletionVector=vector)
    )
    with pytest.raises(CorruptTableError, match="inline deletion vector"):
        ids(lake, made)


@pytest.mark.parametrize("what", ["add", "deletionVector", "stats"])
def test_a_checkpoint_with_other_types_is_refused_or_read(lake, made, what):
    made.create(made.add("a.parquet", people(1, 2)))
    add = {**made.adds["a.parquet"], "partitionValues": None, "deletionVector": None, "stats": None}
    if what == "add":
        adds = pa.array([None, None, "x"])
    else:
        adds = pa.array([None, None, {**add, what: 5}])
    described = {**metadata()["metaData"], "configuration": None, "format": None}
    columns = {
        "protocol": pa.array([PROTOCOL["protocol"], None, None]),
        "metaData": pa.array([None, described, None]),
        "add": adds,
    }
    pq.write_table(pa.table(columns), made.log / f"{0:020d}.checkpoint.parquet")
    if what == "stats":
        assert ids(lake, made) == [1, 2]
        assert lake.table(made.name).changes_arrow(0).num_rows == 0
        return
    with pytest.raises(CorruptTableError, match="are of type"):
        ids(lake, made)


def test_changes_with_nulls_in_a_required_column_are_refused(lake, made):
    rows = pa.table({"id": pa.array([1, None], pa.int64())})
    made.create(metadata([column("id", "long", nullable=False)]), made.add("a.parquet", rows))
    made.commit(made.remove("a.parquet"))
    with pytest.raises(CorruptTableError, match="its files contradict its schema"):
        lake.table(made.name).changes_arrow(0)
