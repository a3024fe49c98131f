"""Partition values: strings of the log -> a struct of the columns' types, and back.

Missing values are null, and empty texts too, but for text and bytes: there the protocol says null
(PROTOCOL.md, "Partition Value Serialization"), while Delta on Spark and its kernel read the empty
value that other writers mean by it. Times without a zone are taken as UTC; those of instants are
written with theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.transform import partition_type

if TYPE_CHECKING:
    from rowlake.delta.schema import TableColumns

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_ZONE = r":\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)$"


def partitions_of(
    values: pa.ChunkedArray | pa.Array, columns: TableColumns, location: str
) -> pa.StructArray:
    """Return the partition structs of maps of texts; `location` is the log, for messages."""
    maps = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = partition_type(columns.spec, columns.schema)
    if not columns.spec.fields:
        return pa.Array.from_buffers(kind, len(maps), [None])
    arrays = []
    for described, field in zip(columns.spec.fields, kind, strict=True):
        name = columns.physical[described.source_id][0]
        texts = _usable(item_of(maps, name), field.type)
        try:
            arrays.append(parsed(texts, field.type))
        except (pa.ArrowException, ValueError) as error:
            cause = f"a partition value of column {described.name} is not {field.type} ({error})"
            raise CorruptTableError(location, cause) from error
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def item_of(maps: pa.MapArray, name: str | int) -> pa.Array:
    """Return each map's value for a key, null where there is none."""
    offsets = np.asarray(maps.offsets)
    keys = maps.keys[offsets[0] : offsets[-1]]
    hits = np.flatnonzero(np.asarray(pc.equal(keys, name)))
    rows = np.searchsorted(offsets - offsets[0], hits, side="right") - 1
    places = np.full(len(maps), -1, dtype=np.int64)
    places[rows] = hits + offsets[0]
    missing = places < 0
    if maps.null_count:
        missing |= np.asarray(maps.is_null())
    return maps.items.take(pa.array(places, mask=missing))


def _usable(texts: pa.StringArray, kind: pa.DataType) -> pa.StringArray:
    has_empty = pa.types.is_string(kind) or pa.types.is_binary(kind)
    nulls = [HIVE_NULL] if has_empty else [HIVE_NULL, ""]
    is_null = pc.is_in(texts, value_set=pa.array(nulls))
    return pc.if_else(is_null, pa.scalar(None, pa.string()), texts)


def parsed(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Return texts as values of a column's type."""
    if pa.types.is_timestamp(kind):
        return times_of(texts, kind)
    if pa.types.is_null(kind):
        return pa.nulls(len(texts))
    return texts.cast(kind)


def times_of(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Return times; those that name a zone as instants, others as UTC."""
    zoned = pc.match_substring_regex(texts, _ZONE)
    spaced = pc.replace_substring(texts, "T", " ", max_replacements=1)
    plain = pc.if_else(zoned, pa.scalar(None, pa.string()), spaced)
    with_zone = pc.if_else(zoned, spaced, pa.scalar(None, pa.string()))
    instants = with_zone.cast(pa.timestamp("us", "UTC"))
    naive = plain.cast(pa.timestamp("us"))
    if kind.tz is None:
        return pc.coalesce(naive, instants.cast(pa.int64()).cast(pa.timestamp("us")))
    return pc.coalesce(naive.cast(pa.int64()).cast(kind), instants)


def partition_texts(partitions: pa.StructArray, columns: TableColumns) -> dict[str, pa.Array]:
    """Return the texts of partition values by physical name, null for null.

    Empty text is null, as Delta on Spark writes it: readers do not agree on what it means.
    Raises InvalidStatementError for what the log cannot hold: bytes that are no text, empty text of
    a column that is NOT NULL.
    """
    found = {}
    for index, described in enumerate(columns.spec.fields):
        values = pc.struct_field(partitions, index).dictionary_encode()
        texts = _texts(values.dictionary, described.name)
        is_empty = pc.and_(pc.equal(texts, ""), pa.types.is_string(values.dictionary.type))
        if not columns.schema.by_id[described.source_id].nullable and is_empty.true_count:
            raise InvalidStatementError(
                f"Cannot write a partition of column {described.name}: Delta keeps empty text as "
                "null, and the column is NOT NULL."
            )
        texts = pc.if_else(is_empty, pa.scalar(None, pa.string()), texts)
        found[columns.physical[described.source_id][0]] = texts.take(values.indices)
    return found


def _texts(values: pa.Array, name: str) -> pa.Array:
    kind = values.type
    if pa.types.is_floating(kind):
        return pa.array([_float_text(one) for one in values.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return pa.array([f"{one:f}" for one in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.replace_substring(values.cast(pa.string()), " ", "T", max_replacements=1)
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InvalidStatementError(
            f"Cannot write a partition of column {name}: its value is no UTF-8 text, and Delta "
            "keeps binary partition values as text."
        ) from error


def _float_text(value: float) -> str:
    """Return a number as Java reads it."""
    if value != value:
        return "NaN"
    return str(value).replace("inf", "Infinity")
