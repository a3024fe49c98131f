"""Delete files and vectors that do not hold what they should: an error that names the file."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowlake.codecs import deletion_vector
from rowlake.errors import CorruptTableError, UnsupportedFeatureError
from rowlake.model.files import Content, DeleteFile
from rowlake.scan import deletes as deletes_module
from tests.scanning import (
    equality_deletes,
    field,
    file_task,
    scan,
    schema,
    table_of,
    vector,
    write_orc,
    write_parquet,
)

TABLE = schema(field("k", pa.int64(), 1), field("c", pa.string(), 2))
ROWS = [{"k": index, "c": f"v{index}"} for index in range(20)]
ONE = pa.array([1], pa.int64())
PATH_ID, POS_ID = 2147483546, 2147483545


@pytest.fixture
def data(tmp_path) -> str:
    deletes_module.clear_caches()
    return write_parquet(tmp_path / "data.parquet", table_of(TABLE, ROWS))


def remaining(data: str, *deletes: DeleteFile) -> list[int]:
    return [row["k"] for row in scan(TABLE, file_task(data, deletes=deletes))]


@pytest.mark.parametrize("offset", [-(1 << 63), -1, 0, 3, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("size", [-(1 << 63), -1, 0, 5, 1 << 40, (1 << 63) - 1])
def test_a_vector_that_is_not_where_the_manifest_says(tmp_path, data, offset, size) -> None:
    made = vector(tmp_path / "v.puffin", data, [1, 2])
    false = replace(made, content_offset=offset, content_size_in_bytes=size)
    with pytest.raises(CorruptTableError) as raised:
        remaining(data, false)
    assert raised.value.location == made.location


def test_a_vector_of_more_positions_than_memory_holds(tmp_path, data) -> None:
    everything = deletion_vector.BitMap64()
    everything.add_range(0, 1 << 33)
    everything.run_optimize()
    path = tmp_path / "v.puffin"
    content = deletion_vector.MAGIC + bytes(everything.serialize())
    blob = struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    path.write_bytes(blob)
    made = DeleteFile(
        Content.POSITION_DELETES,
        str(path),
        "PUFFIN",
        len(blob),
        1 << 33,
        referenced_data_file=data,
        content_offset=0,
        content_size_in_bytes=len(blob),
    )
    with pytest.raises(UnsupportedFeatureError, match=f"{path}: .* marks 8,589,934,592 rows"):
        remaining(data, made)


def positions(path, columns: dict[str, Any], write=write_parquet) -> DeleteFile:
    ids = {"file_path": PATH_ID, "pos": POS_ID}
    arrays = list(columns.values())
    fields = [field(name, array.type, ids.get(name)) for name, array in columns.items()]
    location = write(path, pa.table(arrays, schema=pa.schema(fields)))
    kind = "PARQUET" if write is write_parquet else "ORC"
    return DeleteFile(Content.POSITION_DELETES, location, kind, 1, len(arrays[0]))


@pytest.mark.parametrize("write", [write_parquet, write_orc])
def test_positions_that_no_row_has_delete_nothing(tmp_path, data, write) -> None:
    found = pa.array([-(1 << 63), -1, 3, 20, (1 << 63) - 1], pa.int64())
    made = positions(tmp_path / "p", {"file_path": pa.array([data] * 5), "pos": found}, write)
    assert remaining(data, made) == [*range(3), *range(4, 20)]


FALSE_POSITIONS: dict[str, Any] = {
    "huge": lambda at: {"file_path": [at], "pos": pa.array([1 << 63], pa.uint64())},
    "null path": lambda at: {"file_path": [at, None], "pos": pa.array([1, 2], pa.int64())},
    "null position": lambda at: {"file_path": [at] * 2, "pos": pa.array([1, None], pa.int64())},
    "no path": lambda at: {"other": [at], "pos": ONE},
    "no position": lambda at: {"file_path": [at], "other": ONE},
    "text position": lambda at: {"file_path": [at], "pos": pa.array(["1"])},
    "number path": lambda _: {
        "file_path": pa.array([1], pa.int64()),
        "pos": pa.array([1], pa.int64()),
    },
    "bytes path": lambda _: {"file_path": pa.array([b"\xff"]), "pos": ONE},
    "float position": lambda at: {"file_path": [at], "pos": pa.array([1.5])},
    "struct position": lambda at: {"file_path": [at], "pos": pa.array([{"a": 1}])},
    "list path": lambda at: {"file_path": pa.array([[at]]), "pos": ONE},
    "nothing": lambda at: {"other": [at]},
}


@pytest.mark.parametrize("limit", [0, 1 << 30], ids=["read by file", "read whole"])
@pytest.mark.parametrize("kind", FALSE_POSITIONS)
def test_a_false_position_delete_file_is_named(tmp_path, data, kind, limit, monkeypatch) -> None:
    monkeypatch.setattr(deletes_module, "WHOLE_FILE_LIMIT_IN_BYTES", limit)
    columns = {
        name: pa.array(held) if isinstance(held, list) else held
        for name, held in FALSE_POSITIONS[kind](data).items()
    }
    made = positions(tmp_path / "p", columns)
    with pytest.raises(CorruptTableError) as raised:
        remaining(data, made)
    assert raised.value.location == made.location


@pytest.mark.parametrize(
    ("ids", "held"),
    [
        ((), field("k", pa.int64(), 1)),
        ((9,), field("k", pa.int64(), 1)),
        ((1, 9), field("k", pa.int64(), 1)),
        ((-1,), field("k", pa.int64(), 1)),
        ((1,), field("k", pa.string(), 1)),
        ((1,), field("k", pa.list_(pa.int64()), 1)),
        ((1,), field("k", pa.struct([("a", pa.int64())]), 1)),
        ((2,), field("c", pa.binary(), 2)),
        ((7,), field("l", pa.list_(pa.int64()), 7)),
        ((7,), field("m", pa.map_(pa.string(), pa.int64()), 7)),
    ],
)
def test_a_false_equality_delete_file_is_named(tmp_path, data, ids, held) -> None:
    values = {"list": [1], "struct": {"a": 1}, "map": [("a", 1)], "binary": b"\xff", "string": "x"}
    value = next((one for name, one in values.items() if str(held.type).startswith(name)), 1)
    path = write_parquet(
        tmp_path / "e.parquet", pa.table([pa.array([value], held.type)], schema=pa.schema([held]))
    )
    made = DeleteFile(Content.EQUALITY_DELETES, path, "PARQUET", 1, 1, equality_ids=ids)
    with pytest.raises(CorruptTableError) as raised:
        remaining(data, made)
    assert raised.value.location == made.location


def test_an_equality_delete_file_of_fewer_keys_than_counted(tmp_path, data) -> None:
    keys = pa.table({"k": ONE}, schema=pa.schema([TABLE.arrow.field("k")]))
    made = equality_deletes(tmp_path / "keys.parquet", keys, [1])
    assert 1 not in remaining(data, made)
    deletes_module.clear_caches()
    write_parquet(tmp_path / "keys.parquet", keys.slice(0, 0))
    with pytest.raises(CorruptTableError) as raised:
        remaining(data, made)
    assert raised.value.location == made.location
