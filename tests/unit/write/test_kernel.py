from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import InvalidStatementError, SchemaMismatchError, StorageError
from rowlake.model.partition import SortField, SortOrder
from rowlake.storage.files import Storage
from rowlake.write.context import equality_delete_context
from rowlake.write.kernel import remove_written, write_batches
from tests.write_helpers import column, context_of, spec_of, view_of, write

FIELDS = [column("n", pa.int64(), 1, required=True), column("s", pa.string(), 2)]


def some_rows(count: int) -> pa.Table:
    letters = random.Random(7)
    return pa.table(
        {"n": list(range(count)), "s": [f"{letters.getrandbits(64):x}" for _ in range(count)]}
    )


def files_in(folder) -> list[str]:
    return sorted(str(each) for each in folder.rglob("*") if each.is_file())


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("chunk", [700, 40_000])
def test_files_roll_near_the_target_size(tmp_path, file_format, chunk):
    properties = {"write.target-file-size-bytes": "100000", "write.format.default": file_format}
    view = view_of(tmp_path, FIELDS, properties=properties)
    written = write(context_of(view), some_rows(40_000).to_batches(max_chunksize=chunk))
    sizes = written["file_size_in_bytes"].to_pylist()
    assert sum(written["record_count"].to_pylist()) == 40_000
    assert len(sizes) > 3
    assert all(70_000 < size < 140_000 for size in sizes[:-1]), sizes
    assert len(set(written["location"].to_pylist())) == len(sizes)


def test_row_groups_gather_small_batches(tmp_path):
    rows = some_rows(50_000)
    written = write(context_of(view_of(tmp_path, FIELDS)), rows.to_batches(max_chunksize=100))
    (location,) = written["location"].to_pylist()
    assert pq.read_metadata(location).num_row_groups == 1
    assert pq.read_table(location).to_pydict() == rows.to_pydict()


def test_row_groups_keep_to_their_size(tmp_path):
    properties = {"write.parquet.row-group-size-bytes": "200000"}
    view = view_of(tmp_path, FIELDS, properties=properties)
    written = write(context_of(view), some_rows(50_000))
    (row,) = written.to_pylist()
    groups = pq.read_metadata(row["location"]).num_row_groups
    assert 5 <= groups <= 12
    assert len(row["split_offsets"]) == groups
    assert row["split_offsets"] == sorted(row["split_offsets"])


def test_a_failing_input_leaves_no_files(tmp_path):
    def batches():
        yield from some_rows(100).to_batches()
        raise RuntimeError("source broke")

    spec = spec_of((1, "bucket[4]", "n"))
    context = context_of(view_of(tmp_path, FIELDS, spec=spec), buffer_size_in_bytes=1)
    with pytest.raises(RuntimeError, match="source broke"):
        write(context, batches())
    assert files_in(tmp_path) == []


def test_a_null_in_a_required_column_leaves_no_files(tmp_path):
    properties = {"write.target-file-size-bytes": "1000"}
    good = some_rows(5000).to_batches()
    bad = pa.record_batch({"n": pa.array([None], pa.int64()), "s": ["x"]})
    with pytest.raises(SchemaMismatchError, match="required column n"):
        write(context_of(view_of(tmp_path, FIELDS, properties=properties)), [*good, bad])
    assert files_in(tmp_path) == []


def test_a_kernel_closed_early_removes_its_files(tmp_path):
    seen = []

    def batches():
        yield from some_rows(5000).to_batches()
        seen.extend(files_in(tmp_path))
        raise GeneratorExit

    properties = {"write.target-file-size-bytes": "1000"}
    context = context_of(view_of(tmp_path, FIELDS, properties=properties))
    kernel = write_batches(context, batches(), enough_rows=1)
    with pytest.raises(GeneratorExit):
        next(kernel)
    assert seen
    assert files_in(tmp_path) == []


def test_a_storage_that_refuses_is_named(tmp_path):
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="data"):
        write(context_of(view_of(tmp_path, FIELDS)), some_rows(10))


def test_two_attempts_of_one_task_write_different_files(tmp_path):
    context = context_of(view_of(tmp_path, FIELDS))
    first, second = (write(context, some_rows(10))["location"][0].as_py() for _ in range(2))
    assert first != second
    assert "-op-00001.parquet" in first


def test_written_files_can_be_removed(tmp_path):
    written = write(context_of(view_of(tmp_path, FIELDS)), some_rows(10))
    assert remove_written(written, Storage({})) == []
    assert files_in(tmp_path) == []


def test_a_context_is_picklable(tmp_path):
    spec = spec_of((1, "bucket[4]", "n"))
    context = context_of(view_of(tmp_path, FIELDS, spec=spec))
    assert pickle.loads(pickle.dumps(context)) == context


@pytest.mark.parametrize("buffer", [2_000, 10**9])
def test_a_local_sort_makes_every_file_sorted(tmp_path, buffer):
    order = SortOrder(4, (SortField(2, "identity", ascending=False, nulls_first=False),))
    spec = spec_of((1, "bucket[2]", "n"))
    view = view_of(tmp_path, FIELDS, spec=spec, order=order)
    rows = some_rows(500).to_batches(max_chunksize=50)
    written = write(context_of(view, sort="local", buffer_size_in_bytes=buffer), rows)
    for row in written.to_pylist():
        texts = pq.read_table(row["location"])["s"].to_pylist()
        assert texts == sorted(texts, reverse=True)
        assert row["sort_order_id"] == 4
    assert len(written) == 2 if buffer > 2_000 else len(written) > 2
    assert sum(written["record_count"].to_pylist()) == 500


def test_a_spec_that_the_table_does_not_have_is_refused(tmp_path):
    with pytest.raises(InvalidStatementError, match="no partition spec 7, only 0"):
        context_of(view_of(tmp_path, FIELDS), spec_id=7)


def test_equality_deletes_hold_their_columns_alone(tmp_path):
    view = view_of(tmp_path, FIELDS)
    context = equality_delete_context(view, (1,), operation_id="op")
    (row,) = write(context, pa.table({"n": [1, 2]})).to_pylist()
    assert (row["content"], row["equality_ids"]) == (2, [1])
    assert pq.read_table(row["location"]).to_pydict() == {"n": [1, 2]}
