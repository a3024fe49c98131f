"""Field ids of a data file's own schema.

Comes in: the Arrow schema that a reader gives for a file. Goes out: the same schema where every
field that the table may know has its id. Files that have ids keep them; for the others the
table's name mapping gives ids by name (spec, "Column Projection"); without a mapping, Parquet
columns count from 1 in file order and other formats go by the table's names, as Iceberg Java
does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import CorruptTableError
from rowlake.model.schema import FIELD_ID, children, field_id
from rowlake.scan.shape import leaf_ranges, with_children

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping

ORC_ID = b"iceberg.id"


@dataclass(frozen=True)
class FileSchema:
    """A data file's schema with ids; `inferred` where the file itself has none."""

    arrow: pa.Schema
    inferred: bool

    @cached_property
    def fields(self) -> list[tuple[pa.Field, range]]:
        """Each column with the numbers of its leaves."""
        return list(leaf_ranges(self.arrow))

    @cached_property
    def places(self) -> dict[int, int]:
        """The places of columns by their ids."""
        ids = [field_id(field) for field in self.arrow]
        return {known: at for at, known in enumerate(ids) if known is not None}


@dataclass(frozen=True)
class Names:
    """One level of a name mapping: per name the id (or None) and the level below."""

    by_name: Mapping[str, tuple[int | None, Names]]


NO_NAMES = Names({})


def with_ids(
    found: pa.Schema, table: Schema, name_mapping: NameMapping | None, *, by_position: bool
) -> FileSchema:
    """Return a file's schema with ids; `by_position` is for files without ids and mapping."""
    ids_count = name_mapping is None or not name_mapping.over_ids
    unnumbered = {} if name_mapping is None else dict(name_mapping.unnumbered)
    if ids_count and any(map(_has_id, found)):
        return FileSchema(_numbered(found, unnumbered), inferred=False)
    if name_mapping is not None:
        known = parse_name_mapping(name_mapping.text).by_name
        more = {name: (number, NO_NAMES) for name, number in unnumbered.items()}
        names = Names({**more, **known})
    elif by_position:
        return FileSchema(_positional(found, table), inferred=True)
    else:
        names = names_of(list(table.arrow))
    return FileSchema(pa.schema(_named(list(found), names)), inferred=True)


def _numbered(found: pa.Schema, unnumbered: Mapping[str, int]) -> pa.Schema:
    """Return columns that have no id with the ids of their names."""
    for place, field in enumerate(found):
        if field.name in unnumbered and field_id(field) is None:
            number = str(unnumbered[field.name]).encode()
            found = found.set(place, field.with_metadata({FIELD_ID: number}))
    return found


def from_orc(schema: pa.Schema) -> pa.Schema:
    """Return an ORC file's schema with the ids of its `iceberg.id` attributes."""

    def change(field: pa.Field) -> pa.Field:
        value = (field.metadata or {}).get(ORC_ID)
        return _changed(field, None if value is None else int(value), change)

    return pa.schema([change(field) for field in schema])


def parse_name_mapping(text: str) -> Names:
    """Return a `schema.name-mapping.default` as a look-up by name."""
    try:
        return _level(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(
            "the table property schema.name-mapping.default",
            f"it is not a name mapping ({error})",
            advice="Set the property to a mapping as the Iceberg specification has it.",
        ) from error


def names_of(fields: Sequence[pa.Field]) -> Names:
    """Return the mapping that the table's own names make."""
    return Names({field.name: (field_id(field), _names_below(field)) for field in fields})


def _names_below(field: pa.Field) -> Names:
    below = children(field.type)
    return Names(
        {
            name: (field_id(child), _names_below(child))
            for name, child in zip(_roles(field.type), below, strict=True)
        }
    )


def _level(mapping: Sequence[Mapping[str, Any]]) -> Names:
    found: dict[str, tuple[int | None, Names]] = {}
    for entry in mapping:
        below = _level(entry.get("fields") or [])
        for name in entry["names"]:
            found[name] = (entry.get("field-id"), below)
    return Names(found)


def _has_id(field: pa.Field) -> bool:
    return field_id(field) is not None or any(map(_has_id, children(field.type)))


def _roles(arrow_type: pa.DataType) -> list[str]:
    """Return what a name mapping calls the children: lists and maps have fixed names."""
    if pa.types.is_struct(arrow_type):
        return [child.name for child in children(arrow_type)]
    return {0: [], 1: ["element"], 2: ["key", "value"]}[len(children(arrow_type))]


def _named(fields: Sequence[pa.Field], names: Names) -> list[pa.Field]:
    return [_named_field(field, field.name, names) for field in fields]


def _named_field(field: pa.Field, name: str, names: Names) -> pa.Field:
    wanted, below = names.by_name.get(name, (None, NO_NAMES))
    remaining = [
        _named_field(child, role, below)
        for role, child in zip(_roles(field.type), children(field.type), strict=True)
    ]
    return _rebuilt(field, wanted, remaining)


def _positional(found: pa.Schema, table: Schema) -> pa.Schema:
    """Return ids by position for columns; what is nested below goes by the table's names."""
    fields = []
    for position, field in enumerate(found, start=1):
        known = table.by_id.get(position)
        below = NO_NAMES if known is None else _names_below(known)
        names = Names({field.name: (position, below)})
        fields.append(_named_field(field, field.name, names))
    return pa.schema(fields)


def _changed(
    field: pa.Field, wanted: int | None, change: Callable[[pa.Field], pa.Field]
) -> pa.Field:
    return _rebuilt(field, wanted, [change(child) for child in children(field.type)])


def _rebuilt(field: pa.Field, wanted: int | None, below: Sequence[pa.Field]) -> pa.Field:
    metadata = {} if wanted is None else {FIELD_ID: str(wanted).encode()}
    arrow_type = with_children(field.type, below) if below else field.type
    return pa.field(field.name, arrow_type, field.nullable, metadata=metadata)
