"""What users ask for (columns, partitioning, order) -> PyIceberg's specs and sort orders.

Comes in: `PartitionBy` / `OrderBy` values with column paths. Goes out: specs bound to a schema.
Unknown columns and transforms that do not fit a column's type are the caller's mistakes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import parse_transform

from rowlake.errors import InvalidStatementError, shown
from rowlake.model.partition import OrderBy, PartitionBy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.types import NestedField

_CALL = re.compile(r"(\w+)\s*\((.+)\)", re.DOTALL)
_PLURALS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_PLURALS |= {"date": "day", "date_hour": "hour"}
TRANSFORMS = ("identity", "year", "month", "day", "hour", "bucket", "truncate", "void")
_SUFFIX = {"identity": "", "year": "_year", "month": "_month", "day": "_day", "hour": "_hour"}


def partition_by(text: str | PartitionBy) -> PartitionBy:
    """Read `col`, `days(ts)`, `bucket(16, id)`, `truncate(name, 4)` as a partition field."""
    if isinstance(text, PartitionBy):
        return text
    if not isinstance(text, str):
        raise InvalidStatementError(
            f"{text!r} is no partition field: write it as 'col', 'days(ts)' or 'bucket(16, id)'."
        )
    call = _CALL.fullmatch(text.strip())
    if call is None or not call[2].strip():
        return PartitionBy(split_path(text))
    name, (column, width) = call[1].lower(), _column_and_width(call[2].strip())
    transform = _PLURALS.get(name, name)
    return PartitionBy(split_path(column), f"{transform}[{width}]" if width else transform)


def _column_and_width(text: str) -> tuple[str, str]:
    """Split `16, id` and `name, 4`; the width is empty where there is none."""
    first, _, rest = (part.strip() for part in text.partition(","))
    before, text = (first, rest) if first.isdecimal() and rest else ("", text)
    start, _, last = (part.strip() for part in text.rpartition(","))
    after, text = (last, start) if last.isdecimal() and start else ("", text)
    return text, before or after


def split_path(text: str) -> tuple[str, ...]:
    """Split a column path at dots outside backticks."""
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", text.strip())
    return tuple(quoted.replace("``", "`") or plain.strip() for quoted, plain in parts)


def source_field(schema: IcebergSchema, path: tuple[str, ...]) -> NestedField:
    """Return the column at a path; exact case first, then any case."""
    name = ".".join(path)
    names = {column: column for column in schema.column_names}
    lower = {column.lower(): column for column in schema.column_names}
    found = names.get(name) or lower.get(name.lower())
    if found is not None:
        return schema.find_field(found)
    raise InvalidStatementError(
        f"There is no column {name}. The table has: {shown(schema.column_names)}."
    )


def transform_for(field: NestedField, text: str) -> Any:
    """Return a PyIceberg transform that fits the column, or say why it does not."""
    try:
        transform = parse_transform(text)
    except ValueError as error:
        raise _unknown_transform(text) from error
    if text.partition("[")[0].lower() not in TRANSFORMS:
        raise _unknown_transform(text)
    if getattr(transform, "num_buckets", 1) < 1 or getattr(transform, "width", 1) < 1:
        raise InvalidStatementError(
            f"Cannot partition column {field.name} by {text}: the number must be at least 1."
        )
    if str(transform) not in {text, text.lower()} or not transform.can_transform(field.field_type):
        raise InvalidStatementError(
            f"The transform {text} does not fit column {field.name} of type {field.field_type}."
        )
    return transform


def _unknown_transform(text: str) -> InvalidStatementError:
    return InvalidStatementError(
        f"Unknown partition transform {text} (expected one of: {', '.join(TRANSFORMS)}). bucket "
        "and truncate take a number."
    )


def default_name(wanted: PartitionBy, field_name: str) -> str:
    """Return the name that Iceberg gives a partition field by itself."""
    kind = wanted.transform.partition("[")[0]
    if kind == "bucket":
        return f"{field_name}_bucket"
    if kind == "truncate":
        return f"{field_name}_trunc"
    return f"{field_name}{_SUFFIX.get(kind, '_' + kind)}"


def spec_from(wanted: Sequence[str | PartitionBy], schema: IcebergSchema) -> PartitionSpec:
    """Return a partition spec for these fields."""
    fields = []
    for index, item in enumerate(map(partition_by, wanted)):
        source = source_field(schema, item.column)
        name = schema.find_column_name(source.field_id) or source.name
        fields.append(
            PartitionField(
                source_id=source.field_id,
                field_id=PARTITION_FIELD_ID_START + index,
                transform=transform_for(source, item.transform),
                name=item.name or default_name(item, name),
            )
        )
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise InvalidStatementError(f"Partition fields need different names: {shown(names)}.")
    return PartitionSpec(*fields)


def order_from(wanted: Sequence[OrderBy], schema: IcebergSchema, order_id: int = 1) -> SortOrder:
    """Return a sort order for these keys; no keys means unsorted (order 0)."""
    if not wanted:
        return SortOrder(order_id=0)
    return SortOrder(
        *[_sort_field(item, schema) for item in wanted],
        order_id=order_id,
    )


def _sort_field(item: OrderBy, schema: IcebergSchema) -> SortField:
    if not isinstance(item, OrderBy):
        raise InvalidStatementError(f"{item!r} is no sort key: give OrderBy(('column',)).")
    source = source_field(schema, item.column)
    return SortField(
        source_id=source.field_id,
        transform=transform_for(source, item.transform),
        direction=SortDirection.ASC if item.ascending else SortDirection.DESC,
        null_order=NullOrder.NULLS_FIRST if item.nulls_first else NullOrder.NULLS_LAST,
    )
