"""Statistics of written files -> the `stats` texts of their adds (PROTOCOL.md, "Statistics").

Comes in: `WRITTEN_FILES`, with counts and bounds by field id. Goes out: one JSON text per file, by
physical names. Invariant: a bound holds for every row, for readers that know NaN as the greatest
number: a file with NaN states no maximum. Columns beyond the first 32, or those that the table's
properties name, have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.delta.json_columns import literals, nested_objects, objects
from rowlake.delta.partitions import item_of
from rowlake.delta.stats_json import ROWS, SIDES
from rowlake.errors import InvalidStatementError
from rowlake.model.schema import field_id, type_name
from rowlake.model.values import decode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rowlake.delta.schema import TableColumns

FIRST_COLUMNS = "delta.dataSkippingNumIndexedCols"
NAMED_COLUMNS = "delta.dataSkippingStatsColumns"
DEFAULT_COLUMNS = 32
PREFIX = 32  # code points of a text
LONGEST = 64  # code points that a maximum may take before it is left out
TIGHT = "tightBounds"
_ASCII_LAST, _LAST = "\x7f", "\U0010ffff"
_NAME_PART = re.compile(r"`((?:[^`]|``)+)`|([^.,`]+)")


@dataclass(frozen=True)
class StatsColumns:
    """The columns that have statistics, as field ids in the order of the schema."""

    columns: TableColumns
    ids: tuple[int, ...]


def stats_columns_of(
    columns: TableColumns, properties: Mapping[str, str], clustered: Collection[int] = ()
) -> StatsColumns:
    """Return the columns that a table's properties want statistics of, and clustered ones."""
    leaves = list(_leaves(columns))
    named = properties.get(NAMED_COLUMNS)
    if named is not None:
        wanted = _named(named)
        chosen = [one for one, path in leaves if _is_named(path, wanted)]
    else:
        count = _count(properties.get(FIRST_COLUMNS, str(DEFAULT_COLUMNS)))
        chosen = [one for one, _ in (leaves if count < 0 else leaves[:count])]
    chosen += [one for one, _ in leaves if one in clustered and one not in chosen]
    return StatsColumns(columns, tuple(chosen))


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidStatementError(f"{FIRST_COLUMNS} must be a number, not {text!r}.") from error


def _leaves(columns: TableColumns) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (id, path of names) of what statistics may speak of: no structs, no partitions."""
    partitions = {one.source_id for one in columns.spec.fields}
    for path, field in columns.schema.walk():
        number = field_id(field)
        is_struct = pt.is_struct(field.type) and type_name(field) != "variant"
        if number is None or number in partitions or is_struct:
            continue
        if number in columns.physical:
            yield number, path


def _named(text: str) -> list[tuple[str, ...]]:
    """Return the paths of a list of column names, which may be in backticks."""
    found: list[tuple[str, ...]] = []
    for name in re.findall(r"(?:`(?:[^`]|``)+`|[^,`])+", text):
        parts = _NAME_PART.findall(name.strip())
        found.append(tuple((a.replace("``", "`") or b).strip().lower() for a, b in parts))
    return found


def _is_named(path: tuple[str, ...], wanted: list[tuple[str, ...]]) -> bool:
    lowered = tuple(name.lower() for name in path)
    return any(lowered[: len(one)] == one for one in wanted)


def stats_texts(written: pa.Table, of: StatsColumns, *, with_tight_bounds: bool) -> pa.Array:
    """Return the statistics of files; `with_tight_bounds` where the table may have vectors."""
    size = written.num_rows
    maps = {name: _one(written[name]) for name in _MAPS}
    low, high, nulls = ({} for _ in SIDES)
    for number in of.ids:
        path = of.columns.physical[number]
        nulls[path] = literals(item_of(maps["null_value_counts"], number))
        kind = of.columns.schema.by_id[number].type
        if has_bounds(kind):
            low[path], high[path] = _bounds(maps, number, kind)
    fields = {
        ROWS: literals(_one(written["record_count"])),
        SIDES[0]: nested_objects(low, size),
        SIDES[1]: nested_objects(high, size),
        SIDES[2]: nested_objects(nulls, size),
    }
    if with_tight_bounds:
        fields[TIGHT] = pa.repeat(pa.scalar("true"), size)
    return objects(fields, size)


_MAPS = ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def has_bounds(kind: pa.DataType) -> bool:
    """Return whether Delta keeps the least and the greatest value of columns of a type."""
    is_number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    return bool(is_number or pt.is_string(kind) or pt.is_date(kind) or pt.is_timestamp(kind))


def _bounds(
    maps: Mapping[str, pa.MapArray], number: int, kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    low = decode(item_of(maps["lower_bounds"], number), kind)
    high = decode(item_of(maps["upper_bounds"], number), kind)
    if pt.is_floating(kind):
        nans = item_of(maps["nan_value_counts"], number)
        high = pc.if_else(pc.equal(nans, 0), high, None)
    if pt.is_string(kind):
        return literals(pc.utf8_slice_codeunits(low, 0, PREFIX)), literals(longest_texts(high))
    return literals(low), literals(high)


def longest_texts(texts: pa.Array) -> pa.Array:
    """Return upper bounds of texts, of about 32 code points; null where there is no short one."""
    long = pc.greater(pc.utf8_length(texts), PREFIX)
    if not pc.any(long, min_count=0).as_py():
        return texts
    some = [_cut(one) for one in texts.filter(long).to_pylist()]
    return pc.replace_with_mask(texts, pc.fill_null(long, False), pa.array(some, pa.string()))


def _cut(text: str) -> str | None:
    """Return a prefix and a character that is greater than the one after it."""
    for length in range(PREFIX, min(len(text), LONGEST)):
        if text[length] < _ASCII_LAST:
            return text[:length] + _ASCII_LAST
        if text[length] != _LAST:
            return text[:length] + _LAST
    return text if len(text) <= LONGEST else None


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
