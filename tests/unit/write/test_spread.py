from __future__ import annotations

import datetime
from collections import defaultdict
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import SchemaMismatchError
from rowlake.write.kernel import pieces, write_batches
from rowlake.write.spread import (
    FRAME_BYTES,
    KEY_COLUMN,
    KEYS,
    SPREAD,
    gathered_batches,
    key_number,
    spread_batches,
    write_spread,
)
from tests.write_helpers import column, context_of, spec_of, view_of

FIELDS = [
    column("n", pa.int64(), 1),
    column("day", pa.date32(), 2),
    column("text", pa.string(), 3),
    column("price", pa.decimal128(7, 2), 4),
]
BY_BUCKET_AND_MONTH = spec_of((1, "bucket[3]", "n_bucket"), (2, "month", "month"))


def some_rows(count):
    start = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "n": pa.array(range(count), pa.int64()),
            "day": [
                None if n % 11 == 0 else start + datetime.timedelta(days=n % 90)
                for n in range(count)
            ],
            "text": [f"text {n}" for n in range(count)],
            "price": pa.array([Decimal(n % 1000) for n in range(count)], pa.decimal128(7, 2)),
        }
    )


@pytest.fixture
def context(tmp_path):
    return context_of(view_of(tmp_path, FIELDS, spec=BY_BUCKET_AND_MONTH))


def spread(context, table, keys=KEYS, chunk=700):
    found = list(spread_batches(context, keys, iter(table.to_batches(max_chunksize=chunk))))
    assert all(batch.schema == SPREAD for batch in found)
    return found


def test_all_rows_come_out_again_and_a_partition_has_one_key(context):
    table = some_rows(5000)
    keys = defaultdict(set)
    numbers = []
    for part in (table.slice(0, 1700), table.slice(1700)):  # as two tasks would
        for batch in spread(context, part):
            for row in range(len(batch)):
                one = batch.slice(row, 1)
                for rows in gathered_batches([one]):
                    numbers += rows["n"].to_pylist()
                    for written in write_batches(context, [rows]):
                        for partition in written["partition"].to_pylist():
                            keys[tuple(partition)].add(one[KEY_COLUMN][0].as_py())
    assert sorted(numbers) == list(range(5000))
    assert len(keys) == 12
    assert all(len(found) == 1 for found in keys.values())


@pytest.mark.parametrize("keys", [1, 2, 256])
def test_spread_rows_are_written_as_rows_are(context, keys):
    table = some_rows(5000)
    written = pa.Table.from_batches(list(write_spread(context, spread(context, table, keys))))
    plain = pa.Table.from_batches(list(write_batches(context, table.to_batches())))
    wanted = ["partition", "record_count", "null_value_counts", "lower_bounds", "upper_bounds"]

    def told(files):
        return sorted(files.select(wanted).to_pylist(), key=lambda row: str(row["partition"]))

    assert told(written) == told(plain)
    back = pa.concat_tables(pq.read_table(name) for name in written["location"].to_pylist())
    assert back.sort_by("n")["text"].to_pylist() == table["text"].to_pylist()


def test_frames_stay_small_however_many_rows_share_a_key(tmp_path):
    fields = [column("n", pa.int64(), 1), column("blob", pa.binary(), 2)]
    context = context_of(view_of(tmp_path, fields, spec=spec_of((1, "bucket[1]", "b"))))
    table = pa.table(
        {"n": list(range(4000)), "blob": [bytes([n % 256]) * 1024 for n in range(4000)]}
    )
    (batch,) = spread(context, table)
    frames = [batch.slice(row, 1) for row in range(len(batch))]
    sizes = [sum(rows.nbytes for rows in gathered_batches([one])) for one in frames]
    assert len(sizes) > 4000 * 1024 // FRAME_BYTES
    assert max(sizes) <= FRAME_BYTES * 1.1
    assert len(list(gathered_batches([batch]))) == 1


def test_rows_that_the_table_refuses_are_refused_before_they_travel(tmp_path):
    fields = [column("n", pa.int64(), 1, required=True)]
    context = context_of(view_of(tmp_path, fields, spec=spec_of((1, "bucket[2]", "b"))))
    with pytest.raises(SchemaMismatchError, match="required column n"):
        spread(context, pa.table({"n": pa.array([1, None], pa.int64())}))


def test_keys_differ_for_null_and_empty_values():
    some = {key_number(key, 1 << 16) for key in [(None,), (b"",), (None, None), (b"", None)]}
    assert len(some) == 4


def test_pieces_join_small_batches_and_keep_unlike_schemas_apart():
    small = [pa.record_batch({"n": [number]}) for number in range(10)]
    other = pa.record_batch({"m": [0]})
    large = pa.record_batch({"n": list(range(5))})
    found = list(pieces([*small[:3], large, *small[3:], other], enough_rows=5))
    assert [len(piece) for piece in found] == [3, 5, 7, 1]
    assert [len(piece) for piece in pieces(small, size_in_bytes=24)] == [3, 3, 3, 1]
