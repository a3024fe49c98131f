"""Delete files added beside those that are there, as other engines leave them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.commit.outcome import commit_or_raise
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.values import encode_partitions
from rowlake.plan.files import plan_files
from rowlake.storage.files import Storage
from rowlake.write.position_deletes import DeletedPositions, PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def places_of(table: Any) -> dict[str, tuple[int, tuple[bytes | None, ...]]]:
    """Return the spec and the encoded partition of each data file."""
    plan = plan_files(table.handle.view(), None, Storage({}))
    found = {}
    for spec_id, files in plan.data.items():
        encoded = encode_partitions(files["partition"].combine_chunks()).to_pylist()
        for location, partition in zip(files["location"].to_pylist(), encoded, strict=True):
            found[location] = (spec_id, tuple(partition))
    return found


def add_position_deletes(
    table: Any,
    *sets: Mapping[str, Sequence[int]],
    granularity: str = "file",
    places: Mapping[str, tuple[int, tuple[bytes | None, ...]]] | None = None,
) -> None:
    """Commit position delete files (as of format version 2) for sets of rows of data files."""
    known = places_of(table) | dict(places or {})
    storage = Storage({})
    writer = PositionDeleteWriter(f"{table.location}/data", False, granularity, storage)
    written = [
        writer.write(
            [
                DeletedPositions(location, *known[location], np.array(sorted(positions), np.int64))
                for location, positions in rows.items()
            ]
        )
        for rows in sets
    ]
    change = Change(Operation.DELETE, added_deletes=pa.concat_tables(written))
    table._handle, _ = commit_or_raise(table.handle, change, storage, "delete")


def add_equality_deletes(
    table: Any, keys: pa.Table, place: tuple[int, tuple[bytes | None, ...]] = (0, ())
) -> None:
    """Commit an equality delete file of these keys, named as the table's columns are."""
    handle, storage = table.handle, Storage({})
    fields = [handle.view().schema.arrow.field(name) for name in keys.column_names]
    location = f"{table.location}/data/{uuid.uuid4()}-equality.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), location)
    row = {
        **dict.fromkeys(WRITTEN_FILES.names),
        "content": int(Content.EQUALITY_DELETES),
        "location": location,
        "file_format": "PARQUET",
        "spec_id": place[0],
        "partition": list(place[1]),
        "record_count": keys.num_rows,
        "file_size_in_bytes": Path(location).stat().st_size,
        "equality_ids": [int(field.metadata[b"PARQUET:field_id"]) for field in fields],
    }
    written = pa.Table.from_pylist([row], WRITTEN_FILES)
    change = Change(Operation.DELETE, added_deletes=written)
    table._handle, _ = commit_or_raise(handle, change, storage, "delete")


def delete_files(table: Any) -> list[dict[str, Any]]:
    """Return the live delete files, in an order that does not depend on names."""
    found = table.inspect("delete_files").to_pylist()
    return sorted(found, key=lambda row: (row["referenced_data_file"] or "", row["record_count"]))


def live_sequence_numbers(table: Any, content: int) -> list[int]:
    """Return the data sequence numbers of live files of one content."""
    entries = table.inspect("entries").to_pylist()
    return sorted(
        entry["sequence_number"]
        for entry in entries
        if entry["status"] != 2 and entry["data_file"]["content"] == content
    )
