"""Partition fields as texts: each form, and texts made to take long."""

from __future__ import annotations

import pytest

from rowlake.iceberg.layout import partition_by
from rowlake.model.partition import PartitionBy


@pytest.mark.parametrize(
    ("text", "path", "transform"),
    [
        ("a", ("a",), "identity"),
        (" days( ts ) ", ("ts",), "day"),
        ("bucket(16, id)", ("id",), "bucket[16]"),
        ("truncate(name , 4)", ("name",), "truncate[4]"),
        ("Bucket ( 8 ,s.`a, b`)", ("s", "a, b"), "bucket[8]"),
        ("truncate(`a, b`, 4)", ("a, b",), "truncate[4]"),
        ("years(`x(1)`)", ("x(1)",), "year"),
    ],
)
def test_a_text_is_a_column_or_a_transform_of_one(
    text: str, path: tuple[str, ...], transform: str
) -> None:
    assert partition_by(text) == PartitionBy(path, transform)


@pytest.mark.parametrize("text", ["a(" + " " * 50_000 + "1", "a(" + ",1" * 20_000 + "x"])
def test_a_long_text_that_is_not_closed_is_read_in_one_go(text: str) -> None:
    assert partition_by(text).transform == "identity"
