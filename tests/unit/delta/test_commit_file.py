"""Commits: the bytes that are written, and that a version has one writer whatever happens."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rowlake.delta.commit_file import (
    UncertainCommitError,
    commit_location,
    find_commit,
    serialized,
    token_of,
    validate_storage,
    write_commit,
)
from rowlake.delta.commit_info import CommitInfo, next_timestamp
from rowlake.errors import StorageError, UnsupportedFeatureError
from rowlake.storage.files import Storage

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"


def info(token, **more):
    return CommitInfo("WRITE", token, 5, **more).action()


def test_one_action_a_line_commit_info_first_and_no_null_fields():
    add = {"path": "a", "partitionValues": {"p": None}, "stats": None, "size": 1}
    txn = {"txn": {"appId": "é\n\u2028", "version": 1}}
    found = serialized([{"add": add}, txn, {"commitInfo": {"timestamp": 1}}])
    assert found.decode() == (
        '{"commitInfo":{"timestamp":1}}\n'
        '{"add":{"path":"a","partitionValues":{"p":null},"size":1}}\n'
        '{"txn":{"appId":"é\\n\u2028","version":1}}\n'
    )


def test_a_number_that_json_does_not_have_is_not_written():
    with pytest.raises(ValueError, match="JSON"):
        serialized([{"add": {"size": float("nan")}}])


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*/_delta_log/*[0-9].json")), ids=lambda one: one.parts[-3]
)
def test_actions_of_delta_on_spark_serialize_to_its_bytes(path):
    text = path.read_bytes()
    assert serialized([json.loads(line) for line in text.splitlines()]) == text


def test_commit_info_has_the_fields_of_delta_on_spark_in_their_order():
    theirs = GOLDEN / "in_commit_times" / "_delta_log" / f"{3:020d}.json"
    expected = json.loads(theirs.read_text().splitlines()[0])["commitInfo"]
    made = CommitInfo(
        expected["operation"],
        expected["txnId"],
        expected["timestamp"],
        parameters={"predicate": ["(id#29509L = 2)"]},
        metrics={name: int(one) for name, one in expected["operationMetrics"].items()},
        read_version=expected["readVersion"],
        in_commit_timestamp=expected["inCommitTimestamp"],
    ).action()["commitInfo"]
    assert list(made) == list(expected)
    assert {**made, "engineInfo": ""} == {**expected, "engineInfo": ""}


def test_commit_info_keeps_flags_nulls_and_what_users_say():
    made = CommitInfo(
        "OPTIMIZE",
        "t",
        1,
        parameters={"auto": False, "description": None, "zOrderBy": ["a"]},
        user_metadata="why",
        tags={"delta.rowTracking.preserved": "true"},
    ).action()["commitInfo"]
    expected = {"auto": False, "description": None, "zOrderBy": '["a"]'}
    assert made["operationParameters"] == expected
    assert made["userMetadata"] == "why"
    assert made["tags"] == {"delta.rowTracking.preserved": "true"}
    assert "readVersion" not in made


@pytest.mark.parametrize(("now", "previous", "expected"), [(9, None, 9), (9, 3, 9), (9, 9, 10)])
def test_in_commit_timestamps_only_rise(now, previous, expected):
    assert next_timestamp(now, previous) == expected


def test_the_second_commit_of_a_version_is_refused(tmp_path):
    assert write_commit(str(tmp_path), 0, [info("a")], Storage())
    assert not write_commit(str(tmp_path), 0, [info("b")], Storage())
    assert token_of(Path(commit_location(str(tmp_path), 0)).read_bytes()) == "a"


def test_of_many_writers_of_a_version_one_wins(tmp_path):
    def commit(number):
        return write_commit(str(tmp_path), 0, [info(str(number))], Storage())

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(commit, range(32)))
    assert sum(done) == 1
    content = Path(commit_location(str(tmp_path), 0)).read_bytes()
    assert token_of(content) == str(done.index(True))


class Lossy(Storage):
    """Creates a file, or does not, and loses the answer."""

    def __init__(self, *, is_written, cause="no answer"):
        super().__init__()
        self.is_written, self.cause = is_written, cause

    def read(self, location):
        return super().read(location.replace("s3://bucket", "/nowhere"))

    def create(self, location, data):
        if self.is_written:
            super().create(location, data)
        raise StorageError(location, self.cause)


def test_a_commit_whose_answer_was_lost_is_found_to_have_landed(tmp_path):
    assert write_commit(str(tmp_path), 0, [info("a")], Lossy(is_written=True))


def test_a_commit_that_another_made_meanwhile_is_lost(tmp_path):
    assert write_commit(str(tmp_path), 0, [info("other")], Storage())
    assert not write_commit(str(tmp_path), 0, [info("a")], Lossy(is_written=False))


def test_a_commit_that_a_local_disk_refused_raises_what_storage_raised(tmp_path):
    with pytest.raises(StorageError, match="no answer") as raised:
        write_commit(str(tmp_path), 0, [info("a")], Lossy(is_written=False))
    assert not isinstance(raised.value, UncertainCommitError)
    assert find_commit(str(tmp_path), "a", -1, Storage()) is None


@pytest.mark.parametrize(("cause", "is_known"), [("no answer", False), ("permission denied", True)])
def test_a_commit_to_an_object_store_is_of_unknown_outcome_unless_it_was_refused(cause, is_known):
    with pytest.raises(StorageError, match=cause) as raised:
        write_commit("s3://bucket/t", 0, [info("a")], Lossy(is_written=False, cause=cause))
    assert isinstance(raised.value, UncertainCommitError) != is_known


def test_commits_are_found_by_their_token(tmp_path):
    for version, token in enumerate("abc"):
        write_commit(str(tmp_path), version, [info(token)], Storage())
    assert find_commit(str(tmp_path), "c", -1, Storage()) == 2
    assert find_commit(str(tmp_path), "c", 1, Storage()) == 2
    assert find_commit(str(tmp_path), "a", 0, Storage()) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"no json\n", b'{"commitInfo":5}\n', b'{"commitInfo":{}}\n', b'["commitInfo"]\n'],
)
def test_commits_of_others_may_have_no_token(content):
    assert token_of(content) is None


def test_storage_without_put_if_absent_is_refused_before_anything_is_written():
    with pytest.raises(UnsupportedFeatureError, match="put-if-absent"):
        validate_storage("gs://bucket/t", Storage())
    with pytest.raises(UnsupportedFeatureError, match="put-if-absent"):
        write_commit("gs://bucket/t", 0, [info("a")], Storage())


def test_local_storage_can_hold_commits(tmp_path):
    validate_storage(str(tmp_path), Storage())
    assert not list(tmp_path.iterdir())
