"""Incoming columns in the table's types, by one rule for every kind of source.

Comes in: a source, and the table's schema. Goes out: the same rows, those columns cast that the
table has by name. Nothing is lost (`rowlake.write.casts`): a value that does not fit is named with
its row. Times without a zone are in the session's time zone.

A MERGE reads its source by its own types, since clauses compute with them: there only columns that
could not be assigned otherwise are cast (`only_loose`): texts, and times in nanoseconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.write.casts import decoded, is_castable, is_text
from rowlake.write.conform import Reading, cast_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.engine.spark import Engine

_NTZ, _INSTANT = "timestamp_ntz", "timestamp"


def wanted_fields(names: Sequence[str], like: pa.Schema) -> dict[int, pa.Field]:
    """Return the table's fields for incoming columns, by place: exact names before alike ones."""
    found = {}
    for place, name in enumerate(names):
        alike = [field for field in like if field.name.lower() == name.lower()]
        exact = [field for field in alike if field.name == name]
        if len(exact or alike) == 1:
            found[place] = (exact or alike)[0]
    return found


def needs_zone(schema: pa.Schema, like: pa.Schema) -> bool:
    """Return whether a column can only be cast by who knows the session's zone."""
    return any(
        (
            is_castable(schema.field(place).type, field.type, "UTC")
            and not is_castable(schema.field(place).type, field.type)
        )
        or (is_text(schema.field(place).type) and pa.types.is_timestamp(field.type))
        for place, field in wanted_fields(schema.names, like).items()
    )


def fitted_batches(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    like: pa.Schema,
    zone: str,
    *,
    only_loose: bool = False,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return batches with the columns that the table has in its types, and their schema."""
    wanted = {
        place: field
        for place, field in wanted_fields(schema.names, like).items()
        if _is_cast(schema.field(place).type, field.type, zone, only_loose=only_loose)
    }
    if not wanted:
        return schema, batches
    fields = [
        one.with_type(wanted[place].type) if place in wanted else one
        for place, one in enumerate(schema)
    ]
    fitted = pa.schema(fields)
    return fitted, _cast_batches(batches, wanted, fitted, zone)


def _is_cast(given: pa.DataType, to: pa.DataType, zone: str, *, only_loose: bool) -> bool:
    """Return whether a column is cast here; what cannot be is refused where it is written."""
    if given.equals(to) or pa.types.is_nested(to):
        return False
    plain = decoded(pa.nulls(0, given)).type
    if only_loose and not is_text(plain) and not _is_nanoseconds(plain):
        return False
    return not (is_text(plain) and is_text(to)) and is_castable(plain, to, zone)


def _is_nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _cast_batches(
    batches: Iterator[pa.RecordBatch], wanted: Mapping[int, pa.Field], schema: pa.Schema, zone: str
) -> Iterator[pa.RecordBatch]:
    row = 1
    for batch in batches:
        columns = list(batch.columns)
        for place, field in wanted.items():
            columns[place] = cast_column(columns[place], field, Reading(zone, row))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        row += batch.num_rows


# --- Spark's rows


def fitted_frame(frame: Any, like: pa.Schema, engine: Engine, *, only_loose: bool = False) -> Any:
    """Return a DataFrame whose texts are in the table's types, and its times in the right zone."""
    names = list(frame.columns)
    if len({name.lower() for name in names}) < len(names):
        return frame  # refused where it is written
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    texts: dict[int, pa.Field] = {}
    times: dict[int, str] = {}
    for place, field in wanted_fields(names, like).items():
        if kinds[place] == "string" and not is_text(field.type):
            if is_castable(pa.string(), field.type, "UTC") and _is_sparks(field.type):
                texts[place] = field
        elif not only_loose:
            changed = _time_cast(kinds[place], field.type)
            if changed:
                times[place] = changed
    if times:
        frame = frame.select(*[_cast_time(frame, at, times.get(at)) for at in range(len(names))])
    if not texts:
        return frame
    kernel = partial(_cast_texts, texts, engine.zone)
    return engine.with_types(frame, kernel, texts)


def _is_sparks(kind: pa.DataType) -> bool:
    """Return whether every Spark has the type: texts of others are cast where they are written."""
    return not pa.types.is_time(kind) and not _is_nanoseconds(kind)


def _time_cast(kind: str, to: pa.DataType) -> str | None:
    """Return what a time is cast to by Spark first, in the session's zone."""
    types = pa.types
    if types.is_timestamp(to) and to.tz is not None and kind in (_NTZ, "date"):
        return _INSTANT
    if kind == _INSTANT and (types.is_date(to) or (types.is_timestamp(to) and to.tz is None)):
        return _NTZ
    return None


def _cast_time(frame: Any, place: int, to: str | None) -> Any:
    name = frame.columns[place]
    column = frame["`" + name.replace("`", "``") + "`"]
    return column if to is None else column.cast(to).alias(name)


def _cast_texts(
    texts: Mapping[int, pa.Field], zone: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns, names = list(batch.columns), batch.schema.names
        for place, field in texts.items():
            columns[place] = cast_column(columns[place], field, Reading(zone))
        yield pa.RecordBatch.from_arrays(columns, names=names)
