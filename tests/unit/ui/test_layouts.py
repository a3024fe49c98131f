"""The numbers behind the pictures of files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rowlake.maintain.autopilot.survey import survey
from rowlake.ui.layouts import (
    RANGES_SHOWN,
    columns_with_order,
    default_column,
    deletes_of,
    overlap_of,
    partitions_of,
    sizes_of,
)
from tests.lakes import SALES, sales
from tests.metadata_files import add_files, numbers

MB = 1_000_000


def test_sizes_are_binned_and_told_by_the_target(lake) -> None:
    table = add_files(numbers(lake, "n"), [10_000] * 3 + [20 * MB] * 2 + [500 * MB, 2_000 * MB])
    found = sizes_of(survey(table.handle))
    assert [(each.label, each.files, each.kind) for each in found.bins] == [
        ("up to 64 kB", 3, "small"),
        ("64 kB – 256 kB", 0, "small"),
        ("256 kB – 1 MB", 0, "small"),
        ("1 MB – 4 MB", 0, "small"),
        ("4 MB – 16 MB", 0, "small"),
        ("16 MB – 64 MB", 2, "small"),
        ("64 MB – 256 MB", 0, "small"),
        ("256 MB – 1 GB", 1, "good"),
        ("1 GB and more", 1, "large"),
    ]
    assert (found.small, found.median) == (5, 20 * MB)


def test_partitions_are_sorted_by_size_and_skewed_by_the_median(lake) -> None:
    stores = [1, 1, 2, 3]
    table = add_files(
        numbers(lake, "n", partition_by="store"), [5 * MB, 5 * MB, MB, 2 * MB], stores=stores
    )
    found = partitions_of(survey(table.handle))
    assert [(each.name, each.files, each.skew) for each in found.shown] == [
        ("store=1", 2, 5.0),
        ("store=3", 1, 1.0),
        ("store=2", 1, 0.5),
    ]
    assert (found.count, found.median, found.largest_skew) == (3, 2 * MB, 5.0)
    assert [each.name for each in partitions_of(survey(table.handle), 2, 5).shown] == ["store=2"]


def test_deletes_per_file_and_the_files_that_lost_most(lake) -> None:
    table = lake.create_table("ns.d", SALES, properties={"format-version": "3"})
    table.append(sales(10))
    table.append(sales(10, 10))
    table.delete("id < 4", mode="merge-on-read")
    found = deletes_of(survey(table.handle))
    assert found.bins[:2] == (("none", 1), ("1", 1))
    assert [(each.deletes, each.deleted, each.share) for each in found.worst] == [(1, 4, 0.4)]
    assert found.worst[0].location.endswith(".parquet")


def test_ranges_that_follow_each_other_overlap_nowhere(lake) -> None:
    table = add_files(numbers(lake, "n"), [MB] * 4, lows=[0, 100, 200, 300], width=90)
    found = overlap_of(survey(table.handle), 1)
    assert (found.files, found.unknown, found.depth, found.partition) == (4, 0, 1.0, "")
    assert found.counts.max() == 1
    assert (found.whole, found.zoomed) == (("0", "390"), ("0", "390"))
    assert np.all(np.diff(found.starts) > 0)
    assert (found.starts[0], found.ends[-1]) == (0.0, 1.0)


def test_ranges_are_those_of_the_fullest_partition(lake) -> None:
    table = add_files(
        numbers(lake, "n", partition_by="store"),
        [MB] * 5,
        stores=[7, 7, 7, 8, 8],
        lows=[0, 4, 8, 1_000, 2_000],
        width=10,
    )
    found = overlap_of(survey(table.handle), 1)
    assert (found.partition, found.files, found.whole) == ("store=7", 3, ("0", "18"))
    assert found.counts.max() == 3  # 0–10, 4–14 and 8–18 share the value 9


def test_of_many_ranges_those_around_the_deepest_value_are_shown(lake) -> None:
    lows = [*range(0, 30_000, 10), *([15_000] * 40)]
    table = add_files(numbers(lake, "n"), [MB] * len(lows), lows=lows, width=8)
    found = overlap_of(survey(table.handle), 1)
    assert len(found.starts) == RANGES_SHOWN
    low, high = map(int, found.zoomed)
    assert low < 15_000 < high and high - low < 1_500


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("id", ("0", "19")),
        ("sold_on", ("2024-01-01", "2024-01-20")),
        ("note", ("note 1", "note 9")),
    ],
)
def test_bounds_are_told_as_people_read_them(lake, column: str, expected: tuple[str, str]) -> None:
    table = lake.create_table("ns.b", SALES)
    table.append(sales(20))
    seen = survey(table.handle)
    number = {name: number for number, name in columns_with_order(seen)}[column]
    assert overlap_of(seen, number).whole == expected


def test_the_column_of_the_picture_is_the_sort_key_then_the_keys_then_the_first(lake) -> None:
    plain = add_files(numbers(lake, "n", partition_by="store"), [MB], stores=[1])
    assert default_column(survey(plain.handle)) == 1
    empty = numbers(lake, "e")
    assert default_column(survey(empty.handle)) is None
    assert overlap_of(survey(empty.handle), 1) is None


def test_columns_without_bounds_have_no_picture(lake) -> None:
    schema = pa.schema([("l", pa.list_(pa.int32())), ("id", pa.int64())])
    table = lake.create_table("ns.l", schema)
    table.append(pa.table({"l": [[1]], "id": [1]}, schema=schema))
    seen = survey(table.handle)
    assert [name for _, name in columns_with_order(seen)] == ["id"]
    assert overlap_of(seen, 999) is None
