"""What holds of a table after every commit, whatever was done: files, deletes, totals, row ids."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.metadata import view_of
from rowlake.model.key_index import index_location

DATA, POSITION, EQUALITY = 0, 1, 2
LINEAGE = ["_row_id", "_last_updated_sequence_number"]
Lineage = list[tuple[int, int]]
_COLUMNS = ["content", "location", "file_format", "record_count", "referenced_data_file"]
_TOTALS = ("data-files", "delete-files", "records", "position-deletes", "equality-deletes")


class Files:
    """The files of one snapshot, and all that snapshots have ever named."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._named: set[str] = set()
        self.others_write = False

    def check(self, snapshot_id: int) -> None:
        """Check one snapshot, and that no file lies around that none names."""
        handle = self._table.handle
        found = files_of(handle, snapshot_id)
        self._named |= {file["location"] for file in found}
        check_deletes(found)
        (snapshot,) = (one for one in handle.metadata.snapshots if one.snapshot_id == snapshot_id)
        check_totals(found, dict(snapshot.summary.additional_properties))
        self.check_strays()

    def check_listing(self, snapshot_id: int) -> None:
        """Check that the metadata table `files` has the files of a snapshot."""
        listed = self._table.inspect("files", snapshot_id=snapshot_id)["file_path"].to_pylist()
        found = [file["location"] for file in files_of(self._table.handle, snapshot_id)]
        assert sorted(listed) == sorted(found), f"{listed} are listed, not {found}"

    def check_strays(self) -> None:
        if self.others_write:  # their files are named when they commit
            return
        folder = f"{_path(self._table.location)}/data"
        held = {str(Path(place, file)) for place, _, files in os.walk(folder) for file in files}
        named = {_path(place) for place in self._named}
        strays = held - named - set(map(index_location, named))
        assert not strays, f"files that no snapshot names: {sorted(strays)}"


def files_of(handle: Any, snapshot_id: int) -> list[dict[str, Any]]:
    """Return the files of a snapshot, with the columns that are checked."""
    view = view_of(handle, snapshot_id=snapshot_id)
    manifests = read_manifest_list(view.snapshot.manifest_list, handle.storage)
    found = read_manifests(manifests, view, handle.storage, columns=_COLUMNS)
    return [file for files in found.values() for file in files.select(_COLUMNS).to_pylist()]


def _path(location: str) -> str:
    return location.removeprefix("file://")


def check_deletes(files: list[dict[str, Any]]) -> None:
    """At most one vector, or file-scoped position delete file, per data file; none without it."""
    data = {file["location"] for file in files if file["content"] == DATA}
    vectors = Counter(
        file["referenced_data_file"]
        for file in files
        if file["content"] == POSITION and file["referenced_data_file"] is not None
    )
    assert max(vectors.values(), default=1) == 1, f"a data file has several vectors: {vectors}"
    formats = {
        file["referenced_data_file"] for file in files if file["file_format"].upper() == "PUFFIN"
    }
    assert formats <= data, f"vectors of files that are gone: {formats - data}"


def check_totals(files: list[dict[str, Any]], summary: dict[str, str]) -> None:
    """The summary's totals are those of the files."""

    def counted(*contents: int, records: bool = False) -> int:
        return sum(
            file["record_count"] if records else 1 for file in files if file["content"] in contents
        )

    totals = (
        counted(DATA),
        counted(POSITION, EQUALITY),
        counted(DATA, records=True),
        counted(POSITION, records=True),
        counted(EQUALITY, records=True),
    )
    found = tuple(int(summary[f"total-{name}"]) for name in _TOTALS)
    assert found == totals, f"totals {dict(zip(_TOTALS, found, strict=True))}, files have {totals}"


def check_row_ids(before: Lineage, after: Lineage, *, lost: int, fresh: int) -> None:
    """Rows keep their ids whatever file they are in; new rows get new ones."""
    old, now = [row_id for row_id, _ in before], [row_id for row_id, _ in after]
    assert None not in now, "a row has no id"
    assert len(set(now)) == len(now), f"row ids are not unique: {sorted(now)}"
    gone, new = set(old) - set(now), set(now) - set(old)
    assert (len(gone), len(new)) == (lost, fresh), f"lost {gone}, new {new}: {lost}, {fresh}"


def check_last_updated(
    before: dict[int, int], after: dict[int, int], updated: int, sequence_number: int
) -> None:
    """Rows that were updated or are new say so; all others keep the number of their last update."""
    touched = [row for row in after if after[row] != before.get(row)]
    assert all(after[row] == sequence_number for row in touched), (before, after)
    kept = [row for row in touched if row in before]
    assert len(kept) == updated, f"{len(kept)} rows are marked as updated, not {updated}"
