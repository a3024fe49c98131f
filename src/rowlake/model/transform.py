"""The arithmetic of the partition transforms, on Arrow arrays.

Comes in: a transform in its text form (`bucket[16]`, `day`, `void`, …) and values of a column.
Goes out: partition values. Invariant: equal to what the spec defines (Partition Transforms and
Appendix B), for nulls (null stays null), for times before 1970 (rounded down, not to zero), and
for text (cut by code points).

`day` gives Arrow dates, as Iceberg's other implementations do; the spec's int is their storage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.decimal_words import decimal_words, rounded_down, shortest_bytes
from rowlake.model.human import human_text
from rowlake.model.murmur3 import hash_bytes, hash_longs, hash_slices
from rowlake.model.schema import FIELD_ID, TYPE_NAME, Schema, type_name
from rowlake.model.values import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlake.model.partition import PartitionField, PartitionSpec

DATE_TRANSFORMS = ("year", "month", "day", "hour")
_PLAIN = ("identity", "void", *DATE_TRANSFORMS)
_WITH_WIDTH = ("bucket", "truncate")
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HIVE_SPECIAL = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
_TEXT = re.compile(r"([a-z]+)(?:\[(\d+)\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Transform:
    """A parsed transform; `width` is a bucket's count or a truncation's width, else 0."""

    name: str
    width: int = 0

    @property
    def keeps_order(self) -> bool:
        """True where a <= b implies transform(a) <= transform(b)."""
        return self.name not in ("bucket", "void")


@lru_cache(maxsize=1024)
def parse_transform(text: str) -> Transform:
    """Parse a transform's text; one unknown to the spec raises `UnsupportedFeatureError`."""
    found = _TEXT.fullmatch(text.strip())
    name, width = (found[1].lower(), found[2]) if found else ("", None)
    if name in _PLAIN and width is None:
        return Transform(name)
    if name in _WITH_WIDTH and width is not None and 0 < int(width) < 2**31:
        return Transform(name, int(width))
    raise UnsupportedFeatureError(
        f"Unknown partition transform {text!r}: expected identity, bucket[N], truncate[W], "
        f"year, month, day, hour or void."
    )


def result_type(transform: str, source: pa.DataType) -> pa.DataType:
    """Return the type of the partition values; raises where the transform cannot take `source`."""
    parsed = parse_transform(transform)
    stored = _storage(source)
    if not _accepts(parsed.name, stored):
        raise InvalidStatementError(
            f"Cannot partition by {transform} of a column of type {source}."
        )
    if parsed.name in ("bucket", "year", "month", "hour"):
        return pa.int32()
    return pa.date32() if parsed.name == "day" else source


