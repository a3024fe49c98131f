"""Position delete files: written sorted, read per data file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.codecs import position_delete as pd
from tests.scanning import STORAGE


def positions(**by_file: list[int]) -> dict[str, np.ndarray]:
    return {path: np.array(found, np.int64) for path, found in by_file.items()}


def test_file_is_sorted_required_and_has_reserved_ids(tmp_path) -> None:
    path = str(tmp_path / "d" / "p.parquet")
    made = pd.write_positions(path, positions(b=[1], a=[2, 9]), STORAGE)
    found = pq.read_table(path)
    assert found.to_pylist() == [
        {"file_path": "a", "pos": 2},
        {"file_path": "a", "pos": 9},
        {"file_path": "b", "pos": 1},
    ]
    assert [one.nullable for one in found.schema] == [False, False]
    ids = [one.metadata[b"PARQUET:field_id"] for one in found.schema]
    assert ids == [b"2147483546", b"2147483545"]
    assert made.record_count == 3
    assert made.referenced_data_file is None
    assert made.lower_bounds == {pd.FILE_PATH_ID: b"a", pd.POS_ID: (1).to_bytes(8, "little")}
    assert made.upper_bounds == {pd.FILE_PATH_ID: b"b", pd.POS_ID: (9).to_bytes(8, "little")}
    assert made.file_size_in_bytes == (tmp_path / "d" / "p.parquet").stat().st_size


def test_deletes_of_one_file_say_so(tmp_path) -> None:
    made = pd.write_positions(str(tmp_path / "p.parquet"), positions(a=[0, 1]), STORAGE)
    assert made.referenced_data_file == "a"


def test_positions_are_grouped_sorted_and_distinct() -> None:
    batches = [
        (pa.array(["a", "b", "a", "b", "a"]), pa.array([5, 1, 3, 1, 3])),
        (pa.array([], pa.string()), pa.array([], pa.int64())),
        (pa.array(["b", "c"]).dictionary_encode(), pa.array([0, 7])),
    ]
    found = pd.positions_by_file(batches)
    assert {path: held.tolist() for path, held in found.items()} == {
        "a": [3, 5],
        "b": [0, 1],
        "c": [7],
    }
    assert all(held.dtype == np.int64 for held in found.values())


@pytest.mark.parametrize("odd", [-(2**63), -(2**62), -1, 2**63 - 1])
def test_odd_positions_leave_the_others_sorted(odd) -> None:
    batches = [(pa.array(["a", "a"]), pa.array([1, odd], pa.int64()))]
    assert pd.positions_by_file(batches)["a"].tolist() == sorted([1, odd])
