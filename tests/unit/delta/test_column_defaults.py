"""Defaults of columns: kept as Delta keeps them, and filled in where rows lack the column."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.delta.features import protocol_for
from rowlake.delta.protocol import Protocol
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.column_rules import GENERATED_AS
from rowlake.model.schema import Schema
from rowlake.write.conform import conform
from tests.delta_logs import HandMade, actions, column, metadata

ALLOWED = {"delta.feature.allowColumnDefaults": "supported"}
PROTOCOL = {
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["allowColumnDefaults"],
    }
}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


def fields(path, version):
    return json.loads(actions(path, version)["metaData"][0]["schemaString"])["fields"]


def made(folder, *others):
    columns = [
        column("id", "long"),
        column("n", "integer", CURRENT_DEFAULT="5"),
        column("s", "string", CURRENT_DEFAULT="'it''s'"),
        column("d", "date", CURRENT_DEFAULT="DATE '2024-05-01'"),
        column("m", "decimal(8,2)", nullable=False, CURRENT_DEFAULT="-1.5"),
        column("x", "double", CURRENT_DEFAULT="NULL"),
        column("b", "boolean", CURRENT_DEFAULT="true"),
        *others,
    ]
    return HandMade(folder).create(PROTOCOL, metadata(columns))


def test_rows_that_lack_a_column_get_its_default(lake, tmp_path):
    table = lake.table(made(tmp_path / "t").name)
    table.append([{"id": 1}])
    table.append([{"id": 2, "n": None, "s": "given", "m": "2.25"}])
    first, second = sorted(table.arrow().to_pylist(), key=lambda row: row["id"])
    assert (first["n"], first["s"], first["x"], first["b"]) == (5, "it's", None, True)
    assert first["d"] == datetime.date(2024, 5, 1)
    assert str(first["m"]) == "-1.50"
    assert (second["n"], second["s"], str(second["m"])) == (None, "given", "2.25")


def test_upserts_fill_in_defaults_of_new_rows_only(lake, tmp_path):
    table = lake.table(made(tmp_path / "t").name)
    table.append([{"id": 1, "n": 7, "s": "old"}])
    table.upsert([{"id": 1, "s": "new"}, {"id": 2, "s": "added"}], keys=["id"])
    rows = {row["id"]: (row["n"], row["s"], row["b"]) for row in table.arrow().to_pylist()}
    assert rows == {1: (7, "new", True), 2: (5, "added", True)}


def test_a_default_is_kept_as_it_was_written(lake, path):
    schema = "id BIGINT, n INT DEFAULT 1 + 4 COMMENT 'count'"
    lake.create_table(path, schema, properties=ALLOWED)
    found = actions(path, 0)
    assert found["protocol"][0]["writerFeatures"] == [
        "allowColumnDefaults",
        "appendOnly",
        "invariants",
    ]
    assert found["metaData"][0]["configuration"] == {}
    assert fields(path, 0)[1] == {
        "name": "n",
        "type": "integer",
        "nullable": True,
        "metadata": {"comment": "count", "CURRENT_DEFAULT": "1 + 4"},
    }


def test_a_default_needs_its_feature(lake, path, tmp_path):
    with pytest.raises(InvalidStatementError, match="allowColumnDefaults"):
        lake.create_table(path, "id BIGINT, n INT DEFAULT 5")
    assert not (tmp_path / "t").exists()


def test_defaults_of_fields_of_structs_are_refused(lake, path, tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="n"):
        lake.create_table(path, "s STRUCT<n: INT DEFAULT 5 COMMENT 'c'>", properties=ALLOWED)
    nested = {"type": "struct", "fields": [column("n", "integer", CURRENT_DEFAULT="5")]}
    table = HandMade(tmp_path / "u").create(PROTOCOL, metadata([column("s", nested)]))
    with pytest.raises(UnsupportedFeatureError, match="n is a field with a default"):
        lake.table(table.name).append([{"s": {"n": 1}}])


def test_a_damaged_default_is_named(lake, tmp_path):
    table = HandMade(tmp_path / "t").create(metadata([column("id", "long", CURRENT_DEFAULT=5)]))
    with pytest.raises(Exception, match="id has the expression"):
        lake.table(table.name).arrow()


def test_writes_keep_the_defaults_in_the_log(lake, tmp_path):
    table = made(tmp_path / "t")
    found = lake.table(table.name)
    found.append(pa.table({"id": [1]}))
    found.set_properties({"a": "b"})
    kept = fields(("delta", str(tmp_path / "t")), 2)[1]
    assert kept["metadata"] == {"CURRENT_DEFAULT": "5"}


def test_rows_are_not_written_without_what_the_table_makes():
    made = pa.field("g", pa.int64(), metadata={GENERATED_AS: b"id + 1"})
    schema = Schema(pa.schema([pa.field("id", pa.int64()), made]))
    batch = pa.record_batch({"id": [1]})
    with pytest.raises(UnsupportedFeatureError, match="column g"):
        conform(batch, schema)
    assert conform(batch.slice(0, 0), schema).num_rows == 0


@pytest.mark.parametrize(
    ("before", "feature", "expected"),
    [
        (Protocol(1, 2), "checkConstraints", Protocol(1, 3)),
        (Protocol(2, 5), "checkConstraints", Protocol(2, 5)),
        (Protocol(1, 2), "generatedColumns", None),
        (Protocol(1, 7, (), ("invariants",)), "checkConstraints", None),
    ],
)
def test_a_legacy_version_is_chosen_where_it_says_the_same(before, feature, expected):
    found = protocol_for({feature}, before)
    if expected is None:
        implied = {"appendOnly", "invariants"} if before.writer_version == 2 else {"invariants"}
        expected = Protocol(1, 7, (), tuple(sorted({*implied, feature})))
    assert found == expected
