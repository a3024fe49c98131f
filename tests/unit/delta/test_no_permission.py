"""Commits that storage refuses: an error that says so, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import CommitStateUnknownError, StorageError
from rowlake.storage import local

NOW = {"retention_hours": 0, "enforce_retention_duration": False}


@pytest.fixture
def table(tmp_path):
    with connect(str(tmp_path / "lake")) as lake:
        lake.create_namespace("ns")
        made = lake.create_table("ns.t", "id BIGINT", format="delta")
        made.append(pa.table({"id": [1, 2]}))
        made.overwrite(pa.table({"id": [3]}))
        yield made


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(pa.table({"id": [4]})),
        lambda table: table.delete("id = 3"),
        lambda table: table.set_properties({"a": "b"}),
        lambda table: table.vacuum(dry_run=False, **NOW),
    ],
    ids=["append", "delete", "properties", "vacuum"],
)
def test_a_log_that_cannot_be_written_is_no_unknown_outcome(table, monkeypatch, change):
    files = {one for one in Path(table.location).rglob("*") if one.is_file()}
    create = local.create

    def refused(path: str, data: bytes) -> bool:
        if "_delta_log" in path:
            raise PermissionError(13, "Permission denied", path)
        return create(path, data)

    monkeypatch.setattr(local, "create", refused)
    with pytest.raises(StorageError, match="permission denied") as raised:
        change(table)
    assert not isinstance(raised.value, CommitStateUnknownError)
    assert {one for one in Path(table.location).rglob("*") if one.is_file()} == files
    monkeypatch.undo()
    assert table.arrow()["id"].to_pylist() == [3]
