"""Source rows are dealt out by partition only where equal keys lie in one partition."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from rowlake.dml.merge_by_key import _dealing
from rowlake.iceberg.metadata import view_of
from rowlake.rowlevel.task import Matching
from tests.lakes import make_lake

COLUMNS = pa.schema([("id", pa.int64()), ("d", pa.float64()), ("p", pa.string())])


@pytest.mark.parametrize(
    "layout, keys, null_safe, expected",
    [
        (["p"], ["p"], [False], (("p", "c0"),)),
        (["bucket(4, id)", "p"], ["id", "p"], [False, False], (("id", "c0"), ("p", "c1"))),
        (["bucket(4, id)", "p"], ["id"], [False], ()),
        (["p"], ["p"], [True], ()),
        (["d"], ["d"], [False], ()),
        (["p", "d"], ["p", "d"], [False, False], ()),
        ([], ["id"], [False], ()),
    ],
)
def test_rows_are_dealt_out_by_the_keys_that_name_partitions(
    tmp_path, layout, keys, null_safe, expected
):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", COLUMNS, partition_by=layout)
        merging = SimpleNamespace(target=SimpleNamespace(view=view_of(table.handle)))
    pairs = tuple((name, f"c{number}") for number, name in enumerate(keys))
    found = _dealing(merging, Matching(pairs, tuple(null_safe)))
    assert found.partition_keys == expected
    assert (found.spec is None) == (expected == ())
