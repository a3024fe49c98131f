"""Partition values written as text in folder names -> the table's types, encoded.

Texts are what Hive and Spark write: numbers, dates and times in ISO form, the rest as it is.
Times with a zone need it in the text: a folder name does not say in which zone it was written.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError, RowlakeError, SchemaMismatchError
from rowlake.model.schema import type_name
from rowlake.model.transform import partition_type
from rowlake.model.values import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.partition import PartitionSpec
    from rowlake.model.view import TableView

_ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


def encoded_partitions(
    view: TableView,
    spec: PartitionSpec,
    columns: Sequence[Sequence[str | None]],
    places: Sequence[str],
    *,
    checked: bool = True,
) -> list[tuple[bytes | None, ...]]:
    """Return one key per place; `columns` has the texts of each field of the spec.

    `checked` refuses null for a required column.
    """
    types = partition_type(spec, view.schema, view.schemas.values())
    encoded: list[list[bytes | None]] = []
    for index, field in enumerate(spec.fields):
        source = view.schema.by_id.get(field.source_id)
        if checked and source is not None and not source.nullable and None in columns[index]:
            place = places[columns[index].index(None)]
            raise SchemaMismatchError(
                f"Cannot add {place}: the required column {source.name} is null there.",
                column=source.name,
            )
        if field.transform == "void":
            encoded.append([None] * len(places))
            continue
        known = types.field(index) if source is None else source
        encoded.append(_encoded(columns[index], known, types.field(index).type, places))
    return list(zip(*encoded, strict=True)) if encoded else [()] * len(places)


def _encoded(
    texts: Sequence[str | None], column: pa.Field, kind: pa.DataType, places: Sequence[str]
) -> list[bytes | None]:
    known: dict[str | None, bytes | None] = {None: None}
    for text in dict.fromkeys(texts):
        if text is not None:
            known[text] = _encoded_text(text, column, kind, places[list(texts).index(text)])
    return [known[text] for text in texts]


def _encoded_text(text: str, column: pa.Field, kind: pa.DataType, place: str) -> bytes:
    try:
        value = _value(text, kind, type_name(column))
        return bytes(encode(pa.array([value], kind))[0].as_py())
    except (pa.ArrowException, ValueError, KeyError, TypeError, RowlakeError) as error:
        raise InvalidStatementError(
            f"Cannot add {place}: {text!r} is no {type_name(column) or kind} value for the "
            f"partition column {column.name}."
        ) from error


def _value(text: str, kind: pa.DataType, name: str | None) -> object:
    if name == "uuid":
        return uuid.UUID(text).bytes
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()]
    if pa.types.is_string(kind):
        return text
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return text.encode()
    if pa.types.is_timestamp(kind) and kind.tz is not None and not _ZONE.search(text):
        raise ValueError(text)
    if pa.types.is_time(kind):
        return pa.scalar(f"1970-01-01T{text}").cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.scalar(text.strip(), pa.string()).cast(kind)
