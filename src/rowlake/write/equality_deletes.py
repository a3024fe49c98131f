"""Equality delete files: the keys of deleted rows (spec, "Equality Delete Files").

Comes in: keys as columns by field id, each key once, in the order of the keys. Goes out: delete
files per partition of a spec (one set of files for the whole table where the spec is
unpartitioned), each sorted, rolling at `write.delete.target-file-size-bytes`, with bounds of every
key column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.schema import children, field_id, type_name
from rowlake.write.kernel import pieces
from rowlake.write.output import TaskFiles
from rowlake.write.partitions import split_by_partition
from rowlake.write.rolling import ClusteredWriter, FanOutWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.model.schema import Schema
    from rowlake.write.context import WriteContext

_NO_EQUALITY = ("variant", "geometry", "geography")


def validate_key_column(schema: Schema, identity: int) -> None:
    """Refuse a column that the spec bars from equality deletes: floats, and what is not a value."""
    name, column = ".".join(schema.paths[identity]), schema.by_id[identity]
    kind = (type_name(column) or str(column.type)).partition("(")[0]
    is_value = not pa.types.is_nested(column.type) and kind not in _NO_EQUALITY
    if pa.types.is_floating(column.type) or pa.types.is_null(column.type) or not is_value:
        raise UnsupportedFeatureError(
            f"Column {name} of type {kind} cannot be a key of upserts and equality deletes: "
            "floating-point numbers, structs, lists, maps and semi-structured values cannot."
        )
    if not _is_in_structs(schema, identity):
        raise UnsupportedFeatureError(
            f"Column {name} cannot be a key of upserts and equality deletes: it is inside a list "
            "or a map."
        )


def _is_in_structs(schema: Schema, identity: int) -> bool:
    pending = list(schema.arrow)
    while pending:
        found = pending.pop()
        if field_id(found) == identity:
            return True
        if pa.types.is_struct(found.type):
            pending += children(found.type)
    return False


def key_batch(schema: Schema, columns: Mapping[int, pa.Array]) -> pa.RecordBatch:
    """Return key columns, given by field id, as rows of a schema of keys."""
    arrays = [_nested(column, columns) for column in schema.arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _nested(column: pa.Field, columns: Mapping[int, pa.Array]) -> pa.Array:
    """Return the array of a column; a struct all of whose keys are null is null, if it may be."""
    identity = field_id(column)
    if identity is not None and identity in columns:
        return columns[identity]
    below = [_nested(child, columns) for child in children(column.type)]
    absent = below[0].is_null()
    for part in below[1:]:
        absent = pc.and_(absent, part.is_null())
    mask = absent if column.nullable else None
    return pa.StructArray.from_arrays(below, fields=children(column.type), mask=mask)


class EqualityDeleteWriter:
    """Writes keys, as they come, into delete files of one spec."""

    def __init__(self, context: WriteContext) -> None:
        self.schema = context.schema
        self._context, self._files = context, TaskFiles(context)
        is_whole = context.spec.is_unpartitioned
        self._writer = ClusteredWriter(self._files) if is_whole else FanOutWriter(self._files)

    def add(self, keys: pa.RecordBatch) -> None:
        """Take keys in the schema of keys, after all that came before in their order."""
        for part_key, part in split_by_partition(keys, self._context.spec, self.schema):
            self._writer.add(part_key, self._files.stored(part))

    def close(self) -> pa.RecordBatch:
        """Finish all files; return them as `WRITTEN_FILES`."""
        self._writer.close()
        return self._files.written()

    def remove_all(self, error: BaseException) -> None:
        """Remove every file of this writer."""
        self._files.remove_all(error)


def write_equality_deletes(contexts: Sequence[WriteContext], keys: pa.RecordBatch) -> pa.Table:
    """Write sorted keys once for each context; on failure no file is left behind."""
    writers: list[EqualityDeleteWriter] = []
    try:
        for context in contexts:
            writers.append(EqualityDeleteWriter(context))
            for piece in pieces([keys]):
                writers[-1].add(piece)
        written = [writer.close() for writer in writers]
    except BaseException as error:
        for writer in writers:
            writer.remove_all(error)
        raise
    return pa.Table.from_batches(written, WRITTEN_FILES)
