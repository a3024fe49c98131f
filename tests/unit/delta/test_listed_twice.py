"""Logs that list a file twice, or half a deletion vector: each row once, or an error."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.delta import many_files
from rowlake.errors import CorruptTableError
from tests.delta_logs import HandMade, features, metadata, people

VECTOR = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1}
PARTS = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def made(tmp_path):
    table = HandMade(tmp_path / "t")
    table.create(features("deletionVectors"), metadata(), table.add("a.parquet", people(1, 2)))
    return table


def ids(lake, made):
    return sorted(lake.table(made.name).arrow(["id"])["id"].to_pylist())


def test_a_file_that_a_checkpoint_lists_twice_is_read_once(lake, made):
    add = {**made.adds["a.parquet"], "partitionValues": []}
    rows = [
        features("deletionVectors"),
        {"metaData": {**metadata()["metaData"], "configuration": [], "format": None}},
        *[{"add": add}] * 2,
    ]
    kinds = {"partitionValues": pa.map_(pa.string(), pa.string())}
    struct = pa.struct([(one.name, kinds.get(one.name, one.type)) for one in pa.scalar(add).type])
    columns = {
        kind: pa.array([row.get(kind) for row in rows], struct if kind == "add" else None)
        for kind in ("protocol", "metaData", "add")
    }
    pq.write_table(pa.table(columns), made.log / f"{0:020d}.checkpoint.parquet")
    assert ids(lake, made) == [1, 2]


def test_a_file_with_two_deletion_vectors_at_once_is_refused(lake, made):
    made.commit({"add": {**made.adds["a.parquet"], "deletionVector": VECTOR}})
    with pytest.raises(CorruptTableError, match="more than once, with different deletion vectors"):
        ids(lake, made)


@pytest.mark.parametrize("enough_bytes", [0, 10**9])
@pytest.mark.parametrize("missing", [*PARTS, None])
def test_a_deletion_vector_that_lacks_a_part_is_not_taken_for_none(
    lake, made, missing, enough_bytes, monkeypatch
):
    monkeypatch.setattr(many_files, "ENOUGH_BYTES", enough_bytes)
    half = {} if missing is None else {one: VECTOR[one] for one in PARTS if one != missing}
    made.commit(made.remove("a.parquet"))
    made.commit({"add": {**made.adds["a.parquet"], "deletionVector": half}})
    with pytest.raises(CorruptTableError, match="a add action lacks"):
        ids(lake, made)
