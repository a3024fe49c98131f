"""Splits, positions, metadata columns, batches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.model.predicate import Leaf, Op
from rowlake.model.task import (
    FILE_COLUMN_ID,
    LAST_UPDATED_COLUMN_ID,
    PARTITION_COLUMN_ID,
    POS_COLUMN_ID,
    ROW_ID_COLUMN_ID,
    SPEC_ID_COLUMN_ID,
    ScanTask,
)
from rowlake.scan import avro as avro_module
from rowlake.scan import output_schema, scan_kernel
from rowlake.scan.kernel import coalesced
from tests.scanning import (
    context,
    field,
    file_task,
    scan,
    scanned,
    schema,
    table_of,
    write_avro,
    write_orc,
    write_parquet,
)

TABLE = schema(field("k", pa.int64(), 1), field("s", pa.string(), 2))
ROWS = [{"k": index * 10, "s": "x" * (index % 50)} for index in range(5000)]
POS = field("_pos", pa.int64(), POS_COLUMN_ID)


def make(tmp_path, file_format: str, monkeypatch) -> str:
    path = tmp_path / "data"
    if file_format == "PARQUET":
        return write_parquet(path, table_of(TABLE, ROWS), row_group_size=700)
    if file_format == "ORC":
        return write_orc(path, table_of(TABLE, ROWS), stripe_size=1024, batch_size=64)
    monkeypatch.setattr(avro_module, "_UNIT_BYTES", 10_000)
    fields = [
        {"name": "k", "type": "long", "field-id": 1},
        {"name": "s", "type": "string", "field-id": 2},
    ]
    avro = {"type": "record", "name": "t", "fields": fields}
    return write_avro(path, avro, ROWS, sync_interval=2000)


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_splits_cover_each_row_once_with_absolute_positions(
    tmp_path, monkeypatch, file_format, pieces
) -> None:
    path = make(tmp_path, file_format, monkeypatch)
    size = file_task(path).length
    step = size // pieces + 1
    found, parts = [], 0
    for start in range(0, size, step):
        task = file_task(path, file_format, start=start, length=step)
        rows = scan(TABLE, task, projection=schema(*TABLE.arrow, POS), batch_rows=300)
        found += rows
        parts += bool(rows)
    assert [row["_pos"] for row in found] == list(range(5000))
    assert [row["k"] for row in found] == [row["k"] for row in ROWS]
    assert parts > 1 or pieces == 1


PARTITION = pa.struct([field("p", pa.string(), 1000), field("b", pa.int32(), 1001)])


def test_metadata_columns(tmp_path) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(TABLE, ROWS[:3]))
    projection = schema(
        field("_file", pa.string(), FILE_COLUMN_ID),
        POS,
        TABLE.arrow.field("k"),
        field("_spec_id", pa.int32(), SPEC_ID_COLUMN_ID),
        field("_partition", pa.struct([]), PARTITION_COLUMN_ID),
        field("_row_id", pa.int64(), ROW_ID_COLUMN_ID),
        field("_last_updated_sequence_number", pa.int64(), LAST_UPDATED_COLUMN_ID),
    )
    task = file_task(path, spec_id=4, partition={1001: 7}, first_row_id=100, data_sequence_number=9)
    above = Leaf(("k",), Op.GT, (5,), 1)
    found = scanned(TABLE, task, projection=projection, partition_type=PARTITION, predicate=above)
    made = context(TABLE, projection, partition_type=PARTITION)
    assert found.schema.equals(output_schema(made), check_metadata=True)
    assert found.to_pylist()[1] == {
        "_file": path,
        "_pos": 2,
        "k": 20,
        "_spec_id": 4,
        "_partition": {"p": None, "b": 7},
        "_row_id": 102,
        "_last_updated_sequence_number": 9,
    }


@pytest.mark.spec("Row Lineage: stored values win, null is inherited")
def test_stored_lineage_wins_and_null_is_inherited(tmp_path) -> None:
    lineage = (
        field("_row_id", pa.int64(), ROW_ID_COLUMN_ID),
        field("_last_updated_sequence_number", pa.int64(), LAST_UPDATED_COLUMN_ID),
    )
    stored = schema(TABLE.arrow.field("k"), *lineage)
    rows = [
        {"k": 1, "_row_id": 7, "_last_updated_sequence_number": None},
        {"k": 2, "_row_id": None, "_last_updated_sequence_number": 3},
    ]
    path = write_parquet(tmp_path / "f.parquet", table_of(stored, rows))
    projection = schema(*lineage)
    task = file_task(path, first_row_id=50, data_sequence_number=8)
    assert scan(TABLE, task, projection=projection) == [
        {"_row_id": 7, "_last_updated_sequence_number": 8},
        {"_row_id": 51, "_last_updated_sequence_number": 3},
    ]
    before = file_task(path, first_row_id=None, data_sequence_number=8)
    assert scan(TABLE, before, projection=projection) == 2 * [
        {"_row_id": None, "_last_updated_sequence_number": None}
    ]


def test_filters_may_test_metadata_columns(tmp_path) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(TABLE, ROWS[:10]))
    where = Leaf(("_pos",), Op.IN, (2, 5), POS_COLUMN_ID)
    found = scan(TABLE, path, projection=schema(TABLE.arrow.field("k"), POS), predicate=where)
    assert found == [{"k": 20, "_pos": 2}, {"k": 50, "_pos": 5}]


def test_rows_without_columns_are_counted(tmp_path) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(TABLE, ROWS))
    task = ScanTask(context(TABLE, schema()), (file_task(path), file_task(path)))
    assert sum(batch.num_rows for batch in scan_kernel(task)) == 10_000


def test_small_files_come_out_in_few_batches(tmp_path) -> None:
    paths = [
        write_parquet(tmp_path / f"{index}.parquet", table_of(TABLE, ROWS[index : index + 3]))
        for index in range(40)
    ]
    task = ScanTask(context(TABLE), tuple(map(file_task, paths)))
    batches = list(scan_kernel(task))
    assert [batch.num_rows for batch in batches] == [120]


@pytest.mark.parametrize(
    "sizes", [[], [1], [100], [1, 1, 100, 1], [49, 49, 49], [250, 3], [50, 60]]
)
def test_coalescing_keeps_rows_in_order_and_batches_bounded(sizes) -> None:
    start, batches = 0, []
    for size in sizes:
        batches.append(pa.record_batch({"a": list(range(start, start + size))}))
        start += size
    found = list(coalesced(batches, 100))
    assert [value for batch in found for value in batch["a"].to_pylist()] == list(range(start))
    assert all(batch.num_rows <= 100 for batch in found)


def test_tasks_survive_pickling(tmp_path) -> None:
    import pickle

    path = write_parquet(tmp_path / "f.parquet", table_of(TABLE, ROWS[:3]))
    task = ScanTask(context(TABLE), (file_task(path),))
    copy = pickle.loads(pickle.dumps(task))
    assert pa.Table.from_batches(scan_kernel(copy)).to_pylist() == ROWS[:3]


def test_empty_files_and_files_without_row_groups(tmp_path) -> None:
    with pq.ParquetWriter(tmp_path / "none.parquet", TABLE.arrow):
        pass
    empty = write_parquet(tmp_path / "empty.parquet", table_of(TABLE, []))
    where = Leaf(("k",), Op.GT, (1,), 1)
    assert scan(TABLE, str(tmp_path / "none.parquet"), empty, predicate=where) == []
