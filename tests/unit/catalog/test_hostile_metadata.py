"""Metadata files with content that means nothing: an error of ours, or right rows."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, RowlakeError, UnsupportedFeatureError
from rowlake.iceberg import metadata_files
from rowlake.iceberg.metadata_files import parse_metadata
from tests.in_time import failure_in_time
from tests.lakes import SALES, rows_of, sales
from tests.metadata_edits import edit_metadata, metadata_path

NAME = "shop.sales"
HUGE = 10**30


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path)) as opened:
        opened.create_namespace("shop")
        table = opened.create_table(NAME, SALES, partition_by=["store"])
        table.append(sales(8))
        table.append(sales(8, 8))
        yield opened


def changed(*path):
    """Return a change of the metadata: everything but the last is the way to a value."""
    *way, name, value = path

    def change(found):
        for part in way:
            found = found[part]
        found[name] = value

    return change


def twice(kind, **values):
    return lambda found: found[kind].append({**found[kind][0], **values})


def same_snapshot_id(found):
    found["snapshots"][0]["snapshot-id"] = found["snapshots"][1]["snapshot-id"]


def lost_head(found):
    found["current-snapshot-id"] = found["refs"]["main"]["snapshot-id"] = 5


CORRUPT = {
    "sequence numbers that run out": changed("last-sequence-number", 2**63 - 1),
    "a snapshot without a manifest list": changed("snapshots", -1, "manifest-list", ""),
    "an id of a column that is no int": changed("schemas", 0, "fields", 0, "id", 2**31),
    "current snapshot of another id than main": changed("current-snapshot-id", 77),
    "no current snapshot, but main": changed("current-snapshot-id", None),
    "main of another id": changed("refs", "main", "snapshot-id", 5),
    "current snapshot that is not there": lost_head,
    "no snapshots": changed("snapshots", []),
    "one snapshot id twice": same_snapshot_id,
    "two schemas of one id": twice("schemas", fields=[]),
    "two specs of one id": twice("partition-specs", fields=[]),
    "current snapshot beyond 64 bits": changed("current-snapshot-id", HUGE),
    "sequence number beyond 64 bits": changed("last-sequence-number", HUGE),
    "column id beyond 32 bits": changed("last-column-id", HUGE),
    "parent beyond 64 bits": changed("snapshots", 0, "parent-snapshot-id", HUGE),
    "time beyond all calendars": changed("snapshots", 0, "timestamp-ms", 2**60),
    "logged time beyond all calendars": changed("snapshot-log", 0, "timestamp-ms", HUGE),
    "properties that are a list": changed("properties", []),
    "properties that are a number": changed("properties", 7),
    "a location with a null character": changed("location", "a\0b"),
    "a fixed type of absurd length": changed(
        "schemas", 0, "fields", 1, "type", "fixed[99999999999]"
    ),
    "a fixed type of no length": changed("schemas", 0, "fields", 1, "type", "fixed[0]"),
}


@pytest.mark.parametrize("change", CORRUPT.values(), ids=CORRUPT.keys())
def test_metadata_that_means_nothing_is_refused_and_named(lake, change) -> None:
    path = edit_metadata(lake.table(NAME), change)
    for use in (lambda t: t.arrow(), lambda t: t.append(sales(1)), lambda t: t.inspect("history")):
        with pytest.raises(CorruptTableError) as raised:
            use(lake.table(NAME))
        assert raised.value.location == str(path)


READABLE = {
    "a ref to a snapshot that is gone": changed(
        "refs", "gone", {"snapshot-id": 5, "type": "branch"}
    ),
    "a schema id that no schema has": changed("snapshots", 1, "schema-id", 77),
    "an unknown operation": changed("snapshots", 1, "summary", {"operation": "mangle"}),
}


@pytest.mark.parametrize("change", READABLE.values(), ids=READABLE.keys())
def test_harm_beside_the_rows_ends_in_rows_or_an_error_of_ours(lake, change) -> None:
    edit_metadata(lake.table(NAME), change)
    try:
        found = rows_of(lake.table(NAME).arrow())
    except RowlakeError:
        return
    assert found == rows_of(sales(16))


def test_a_branch_without_its_snapshot_is_refused(lake) -> None:
    gone = {"snapshot-id": 5, "type": "branch"}
    edit_metadata(lake.table(NAME), changed("refs", "gone", gone))
    for use in (
        lambda t: t.arrow(ref="gone"),
        lambda t: t.append(sales(1), branch="gone"),
        lambda t: t.fast_forward("main", "gone"),
    ):
        with pytest.raises(RowlakeError):
            use(lake.table(NAME))


def each_others_parents(found):
    first, last = found["snapshots"]
    first["parent-snapshot-id"], last["parent-snapshot-id"] = (
        last["snapshot-id"],
        first["snapshot-id"],
    )


def own_parents(found):
    for one in found["snapshots"]:
        one["parent-snapshot-id"] = one["snapshot-id"]


USES = {
    "append": lambda t: t.append(sales(1)),
    "delete": lambda t: t.delete("id = 1"),
    "history": lambda t: t.history(),
    "health": lambda t: t.health(),
    "optimize": lambda t: t.optimize(),
    "rollback": lambda t: t.rollback_to(t.snapshots()[0].snapshot_id),
    "rollback to nothing": lambda t: t.rollback_to(5),
    "expire": lambda t: t.expire_snapshots(older_than=2**42, retain_last=1),
    "changes": lambda t: t.changes_arrow(),
    "fast_forward": lambda t: t.fast_forward("b", "main"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", [each_others_parents, own_parents])
def test_snapshots_in_a_circle_end_in_rows_or_an_error_of_ours(lake, change, use) -> None:
    lake.table(NAME).create_branch("b")
    edit_metadata(lake.table(NAME), change)
    raised = failure_in_time(lambda: USES[use](lake.table(NAME)), 30)
    assert raised is None or isinstance(raised, RowlakeError)
    if use not in ("append", "delete", "rollback"):
        assert rows_of(lake.table(NAME).arrow()) == rows_of(sales(16))


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b'{"format-version":2,"x":' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"format-version":' + b"9" * 5000 + b"}",
        b"NaN",
        b"null",
        b"7",
        b'"x"',
        b"[]",
        b"\xff\xfe{}",
    ],
    ids=["lists", "objects", "inside", "digits", "nan", "null", "7", "x", "list", "utf-16"],
)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_json_that_is_no_metadata_is_an_error_of_ours(text, is_compressed) -> None:
    with pytest.raises((CorruptTableError, UnsupportedFeatureError)):
        parse_metadata(gzip.compress(text) if is_compressed else text, "s3://b/v1.metadata.json")


def test_compressed_metadata_that_unpacks_to_far_more_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(metadata_files, "LEAST_LIMIT_BYTES", 1 << 20)
    bomb = gzip.compress(b" " * (32 << 20))
    started = time.process_time()
    with pytest.raises(CorruptTableError) as raised:
        parse_metadata(bomb, "s3://b/v1.gz.metadata.json")
    assert "unpacks to more than" in str(raised.value)
    assert time.process_time() - started < 5


def test_bombs_in_several_parts_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(metadata_files, "LEAST_LIMIT_BYTES", 1 << 20)
    bomb = gzip.compress(b" " * (1 << 20)) * 40
    with pytest.raises(CorruptTableError):
        parse_metadata(bomb, "s3://b/v1.gz.metadata.json")


def test_honest_compressed_metadata_is_read(lake) -> None:
    text = metadata_path(lake.table(NAME)).read_bytes()
    found = parse_metadata(gzip.compress(text), "s3://b/v1.gz.metadata.json")
    assert json.loads(found.model_dump_json()) == json.loads(
        parse_metadata(text, "s3://b/v1.metadata.json").model_dump_json()
    )


def test_what_others_wrote_is_not_checked_again_by_each_change(lake) -> None:
    unknown = changed("partition-specs", 0, "fields", 0, "transform", "frobnicate")
    edit_metadata(lake.table(NAME), unknown)
    report = lake.table(NAME).expire_snapshots(retain_last=1, dry_run=True)
    assert report.dry_run


def test_a_statistics_path_with_a_null_character_is_no_obstacle_to_health(lake) -> None:
    table = lake.table(NAME)
    table.compute_table_stats()
    edit_metadata(lake.table(NAME), changed("statistics", 0, "statistics-path", "/a/\0/b"))
    assert lake.table(NAME).remove_orphan_files().dry_run
