"""Which position delete files a call selects by its options, counted as Iceberg counts them."""

from __future__ import annotations

import pytest

from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, make_lake, sales


@pytest.fixture
def table(tmp_path):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "file"}
        made = lake.create_table("shop.sales", SALES, properties=properties)
        for number in range(6):
            made.append(sales(100, 100 * number))
        made.delete(Leaf(("id",), Op.IN, tuple(range(7, 600, 100))), mode="merge-on-read")
        yield made


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 0),  # each is the only one of its data file
        ({"min-input-files": "6"}, 6),
        ({"min-input-files": "7"}, 0),
        ({"min-file-size-bytes": "1"}, 0),
        ({"min-file-size-bytes": "1", "max-file-size-bytes": "70000000"}, 0),
        ({"rewrite-all": "true"}, 6),
        ({"rewrite-all": "true", "min-file-size-bytes": "1"}, 6),
    ],
)
def test_thresholds_select_files_from_which_nothing_is_gained(table, options, count):
    rows = table.arrow().num_rows
    report = table.rewrite_position_delete_files(options=options)
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (count, count)
    assert table.arrow().num_rows == rows
