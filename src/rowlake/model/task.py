"""Tasks for Spark or driver threads: small, picklable, self-contained descriptions of work.

A kernel is a module-level function that takes one task (or one stream of Arrow batches) and
yields Arrow batches; it may run in a Python worker that has pyarrow and rowlake but neither
pyspark's driver nor a catalog.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from rowlake.model.files import DeleteFile
    from rowlake.model.partition import PartitionSpec
    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema

# Metadata columns, as a scan projects them; the spec's reserved field ids.
FILE_COLUMN, FILE_COLUMN_ID = "_file", 2147483646
POS_COLUMN, POS_COLUMN_ID = "_pos", 2147483645
DELETED_COLUMN, DELETED_COLUMN_ID = "_deleted", 2147483644
SPEC_ID_COLUMN, SPEC_ID_COLUMN_ID = "_spec_id", 2147483643
PARTITION_COLUMN, PARTITION_COLUMN_ID = "_partition", 2147483642
CHANGE_TYPE_COLUMN, CHANGE_TYPE_COLUMN_ID = "_change_type", 2147483543
ROW_ID_COLUMN, ROW_ID_COLUMN_ID = "_row_id", 2147483540
LAST_UPDATED_COLUMN, LAST_UPDATED_COLUMN_ID = "_last_updated_sequence_number", 2147483539

# Rows of a batch where rows go to Spark or to a writer; and where the kernel keeps few of them, so
# that what a batch costs beside its rows counts. Sources give fewer where rows are wide.
BATCH_ROWS = 65_536
LARGE_BATCH_ROWS = 262_144


# The rows of a page in files of tables with a key index: what is read to fetch one row.
PAGE_ROWS = 1_000


def size_of_rows(file_size_in_bytes: int, record_count: int, rows: int) -> int:
    """Return what reading some rows of a file takes, about: the pages that they are in."""
    share = rows * PAGE_ROWS / max(record_count, 1)
    return round(file_size_in_bytes * min(share, 1.0))


@dataclass(frozen=True)
class NameMapping:
    """Which names in data files mean which field id: `text` is Iceberg's JSON form.

    Holds for files without ids; `over_ids` lets it hold for files that have ids too, whose ids
    then mean nothing. `unnumbered` has ids of columns by name that carry none in any file.
    """

    text: str
    over_ids: bool = False
    unnumbered: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class FileTask:
    """One data file, or a byte range of it, with the deletes that apply.

    A split reads the row groups (stripes, blocks) that start in [start, start + length); see
    `holds` for the first and the last one. `file_size_in_bytes` is what metadata says, a hint.
    `partition` has the file's partition values by partition field id, as Python values.
    `only` are sorted positions: no other row can match what is looked for.
    """

    location: str
    file_format: str
    file_size_in_bytes: int
    record_count: int
    start: int
    length: int
    spec_id: int
    partition: Mapping[int, Any]
    deletes: tuple[DeleteFile, ...] = ()
    data_sequence_number: int | None = None
    first_row_id: int | None = None
    only: NDArray[np.int64] | None = field(default=None, compare=False)

    @property
    def bytes_to_read(self) -> int:
        """What reading it takes, about: of some rows, the pages around them."""
        if self.only is None:
            return self.file_size_in_bytes
        return size_of_rows(self.file_size_in_bytes, self.record_count, len(self.only))

    def holds(self, offset: int) -> bool:
        """Return whether the row group at an offset is one of this split.

        The first split has all that starts before its end, the last all that starts after its
        beginning: a size that metadata states wrong loses no row.
        """
        end = self.start + self.length
        is_first, is_last = self.start <= 0, end >= self.file_size_in_bytes
        return (is_first or self.start <= offset) and (is_last or offset < end)


@dataclass(frozen=True)
class ScanContext:
    """What all the tasks of one scan share.

    - `table_schema`: all columns, to resolve names and defaults;
    - `projection`: what comes out, in order: table columns and metadata columns (by their
      reserved ids); nested fields may be pruned;
    - `predicate`: bound; rows for which it is not TRUE may be dropped before they come out, and
      must be where `exact` is set;
    - `name_mapping`: the table's, for files without ids;
    - `case_sensitive` has done its work when a context is made: ids are bound;
    - `held`: what scans of just this context found out and need not find out again; it does not
      travel to other processes, and a changed copy starts with nothing.
    """

    table_schema: Schema
    projection: Schema
    specs: Mapping[int, PartitionSpec]
    predicate: Predicate | None = None
    exact: bool = False
    name_mapping: NameMapping | None = None
    partition_type: pa.DataType | None = None
    io_properties: Mapping[str, str] = field(default_factory=dict)
    batch_rows: int = BATCH_ROWS
    held: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    __repr__ = redacted_repr

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": {}}


@dataclass(frozen=True)
class ScanTask:
    """Some files to read in one task."""

    context: ScanContext
    files: tuple[FileTask, ...]
