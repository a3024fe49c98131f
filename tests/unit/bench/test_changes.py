import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench import data
from bench.changes import (
    BATCH,
    MICRO_BATCH,
    NO_STATIC_PREDICATE,
    SET_COLUMNS,
    STREAMING,
    bucket_of,
    source_rows,
)

ROWS, BUCKETS = 40_000, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return data.store_sales(ROWS, tmp_path_factory.mktemp("data"))


def source(folder, workload, number=0):
    return source_rows(folder, ROWS, BUCKETS, workload, number)


def by_bucket(rows):
    return np.bincount(bucket_of(rows["ss_ticket_number"].to_numpy(), BUCKETS), minlength=BUCKETS)


def test_streaming_touches_every_bucket_alike(folder):
    rows = source(folder, STREAMING)
    assert rows.num_rows == 800
    assert set(by_bucket(rows)) == {50}
    old = pc.less(rows["ss_ticket_number"], ROWS // 10)
    assert pc.sum(old).as_py() == 400


def test_a_micro_batch_is_one_percent_and_640_new_rows(folder):
    rows = source(folder, MICRO_BATCH)
    assert abs(rows.num_rows - 640 - ROWS // 100) <= BUCKETS
    assert len(set(rows["ss_ticket_number"].to_pylist())) > 640


def test_a_batch_is_half_of_two_buckets(folder):
    counts = by_bucket(source(folder, BATCH))
    total = by_bucket(pq.read_table(folder))
    touched = np.flatnonzero(counts)
    assert len(touched) == 2
    assert np.allclose(counts[touched] * 2, total[touched], atol=1)


def test_the_case_without_a_static_predicate_touches_four_buckets(folder):
    assert np.count_nonzero(by_bucket(source(folder, NO_STATIC_PREDICATE))) == 4


def test_updated_rows_differ_from_the_table_in_the_set_columns_only(folder):
    rows = source(folder, NO_STATIC_PREDICATE)
    keys = ["ss_ticket_number", "ss_item_sk"]
    others = [name for name in rows.column_names if name not in SET_COLUMNS]
    joined = rows.join(pq.read_table(folder), keys, right_suffix="_old", join_type="inner")
    assert joined.num_rows == rows.num_rows
    for name in others:
        if name not in keys:
            assert joined[name].equals(joined[f"{name}_old"])
    assert not joined["ss_updated"].equals(joined["ss_updated_old"])


def test_rounds_differ_and_a_round_is_always_the_same(folder):
    assert source(folder, STREAMING, 1).equals(source(folder, STREAMING, 1))
    first, second = (
        set(source(folder, STREAMING, n)["ss_ticket_number"].to_pylist()) for n in (0, 1)
    )
    assert max(first) < max(second)
    assert not {t for t in first if t >= ROWS} & {t for t in second if t >= ROWS}
