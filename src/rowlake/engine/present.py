"""Arrow batches of a table -> Arrow batches that Spark's JVM takes.

Comes in: batches in a table's types (the layout of `rowlake.model.schema`). Goes out: the same
rows in the few types that Spark's Arrow reader knows. Whole arrays are converted, no row is
touched in Python, and what needs no change is passed on as it is.

| table | Spark |
|---|---|
| uuid | string, canonical text |
| fixed, large or view binary | binary |
| time | time(6) as time64[ns], or text where the session has no TIME type |
| timestamp_ns, timestamptz_ns | timestamp in microseconds, rounded down |
| dictionary, large and view types, other decimals | the plain form |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.deferred import deferred
from rowlake.model.schema import type_name

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:  # every lake loads this module, but few rows need a conversion
    (pc,) = deferred("pyarrow", "compute")

Converter = Callable[[pa.Array], pa.Array]

UUID_BYTES = 16
UUID_CHARS = 36
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8)
_HEX_PAIRS = _HEX.reshape(256, 2)
# Where the two digits of each of the 16 bytes stand in the text form.
_DIGITS = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
_DASHES = np.array([8, 13, 18, 23])


def presented_field(field: pa.Field, *, has_time: bool = True) -> pa.Field:
    """Return a field as Spark sees it: same name, nullability and metadata, Spark's type."""
    return pa.field(
        field.name, _presented_type(field, has_time), field.nullable, metadata=field.metadata
    )


def presented_schema(schema: pa.Schema, *, has_time: bool = True) -> pa.Schema:
    """Return a schema as Spark sees it."""
    return pa.schema([presented_field(field, has_time=has_time) for field in schema])


def is_uuid(field: pa.Field) -> bool:
    """Return whether a column holds uuids, by its metadata or Arrow's extension type."""
    return type_name(field) == "uuid" or field.type == pa.uuid()


def is_variant(field: pa.Field) -> bool:
    """Return whether a column holds variants, as a struct of their two parts."""
    return type_name(field) == "variant" and pa.types.is_struct(field.type)


def _presented_type(field: pa.Field, has_time: bool) -> pa.DataType:
    arrow_type = field.type
    if is_uuid(field):
        return pa.string()
    if is_variant(field):
        return VARIANT
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _presented_type(field.with_type(arrow_type.storage_type), has_time)
    if pa.types.is_dictionary(arrow_type):
        return _presented_type(field.with_type(arrow_type.value_type), has_time)
    if pa.types.is_nested(arrow_type):
        return _presented_nested(arrow_type, has_time)
    return _presented_primitive(arrow_type, has_time)


VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def _presented_nested(arrow_type: pa.DataType, has_time: bool) -> pa.DataType:
    present = partial(presented_field, has_time=has_time)
    if pa.types.is_struct(arrow_type):
        return pa.struct([present(child) for child in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(present(arrow_type.key_field), present(arrow_type.item_field))
    return pa.list_(present(arrow_type.value_field))


_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
}


def _presented_primitive(arrow_type: pa.DataType, has_time: bool) -> pa.DataType:
    if pa.types.is_time(arrow_type):
        return pa.time64("ns") if has_time else pa.string()
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", "UTC" if arrow_type.tz else None)
    if pa.types.is_decimal(arrow_type):
        return pa.decimal128(arrow_type.precision, arrow_type.scale)
    if _is_any_binary(arrow_type):
        return pa.binary()
    return _WIDER.get(arrow_type, arrow_type)


def _is_any_binary(arrow_type: pa.DataType) -> bool:
    kinds = (pa.types.is_fixed_size_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(is_kind(arrow_type) for is_kind in kinds)


class Presenter:
    """Turns batches of one table schema into Spark's; made once per task."""

    def __init__(self, schema: pa.Schema, *, has_time: bool = True) -> None:
        self.schema = presented_schema(schema, has_time=has_time)
        pairs = zip(schema, self.schema, strict=True)
        self._converters = [_converter(field, shown) for field, shown in pairs]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch for Spark; columns are taken by position."""
        if not any(self._converters):
            return batch
        columns = [
            convert(column) if convert else column
            for convert, column in zip(self._converters, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def present(batch: pa.RecordBatch, schema: pa.Schema, *, has_time: bool = True) -> pa.RecordBatch:
    """Return one batch of `schema` as Spark sees it."""
    return Presenter(schema, has_time=has_time)(batch)


def _converter(field: pa.Field, shown: pa.Field) -> Converter | None:
    """Return what turns an array of `field` into one of `shown`, None where nothing does."""
    if is_uuid(field):
        return uuid_text
    if is_variant(field):
        return _variant_parts
    if isinstance(field.type, pa.BaseExtensionType):
        inner = _converter(field.with_type(field.type.storage_type), shown)
        return lambda array: inner(array.storage) if inner else array.storage
    if pa.types.is_dictionary(field.type):
        inner = _converter(field.with_type(field.type.value_type), shown)
        return lambda array: inner(array.dictionary_decode()) if inner else _plain(array)
    if pa.types.is_nested(field.type):
        return _nested_converter(field.type, shown.type)
    return _primitive_converter(field.type, shown.type)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _primitive_converter(arrow_type: pa.DataType, shown: pa.DataType) -> Converter | None:
    if pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns":
        return partial(_floor_to_microseconds, shown=shown)
    if pa.types.is_time(arrow_type) and pa.types.is_string(shown):
        return _time_text
    return None if arrow_type == shown else partial(_cast, shown=shown)


def _cast(array: pa.Array, *, shown: pa.DataType) -> pa.Array:
    return array.cast(shown)


def _floor_to_microseconds(array: pa.Array, *, shown: pa.DataType) -> pa.Array:
    return pc.floor_temporal(array, unit="microsecond").cast(shown)


def _time_text(array: pa.Array) -> pa.Array:
    return array.cast(pa.time64("us")).cast(pa.string())


def _nested_converter(arrow_type: pa.DataType, shown: pa.DataType) -> Converter | None:
    if pa.types.is_struct(arrow_type):
        parts = [_converter(a, b) for a, b in zip(arrow_type, shown, strict=True)]
        return partial(_convert_struct, parts=parts, shown=shown) if any(parts) else None
    if pa.types.is_map(arrow_type):
        key = _converter(arrow_type.key_field, shown.key_field)
        item = _converter(arrow_type.item_field, shown.item_field)
        return partial(_convert_map, key=key, item=item, shown=shown) if key or item else None
    element = _converter(arrow_type.value_field, shown.value_field)
    if element is None and pa.types.is_list(arrow_type):
        return None
    return partial(_convert_list, element=element, shown=shown)


def _convert_struct(
    array: pa.StructArray, *, parts: list[Converter | None], shown: pa.StructType
) -> pa.StructArray:
    # `field` ignores a slice's offset only in old Arrow; `flatten` would mask children by the
    # parent's nulls, which costs a copy and is not needed.
    children = [
        part(array.field(index)) if part else array.field(index) for index, part in enumerate(parts)
    ]
    return pa.StructArray.from_arrays(children, fields=list(shown), mask=array.is_null())


def _convert_list(
    array: pa.ListArray, *, element: Converter | None, shown: pa.ListType
) -> pa.ListArray:
    plain = array.cast(pa.list_(array.type.value_field)) if _is_odd_list(array) else array
    values = element(plain.values) if element else plain.values
    return _with_offsets(plain, values, shown)


def _is_odd_list(array: pa.Array) -> bool:
    return not pa.types.is_list(array.type)


def _convert_map(
    array: pa.MapArray, *, key: Converter | None, item: Converter | None, shown: pa.MapType
) -> pa.MapArray:
    keys = key(array.keys) if key else array.keys
    items = item(array.items) if item else array.items
    entries = pa.StructArray.from_arrays([keys, items], fields=[shown.key_field, shown.item_field])
    return _with_offsets(array, entries, shown)


def _with_offsets(array: pa.Array, values: pa.Array, shown: pa.DataType) -> pa.Array:
    """Return a list or map array with other values; validity and offsets as they are."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        shown, len(array), [validity, offsets], offset=array.offset, children=[values]
    )


def _variant_parts(array: pa.StructArray) -> pa.StructArray:
    parts = [array.field("value").cast(pa.binary()), array.field("metadata").cast(pa.binary())]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=array.is_null())


def uuid_text(array: pa.Array) -> pa.StringArray:
    """Return uuids (16 bytes each) in their canonical text form, lower case with dashes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    count = len(array)
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * UUID_CHARS)
    validity = None
    if array.null_count:
        validity = pc.is_valid(array).buffers()[1]
    text = _uuid_characters(array, count)
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(text), validity)


def _uuid_characters(array: pa.FixedSizeBinaryArray, count: int) -> np.ndarray:
    data = array.buffers()[1]
    start = array.offset * UUID_BYTES
    raw = np.frombuffer(data, np.uint8, count * UUID_BYTES, start) if count else np.empty(0, "u1")
    pairs = _HEX_PAIRS[raw.reshape(count, UUID_BYTES)]
    text = np.empty((count, UUID_CHARS), np.uint8)
    text[:, _DASHES] = ord("-")
    text[:, _DIGITS] = pairs[:, :, 0]
    text[:, _DIGITS + 1] = pairs[:, :, 1]
    return text
