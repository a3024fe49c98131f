"""What the tasks of a row-level operation report, added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.rowlevel.strategy import Way

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Done:
    """What the tasks did, put together: `changed` by file; `matched` source rows by part.

    `kept`: files with rows that matched and stay as they are, while other source rows are inserted.
    """

    changed: list[dict[str, Any]]
    updated: int
    deleted: int
    inserted: int
    copied: int
    unchanged: int
    bytes_read: int
    replaced: frozenset[str]
    with_deletes: frozenset[str]
    kept: frozenset[str]
    replaced_deletes: frozenset[tuple[str, int | None]]
    matched: Mapping[int, bytes]
    files: pa.Table

    @property
    def bytes_written(self) -> int:
        """The size of the files written; vectors that share one Puffin file count it once."""
        sizes = self.files.select(["location", "file_size_in_bytes"])
        found = sizes.group_by("location", use_threads=False).aggregate(
            [("file_size_in_bytes", "max")]
        )
        return int(pc.sum(found["file_size_in_bytes_max"]).as_py() or 0)

    @property
    def changes_anything(self) -> bool:
        """True where there is something to commit."""
        return bool(self.files.num_rows or self.replaced)

    @property
    def data(self) -> pa.Table:
        """The data files written."""
        return self.files.filter(pc.equal(self.files["content"], int(Content.DATA)))

    @property
    def deletes(self) -> pa.Table:
        """The delete files written."""
        others = pa.array([int(Content.DATA), int(Content.IMAGES)], pa.int8())
        return self.files.filter(pc.invert(pc.is_in(self.files["content"], value_set=others)))

    @property
    def images(self) -> pa.Table:
        """The files of changed rows."""
        return self.files.filter(pc.equal(self.files["content"], int(Content.IMAGES)))

    def without_images(self) -> Done:
        """Return the same without files of changed rows."""
        kept = pc.not_equal(self.files["content"], int(Content.IMAGES))
        return replace(self, files=self.files.filter(kept))

    @classmethod
    def of(cls, outcomes: pa.Table) -> Done:
        """Return the sum of what tasks report."""
        is_file = pc.is_valid(outcomes["file"])
        rows: list[dict[str, Any]] = (
            outcomes.filter(pc.invert(is_file)).drop_columns(["file"]).to_pylist()
        )
        changed = [row for row in rows if row["source"] is not None]
        with_deletes = {row["source"] for row in changed if row["way"] == Way.DELETE_FILE.value}
        return cls(
            changed=changed,
            updated=_total(rows, "updated"),
            deleted=_total(rows, "deleted"),
            inserted=_total(rows, "inserted"),
            copied=_total(rows, "copied"),
            unchanged=_total(rows, "unchanged"),
            bytes_read=_total(rows, "bytes_read"),
            replaced=frozenset(row["source"] for row in changed) - with_deletes,
            with_deletes=frozenset(with_deletes),
            kept=frozenset(row["kept"] for row in rows if row["kept"] is not None),
            replaced_deletes=frozenset(
                (old["location"], old["content_offset"])
                for row in changed
                for old in row["replaced_deletes"] or ()
            ),
            matched=_matched(rows),
            files=_unwrapped(outcomes.filter(is_file)["file"]),
        )


def _total(rows: list[dict[str, Any]], name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _matched(rows: list[dict[str, Any]]) -> dict[int, bytes]:
    """Return for each part without an owner which rows were matched by any task."""
    found: dict[int, BitMap] = {}
    for row in rows:
        if row["matched"] is not None:
            bitmap = BitMap.deserialize(row["matched"])
            found[row["part"]] = found.get(row["part"], BitMap()) | bitmap
    return {part: bytes(bitmap.serialize()) for part, bitmap in found.items()}


def _unwrapped(structs: pa.ChunkedArray) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES)
        for chunk in structs.chunks
        if len(chunk)
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)
