"""The files of all snapshots, as maintenance asks a format for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowlake.catalog import generic
from rowlake.iceberg import expire
from rowlake.iceberg.unreachable import files_left_behind
from rowlake.model.expiry import Asked
from rowlake.model.metadata_change import ExpireSnapshots
from rowlake.model.reachable import Kind
from tests.lakes import SALES, make_lake, sales

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    with make_lake(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        made = lake.create_table(
            "db.t", SALES, properties={"commit.manifest-merge.enabled": "false"}
        )
        made.append(sales(5))
        made.append(sales(5, 10))
        yield made


def history(table: Any) -> Any:
    return table.handle.format.file_history(table.handle)


def locations(parts: Any, *kinds: Kind) -> set[str]:
    rows = [row for part in parts for row in part.to_pylist()]
    return {row["location"] for row in rows if not kinds or row["kind"] in kinds}


def data_files(table: Any) -> list[str]:
    return [row["file_path"] for row in table.inspect("all_files").to_pylist()]


def test_what_is_new_since_a_moment_has_all_files_of_later_snapshots(table):
    before = table.handle
    table.append(sales(5, 20))
    table.create_tag("kept")
    whole = locations(history(table).reachable())
    new = locations(history(table).reachable(since=before))
    old = locations(before.format.file_history(before).reachable())
    assert whole - old <= new <= whole
    assert len(locations(history(table).reachable(since=before), Kind.DATA)) == 1
    assert not locations(history(table).reachable(since=table.handle), Kind.DATA)


def test_each_file_of_the_history_comes_once(table):
    table.delete("id < 5")
    (found,) = history(table).files(("location", "record_count")).values()
    assert found.num_rows == 2
    assert set(found["location"].to_pylist()) == set(data_files(table))
    assert {"location", "record_count"} <= set(found.column_names)


def test_snapshots_name_live_and_removed_files(table):
    first, second = (one.snapshot_id for one in table.snapshots())
    removed = table.inspect("files", snapshot_id=first)["file_path"][0].as_py()
    deleting = table.delete("id < 5").snapshot_id
    table.append(sales(1, 50))  # lists no manifest that names removed files only
    assert history(table).snapshots_naming([removed]) == [first, second, deleting]
    assert history(table).snapshots_naming(["nowhere"]) == []


def test_an_expiry_without_a_commit_leaves_the_same_files_behind(table):
    handle, format_ = table.handle, table.handle.format
    table.delete("id < 5")
    handle = table.handle
    expiry = format_.expiry(handle, Asked(2**62, retain_last=1))
    assert len(expiry.snapshot_ids) == 2
    payload = format_.alter(handle, ExpireSnapshots(expiry))
    after = format_.altered(handle, payload)
    left = format_.file_history(handle).left_behind(after)
    assert locations([left.files], Kind.DATA) == set(data_files(table)) - set(
        table.files()["file_path"].to_pylist()
    )
    assert format_.alter(after, ExpireSnapshots(format_.expiry(after, Asked(2**62)))) is None


def test_an_expiry_with_nothing_to_do_looks_for_no_lost_refs(table, monkeypatch):
    table.create_tag("old", table.snapshots()[0].snapshot_id, max_ref_age_ms=1)
    table.expire_snapshots(2**62)
    for module in (expire, generic):
        monkeypatch.setattr(module, "is_rest", lambda _: True)
    # The log names the metadata from before the expiry, with the tag that expired.
    assert files_left_behind(table.handle, table.handle).files.num_rows == 0


def test_metadata_tells_of_its_own_files(table):
    facts = table.handle.format.metadata_facts(table.handle)
    assert facts.location == table.handle.version
    assert (facts.schemas, facts.log_entries, facts.outdated_files) == (1, 2, 0)
