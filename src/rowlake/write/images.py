"""Files of changed rows: each row with its `_change_type`, for tables that keep them.

Comes in: rows of the table, and what happened to them. Goes out: files of `Content.IMAGES`, below
the folder that the table's layout names, in partitions as data files are. Rows wait in memory up
to the context's bound. On failure the caller removes what was written (`remove_all`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.schema import FIELD_ID, Schema, field_id
from rowlake.model.task import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPE_COLUMN_ID,
    LAST_UPDATED_COLUMN_ID,
    ROW_ID_COLUMN_ID,
)
from rowlake.write.conform import conform
from rowlake.write.locations import DataLocations
from rowlake.write.output import TaskFiles
from rowlake.write.partitions import split_by_partition
from rowlake.write.rolling import FanOutWriter

if TYPE_CHECKING:
    from rowlake.write.context import WriteContext

_NAME_PREFIX = "cdc-"
_LINEAGE = (ROW_ID_COLUMN_ID, LAST_UPDATED_COLUMN_ID)
_CHANGE_TYPE = pa.field(
    CHANGE_TYPE_COLUMN, pa.string(), metadata={FIELD_ID: str(CHANGE_TYPE_COLUMN_ID).encode()}
)


def images_context(write: WriteContext) -> WriteContext | None:
    """Return how the images of rows are written; None where the table keeps none."""
    folder = write.layout.images_folder
    if folder is None:
        return None
    if CHANGE_TYPE_COLUMN in write.schema.arrow.names:
        raise UnsupportedFeatureError(
            f"Cannot change rows of {write.table}: it keeps files of changed rows, where its own "
            f"column {CHANGE_TYPE_COLUMN} has no place. Rename the column."
        )
    columns = [each for each in write.schema.arrow if field_id(each) not in _LINEAGE]
    return replace(
        write,
        locations=DataLocations(folder),
        schema=Schema(pa.schema([*columns, _CHANGE_TYPE]), write.schema.schema_id),
        layout=replace(write.layout, name_prefix=_NAME_PREFIX),
        content=Content.IMAGES,
        sort=(),
        rules=(),
    )


class ImageWriter:
    """Writes the images of one task."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._files = TaskFiles(context)
        self._writer = FanOutWriter(self._files)

    def add(self, rows: pa.RecordBatch, kind: str) -> None:
        """Take rows of the table to which the same happened."""
        if not rows.num_rows:
            return
        schema = self._context.schema
        names = [name for name in schema.arrow.names if name != CHANGE_TYPE_COLUMN]
        kinds = pa.repeat(pa.scalar(kind), rows.num_rows)
        images = rows.select(names).append_column(_CHANGE_TYPE, kinds)
        for key, part in split_by_partition(conform(images, schema), self._context.spec, schema):
            self._writer.add(key, self._files.stored(part))

    def close(self) -> pa.Table:
        """Finish all files and return them."""
        self._writer.close()
        return pa.Table.from_batches([self._files.written()], WRITTEN_FILES)

    def remove_all(self, error: BaseException) -> None:
        """Remove every file of a task that failed."""
        self._files.remove_all(error)