def apply_transform(transform: str, values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the partition value of each value; null for null.

    Dictionary-encoded values are transformed once per dictionary entry and come out plain.
    """
    if isinstance(values, pa.ChunkedArray):
        if not values.num_chunks:
            return apply_transform(transform, pa.array([], values.type))
        return pa.concat_arrays([apply_transform(transform, chunk) for chunk in values.chunks])
    if pa.types.is_dictionary(values.type):
        return apply_transform(transform, values.dictionary).take(values.indices)
    parsed = parse_transform(transform)
    target = result_type(transform, values.type)
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    if parsed.name == "identity":
        return values
    if parsed.name == "void":
        return pa.nulls(len(values), target)
    return _APPLY[parsed.name](stored, parsed)


def partition_type(
    spec: PartitionSpec, schema: Schema, older: Iterable[Schema] = ()
) -> pa.StructType:
    """Return the struct of a spec's partition values; each field carries its partition field id.

    A source column that `schema` has lost is looked for in the `older` schemas; one that is
    nowhere makes a field of type null (unless the transform alone says the type).
    """
    schemas = [schema, *older]
    return pa.struct([_partition_field(field, schemas) for field in spec.fields])


def partition_path(spec: PartitionSpec, schema: Schema, encoded: tuple[bytes | None, ...]) -> str:
    """Return the folder of a partition, `a_bucket=3/day=2024-01-01`, escaped as Java escapes it.

    `encoded` has single-value encodings in spec order; an unpartitioned spec gives "".
    """
    parts = []
    for field, arrow_field, value in zip(
        spec.fields, partition_type(spec, schema), encoded, strict=True
    ):
        scalar = decode(pa.array([value], pa.binary()), arrow_field.type)[0]
        is_uuid = type_name(arrow_field) == "uuid"
        text = human_text(field.transform, scalar, is_uuid=is_uuid)
        parts.append(f"{_escaped(field.name)}={_escaped(text)}")
    return "/".join(parts)


def hive_path(spec: PartitionSpec, schema: Schema, encoded: tuple[bytes | None, ...]) -> str:
    """Return the folder of a partition of plain columns as Hive and Spark name it."""
    parts = []
    for field, kind, value in zip(spec.fields, partition_type(spec, schema), encoded, strict=True):
        scalar = decode(pa.array([value], pa.binary()), kind.type)[0]
        text = human_text(field.transform, scalar) if scalar.is_valid else ""
        parts.append(f"{_hive_escaped(field.name)}={_hive_escaped(text) or HIVE_NULL}")
    return "/".join(parts)


def _hive_escaped(text: str) -> str:
    """Escape what has a meaning in paths, as Spark's `ExternalCatalogUtils` does."""
    return _HIVE_SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _escaped(text: str) -> str:
    """Escape as `java.net.URLEncoder` does: a space is `+`, `*` is kept, `~` is not."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _partition_field(field: PartitionField, schemas: list[Schema]) -> pa.Field:
    found = (each.by_id.get(field.source_id) for each in schemas)
    source = next((column for column in found if column is not None), None)
    metadata = {FIELD_ID: str(field.field_id).encode()}
    if source is None:
        return pa.field(field.name, _type_without_source(field.transform), metadata=metadata)
    target = _type_of_field(field.transform, source.type)
    iceberg_type = type_name(source)
    if iceberg_type is not None and target.equals(source.type):
        metadata[TYPE_NAME] = iceberg_type.encode()
    return pa.field(field.name, target, metadata=metadata)


def _type_of_field(transform: str, source: pa.DataType) -> pa.DataType:
    """Return the result type; text for an unknown transform, as in Java."""
    try:
        return result_type(transform, source)
    except UnsupportedFeatureError:
        return pa.string()


def _type_without_source(transform: str) -> pa.DataType:
    name = transform.partition("[")[0]
    if name == "day":
        return pa.date32()
    return pa.int32() if name in ("bucket", "year", "month", "hour") else pa.null()


def _storage(source: pa.DataType) -> pa.DataType:
    if isinstance(source, pa.BaseExtensionType):
        return source.storage_type
    return source.value_type if pa.types.is_dictionary(source) else source


def _accepts(name: str, source: pa.DataType) -> bool:
    types = pa.types
    if name == "void":
        return True
    if name == "identity":
        return not types.is_nested(source)
    if name in DATE_TRANSFORMS:
        return types.is_timestamp(source) or (types.is_date32(source) and name != "hour")
    sliceable = _is_text(source) or _is_bytes(source) or types.is_decimal(source)
    if name == "truncate":
        return sliceable or types.is_signed_integer(source)
    whole = types.is_signed_integer(source) or types.is_temporal(source)
    return sliceable or whole or types.is_fixed_size_binary(source)


def _is_text(source: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(source) or types.is_large_string(source) or types.is_string_view(source)
    )


def _is_bytes(source: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(source) or types.is_large_binary(source) or types.is_binary_view(source)
    )


def _integers(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the stored integers as int64, zero for null."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    whole = values.cast(pa.int64())
    filled = whole.fill_null(0) if whole.null_count else whole
    return np.asarray(filled)


def _masked(result: np.ndarray[Any, Any], source: pa.Array, target: pa.DataType) -> pa.Array:
    mask = source.is_null().to_numpy(zero_copy_only=False) if source.null_count else None
    return pa.array(result, type=target, mask=mask)


def _apply_bucket(values: pa.Array, transform: Transform) -> pa.Array:
    source = values.type
    if pa.types.is_timestamp(source) or pa.types.is_time64(source) or pa.types.is_time32(source):
        hashed = hash_longs(_in_micros(values))
    elif pa.types.is_signed_integer(source) or pa.types.is_date32(source):
        hashed = hash_longs(_integers(values))
    elif pa.types.is_decimal(source):
        hashed = hash_slices(*shortest_bytes(*decimal_words(_decimals(values))))
    else:
        hashed = hash_bytes(_with_offsets(values))
    return _masked(_buckets(hashed, transform.width), values, pa.int32())


def _in_micros(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return times as microseconds, rounded down: what is hashed for every unit (Appendix B)."""
    stored = _integers(values)
    if values.type.unit == "us":
        return stored
    if values.type.unit == "ns":
        return np.asarray(stored // 1_000)
    return stored * {"s": 1_000_000, "ms": 1_000}[values.type.unit]


def _buckets(hashed: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    hashed &= np.uint32(0x7FFFFFFF)
    hashed -= (hashed // np.uint32(count)) * np.uint32(count)  # far quicker than a remainder
    return hashed.view(np.int32)


def _decimals(values: pa.Array) -> pa.Array:
    """Return decimals of any width in 128 bits."""
    if pa.types.is_decimal128(values.type):
        return values
    return values.cast(pa.decimal128(values.type.precision, values.type.scale))


def _with_offsets(values: pa.Array) -> pa.Array:
    """Return text and bytes in a layout of Arrow that has all values in one buffer."""
    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(values.type) else values


def _apply_truncate(values: pa.Array, transform: Transform) -> pa.Array:
    source, width = values.type, transform.width
    if _is_text(source):
        return pc.utf8_slice_codeunits(_with_offsets(values), 0, width).cast(source)
    if _is_bytes(source):
        return pc.binary_slice(_with_offsets(values), 0, width).cast(source)
    if pa.types.is_decimal(source):
        return rounded_down(_decimals(values), width).cast(source)
    whole = _integers(values)
    cut = (whole // width) * width  # rounds down, also below zero
    return _masked(cut, values, pa.int64()).cast(source, safe=False)


def _apply_date(values: pa.Array, transform: Transform) -> pa.Array:
    """Return the years, months, days or hours since 1970-01-01T00:00Z, rounded down."""
    unit = "D" if pa.types.is_date32(values.type) else values.type.unit
    times = _integers(values).view(f"datetime64[{unit}]")
    coarse = {"year": "Y", "month": "M", "day": "D", "hour": "h"}[transform.name]
    since = times.astype(f"datetime64[{coarse}]").view(np.int64).astype(np.int32)
    whole = _masked(since, values, pa.int32())
    return whole.view(pa.date32()) if transform.name == "day" else whole


_APPLY: dict[str, Callable[[pa.Array, Transform], pa.Array]] = {
    "bucket": _apply_bucket,
    "truncate": _apply_truncate,
    **dict.fromkeys(DATE_TRANSFORMS, _apply_date),
}
