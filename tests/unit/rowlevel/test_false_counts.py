"""Counts and sizes in manifests that are not those of the files: rows stay right all the same."""

from __future__ import annotations

import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, rows_of, sales
from tests.manifests import change_entries

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"
HUGE = 1 << 60


@pytest.fixture(params=["copy-on-write", "merge-on-read", "auto"])
def table(tmp_path, request):
    modes = {f"write.{kind}.mode": request.param for kind in ("delete", "update", "merge")}
    with connect(str(tmp_path)) as lake:
        lake.create_namespace("shop")
        made = lake.create_table(NAME, SALES, properties={} if request.param == "auto" else modes)
        made.append(sales(100))
        yield made


@pytest.mark.parametrize("count", [-1, 0, 1, 99, 101, HUGE])
def test_a_delete_of_one_row_keeps_the_others(table, count) -> None:
    change_entries(table, lambda file: file.update(record_count=count))
    table.delete("note = 'note 3'")
    assert rows_of(table.arrow()) == [row for row in rows_of(sales(100)) if row[0] != 3]


def test_a_count_that_cannot_be_is_refused(table) -> None:
    change_entries(table, lambda file: file.update(record_count=-HUGE))
    with pytest.raises(CorruptTableError, match=f"record_count -{HUGE}"):
        table.delete("note = 'note 3'")


@pytest.mark.parametrize("size", [-5, 0, 1, 300])
def test_a_false_size_loses_no_row(table, size) -> None:
    change_entries(table, lambda file: file.update(file_size_in_bytes=size))
    assert rows_of(table.arrow()) == rows_of(sales(100))
    table.delete("note = 'note 3'")
    assert table.arrow().num_rows == 99


@pytest.mark.parametrize("count", [-1, 0, 1, HUGE])
def test_a_filter_finds_rows_of_a_file_that_is_said_to_be_empty(table, count) -> None:
    change_entries(table, lambda file: file.update(record_count=count))
    assert table.arrow(where=Leaf(("id",), Op.EQ, (3,)))["id"].to_pylist() == [3]
