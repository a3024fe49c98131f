"""Convert data to a table's schema: the same values in the table's Arrow types.

Comes in: a batch whose columns are named as the table's. Goes out: the same rows as exactly
`schema.arrow`. Invariants: no value changes (a cast that would lose anything raises), instants stay
instants, no null gets into a required field at any depth. What a statement may assign to what (ANSI
store assignment) was decided before; only representations change here.

Raises `SchemaMismatchError` with the column and a sample value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError, UnsupportedFeatureError, shown
from rowlake.model.column_rules import is_unmade
from rowlake.model.schema import WRITE_DEFAULT, children, type_name
from rowlake.model.values import from_json
from rowlake.write.casts import cast_exactly, decoded
from rowlake.write.uuids import uuids_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.schema import Schema

Path = tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """How values are read: the session's zone, and the number of the first row, where known."""

    zone: str | None = None
    first_row: int | None = None


PLAIN = Reading()


def conform(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the batch in the schema's columns, order and types.

    Columns are matched by name, case-insensitively if unambiguous; a missing one gets its
    write-default, else null. A column that the schema does not have raises.
    """
    wanted = list(schema.arrow)
    sources = _match(batch.schema.names, wanted, ())
    columns = [
        _missing(found, len(batch), (found.name,))
        if place is None
        else _fitted(batch.column(place), found, (found.name,))
        for found, place in zip(wanted, sources, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


def _match(names: Sequence[str], wanted: list[pa.Field], path: Path) -> list[int | None]:
    """Return the place of each wanted field among the names, None where it is missing."""
    exact = {name: place for place, name in enumerate(names)}
    lower: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        lower.setdefault(name.lower(), []).append(place)
    places: list[int | None] = []
    for found in wanted:
        alike = lower.get(found.name.lower(), [])
        only = alike[0] if len(alike) == 1 else None
        places.append(exact.get(found.name, only))
    extra = [name for place, name in enumerate(names) if place not in places]
    if extra:
        raise SchemaMismatchError(
            f"Cannot write {_of(path)}: the table has no column {shown(extra)}.",
            column=".".join((*path, extra[0])),
        )
    return places


def _of(path: Path) -> str:
    return f"column {'.'.join(path)}" if path else "these rows"


def _missing(wanted: pa.Field, length: int, path: Path) -> pa.Array:
    default = (wanted.metadata or {}).get(WRITE_DEFAULT)
    if default not in (None, b"null"):
        return pa.repeat(from_json(default.decode(), wanted), length).cast(wanted.type)
    if is_unmade(wanted) and length:
        raise UnsupportedFeatureError(
            f"Cannot write column {'.'.join(path)}: the table makes its values, and this operation "
            "does not. Give the column in the rows, or use append, INSERT, UPDATE or MERGE."
        )
    if not wanted.nullable and length:
        raise SchemaMismatchError(
            f"Cannot write column {'.'.join(path)}: it is required, has no default, "
            f"and the data does not have it.",
            column=".".join(path),
        )
    return pa.nulls(length, wanted.type)


def cast_column(values: pa.Array, wanted: pa.Field, how: Reading) -> pa.Array:
    """Return a column as the wanted type, by the same rule; nulls are not looked at."""
    if values.type.equals(wanted.type):
        return values
    found = _cast(values, wanted, (wanted.name,), how)
    return found if found.type.equals(wanted.type) else found.cast(wanted.type)


def _fitted(values: pa.Array, wanted: pa.Field, path: Path) -> pa.Array:
    """Return values as the wanted type, checked for nulls."""
    fitted = cast_column(values, wanted, PLAIN)
    _validate_nulls(fitted, wanted, path)
    return fitted


def _cast(values: pa.Array, wanted: pa.Field, path: Path, how: Reading) -> pa.Array:
    plain = decoded(values)
    if pa.types.is_null(plain.type):
        return pa.nulls(len(plain), wanted.type)
    if pa.types.is_struct(wanted.type) and pa.types.is_struct(plain.type):
        return _cast_struct(plain, wanted, path, how)
    if pa.types.is_map(wanted.type) and pa.types.is_map(plain.type):
        return _cast_map(plain, wanted, path, replace(how, first_row=None))
    if pa.types.is_list(wanted.type) and _is_list(plain.type):
        return _cast_list(plain, wanted, path, replace(how, first_row=None))
    if type_name(wanted) == "uuid" and not pa.types.is_fixed_size_binary(plain.type):
        return uuids_from_text(plain, ".".join(path))
    return cast_exactly(plain, wanted, ".".join(path), zone=how.zone, first_row=how.first_row)


def _is_list(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type)
        or types.is_large_list_view(arrow_type)
    )


def _cast_struct(values: pa.StructArray, wanted: pa.Field, path: Path, how: Reading) -> pa.Array:
    fields = children(wanted.type)
    given = [child.name for child in values.type]
    places = _match_struct(given, fields, path)
    parts = values.flatten()
    present = values.is_valid()
    columns = []
    for child, place in zip(fields, places, strict=True):
        below = (*path, child.name)
        if place is None:
            column = _missing(child, len(values), below)
        elif parts[place].type.equals(child.type):
            column = parts[place]
        else:
            column = _cast(parts[place], child, below, how)
        columns.append(column if column.type.equals(child.type) else column.cast(child.type))
    mask = pc.invert(present) if values.null_count else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _match_struct(given: list[str], fields: list[pa.Field], path: Path) -> list[int | None]:
    """Match the fields of a struct by name; by place where no name is alike and counts agree."""
    known = {child.name.lower() for child in fields}
    if len(given) == len(fields) and not any(name.lower() in known for name in given):
        return list(range(len(given)))
    return _match(given, fields, path)


def _cast_list(values: pa.Array, wanted: pa.Field, path: Path, how: Reading) -> pa.Array:
    element = children(wanted.type)[0]
    if not pa.types.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    items, offsets = values.flatten(), _dense_offsets(values)
    fitted = (
        items if items.type.equals(element.type) else _cast(items, element, (*path, "element"), how)
    )
    return pa.ListArray.from_arrays(
        offsets, fitted, type=wanted.type, mask=values.is_null() if values.null_count else None
    )


def _cast_map(values: pa.MapArray, wanted: pa.Field, path: Path, how: Reading) -> pa.Array:
    key, item = children(wanted.type)
    keys, items = _entries(values)
    fitted_keys = keys if keys.type.equals(key.type) else _cast(keys, key, (*path, "key"), how)
    fitted = items if items.type.equals(item.type) else _cast(items, item, (*path, "value"), how)
    return pa.MapArray.from_arrays(
        _dense_offsets(values),
        fitted_keys,
        fitted,
        type=wanted.type,
        mask=values.is_null() if values.null_count else None,
    )


def _entries(values: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the items of all maps, one after the other."""
    present = values.filter(values.is_valid()) if values.null_count else values
    if not len(present):
        return present.keys.slice(0, 0), present.items.slice(0, 0)
    first, last = present.offsets[0].as_py(), present.offsets[-1].as_py()
    return present.keys.slice(first, last - first), present.items.slice(first, last - first)


def _dense_offsets(values: pa.ListArray | pa.MapArray) -> pa.Array:
    """Return offsets into the flattened values (which lack what null lists may hide)."""
    lengths = pc.pairwise_diff(values.offsets)[1:]
    if values.null_count:
        lengths = pc.if_else(values.is_valid(), lengths, 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def _validate_nulls(values: pa.Array, wanted: pa.Field, path: Path) -> None:
    """Check required fields at every depth; below a null struct or list nothing is required."""
    if not wanted.nullable and values.null_count:
        place = pc.index(values.is_null(), True).as_py()
        raise SchemaMismatchError(
            f"Cannot write null to the required column {'.'.join(path)} "
            f"({values.null_count} of {len(values)} rows; first at row {place} of the batch).",
            column=".".join(path),
        )
    below = children(wanted.type)
    if not any(_has_required(child) for child in below):
        return
    if pa.types.is_struct(wanted.type):
        present = values.filter(values.is_valid()) if values.null_count else values
        for child, part in zip(below, present.flatten(), strict=True):
            _validate_nulls(part, child, (*path, child.name))
    elif pa.types.is_map(wanted.type):
        keys, items = _entries(values)
        _validate_nulls(keys, below[0], (*path, "key"))
        _validate_nulls(items, below[1], (*path, "value"))
    else:
        _validate_nulls(values.flatten(), below[0], (*path, "element"))


def _has_required(found: pa.Field) -> bool:
    return not found.nullable or any(_has_required(child) for child in children(found.type))
