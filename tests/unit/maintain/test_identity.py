"""When two locations name one file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError
from rowlake.maintain.cleanup.identity import compare, equality, identified

pytestmark = pytest.mark.delta


def look(actual: list[str], known: list[str], **equal: dict[str, str]) -> tuple[list, list, set]:
    rules = equality(equal.get("schemes"), equal.get("authorities"))
    found = compare(
        identified(pa.array(actual, pa.string()), rules),
        identified(pa.chunked_array([known], pa.large_string()), rules),
    )
    return found.is_known.tolist(), found.is_mismatched.tolist(), set(found.conflicts)


@pytest.mark.parametrize(
    ("actual", "known"),
    [
        ("/a/b", "/a/b"),
        ("/a/b", "file:/a/b"),
        ("/a/b", "file:///a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "file:/a/b"),
        ("FILE:/a/b", "file:/a/b"),
        ("s3://b/k", "s3a://b/k"),
        ("s3n://b/k", "s3a://b/k"),
        ("s3://B/k", "s3://b/k"),
        ("s3://b//k/", "s3://b/k"),
        ("s3://b/x/../k", "s3://b/./k"),
        ("s3://b/k", "/k"),
        ("abfss://c@host/k", "abfss://c@host/k"),
        ("/a b/é%20#?=", "file:/a b/é%20#?="),
        ("hdfs://nn:8020/k", "hdfs://nn:8020/k"),
    ],
)
def test_locations_of_one_file_are_equal(actual: str, known: str) -> None:
    assert look([actual], [known]) == ([True], [False], set())


@pytest.mark.parametrize(
    ("actual", "known"),
    [
        ("/a/b", "/a/B"),
        ("/a%20b", "/a b"),
        ("s3://b/k", "s3://b/k2"),
        ("s3://b/k/x", "s3://b/k"),
        ("/\u00e9", "/e\u0301"),
    ],
)
def test_other_paths_are_other_files(actual: str, known: str) -> None:
    assert look([actual], [known]) == ([False], [False], set())


def test_a_file_with_another_prefix_is_neither_known_nor_an_orphan() -> None:
    known, mismatched, conflicts = look(
        ["s3://one/k", "gs://two/k", "s3://two/k", "s3://two/other"], ["s3://two/k"]
    )
    assert known == [False, False, True, False]
    assert mismatched == [True, True, False, False]
    assert conflicts == {("two", "one"), ("s3", "gs")}


def test_a_file_that_is_named_twice_is_known_by_the_name_that_fits() -> None:
    assert look(["s3://b/k"], ["gs://b/k", "s3a://b/k"]) == ([True], [False], set())


def test_schemes_and_authorities_may_be_said_to_be_equal() -> None:
    equal = {"schemes": {"oss, cos": "s3"}, "authorities": {"ns1,ns2": "ns"}}
    assert look(["cos://ns1/k"], ["s3a://ns2/k"], **equal) == ([True], [False], set())


def test_equal_schemes_take_text_only() -> None:
    with pytest.raises(InvalidStatementError, match="equal_schemes"):
        equality({"a": 1})  # type: ignore[dict-item]


def test_nothing_is_in_nothing() -> None:
    assert look([], ["/a"]) == ([], [], set())
    assert look(["/a"], []) == ([False], [False], set())
