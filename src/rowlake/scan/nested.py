"""A file's nested values as the table's nested types, field by field, by id.

Comes in: a file's field (its leaves perhaps pruned) and the table's. Goes out: a function from
arrays to arrays, or None where nothing has to change. Struct fields are matched by id at their
level: reordered, renamed, dropped and added fields, with initial defaults, at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import INITIAL_DEFAULT, children, field_id, type_name
from rowlake.model.values import from_json
from rowlake.scan.convert import Converter, TypeMismatchError, primitive_converter
from rowlake.scan.shape import leaf_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

Part = Callable[[pa.StructArray], pa.Array]


def leaves_of(source: pa.Field, numbers: range, target: pa.Field) -> set[int]:
    """Return the leaves of a file's field that hold what the table's field needs."""
    below = list(leaf_ranges(children(source.type), numbers.start))
    if not below or not children(target.type):
        return set(numbers)
    found: set[int] = set()
    for child, match in _matches([field for field, _ in below], source, target):
        if match is not None:
            found |= leaves_of(below[match][0], below[match][1], child)
    # Some leaf must be read to know where the value itself is null.
    return found or {numbers.start}


def converter(source: pa.Field, target: pa.Field, constants: Mapping[int, Any]) -> Converter | None:
    """Return what turns a file's arrays into the table's; None where they are the same."""
    if type_name(target) == "variant":
        _validate_variant(source, target)
    if pt.is_struct(target.type) and pt.is_struct(source.type):
        return _struct_converter(source, target, constants)
    if pt.is_map(target.type):
        return _map_converter(source, target, constants)
    if pt.is_list(target.type):
        return _list_converter(source, target, constants)
    if children(source.type) or children(target.type):
        raise TypeMismatchError(f"{source.type} in the file, {target.type} in the table")
    return primitive_converter(source.type, target.type)


def _validate_variant(source: pa.Field, target: pa.Field) -> None:
    """Refuse variants that the table has as bytes, and those that the file has in parts."""
    parts = {child.name for child in children(source.type)}
    if parts and (not pt.is_struct(target.type) or "typed_value" in parts):
        kind = "shredded variant" if "typed_value" in parts else "variant"
        raise UnsupportedFeatureError(
            f"Cannot read column {target.name}: {kind} is not supported yet."
        )


def default_of(field: pa.Field) -> pa.Scalar:
    """Return the value of a field that a file does not have (spec, "Default values").

    Raises `TypeMismatchError` for a required field without a default.
    """
    text = (field.metadata or {}).get(INITIAL_DEFAULT)
    if text is None or text == b"null":
        if not field.nullable:
            raise TypeMismatchError("required, but not in the file and without a default")
        return pa.scalar(None, field.type)
    if pt.is_struct(field.type):
        parts = {child.name: default_of(child).as_py() for child in children(field.type)}
        return pa.scalar(parts, field.type)
    return from_json(text.decode(), field)


def constant(value: Any, field: pa.Field) -> pa.Scalar:
    """Return a partition value as a scalar of a column's type."""
    return pa.scalar(getattr(value, "bytes", value), field.type)


def filled(value: pa.Scalar, length: int) -> pa.Array:
    """Return an array of one value."""
    return pa.repeat(value, length) if value.is_valid else pa.nulls(length, value.type)


def _matches(
    below: Sequence[pa.Field], source: pa.Field, target: pa.Field
) -> list[tuple[pa.Field, int | None]]:
    """Return the target's children, each with the index of the source's child that it reads."""
    wanted = children(target.type)
    if not pt.is_struct(target.type):
        return list(zip(wanted, range(len(below)), strict=False))
    if not pt.is_struct(source.type):
        return []
    places = {field_id(child): index for index, child in enumerate(below)}
    places.pop(None, None)
    return [(child, places.get(field_id(child))) for child in wanted]


def _struct_converter(
    source: pa.Field, target: pa.Field, constants: Mapping[int, Any]
) -> Converter | None:
    below = children(source.type)
    parts, same = [], source.type.equals(target.type)
    for position, (child, match) in enumerate(_matches(below, source, target)):
        if match is None:
            parts.append(_absent(child, constants))
            same = False
        else:
            change = converter(below[match], child, constants)
            parts.append(_present(match, change))
            same = same and change is None and match == position
    if same:
        return None
    fields = children(target.type)

    def convert(array: pa.StructArray) -> pa.Array:
        mask = pc.is_null(array) if array.null_count else None
        built = [part(array) for part in parts]
        return pa.StructArray.from_arrays(built, fields=fields, mask=mask)

    return convert


def _absent(child: pa.Field, constants: Mapping[int, Any]) -> Part:
    known = field_id(child) or 0
    value = constant(constants[known], child) if known in constants else default_of(child)
    return lambda array: filled(value, len(array))


def _present(index: int, change: Converter | None) -> Part:
    if change is None:
        return lambda array: array.field(index)
    return lambda array: change(array.field(index))


def _list_converter(
    source: pa.Field, target: pa.Field, constants: Mapping[int, Any]
) -> Converter | None:
    if not (pt.is_list(source.type) or pt.is_large_list(source.type)):
        raise TypeMismatchError(f"{source.type} in the file, {target.type} in the table")
    change = converter(source.type.value_field, target.type.value_field, constants)
    if change is None and source.type.equals(target.type):
        return None
    to = target.type

    def convert(array: pa.Array) -> pa.Array:
        offsets, values = _rebased(array)
        built = values if change is None else change(values)
        return pa.ListArray.from_arrays(offsets, built, type=to, mask=_nulls(array))

    return convert


def _map_converter(
    source: pa.Field, target: pa.Field, constants: Mapping[int, Any]
) -> Converter | None:
    entries = _entry_fields(source, target)
    wanted = children(target.type)
    changes = [converter(*pair, constants) for pair in zip(entries, wanted, strict=True)]
    if changes == [None, None] and source.type.equals(target.type):
        return None
    to = target.type

    def convert(array: pa.Array) -> pa.Array:
        offsets, values = _rebased(array)
        keys, items = (
            values.field(index) if change is None else change(values.field(index))
            for index, change in enumerate(changes)
        )
        return pa.MapArray.from_arrays(offsets, keys, items, type=to, mask=_nulls(array))

    return convert


def _entry_fields(source: pa.Field, target: pa.Field) -> list[pa.Field]:
    """Return key and value of a map; Avro has maps without text keys as lists of pairs."""
    if pt.is_map(source.type):
        return children(source.type)
    element = children(source.type)[0] if pt.is_list(source.type) else None
    if element is None or not pt.is_struct(element.type) or element.type.num_fields != 2:
        raise TypeMismatchError(f"{source.type} in the file, {target.type} in the table")
    return children(element.type)


def _nulls(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _rebased(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets from 0 and just the values between them, whatever slice the array is."""
    if not len(array):
        return pa.array([0], pa.int32()), array.values[:0]
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    values = array.values.slice(first, last - first)
    if first or array.offset or not pt.is_int32(offsets.type):
        offsets = pc.subtract(offsets, first).cast(pa.int32())
    return offsets, values
