"""Statistics as JSON texts -> columns.

Comes in: the `stats` texts of some adds, and the leaves that are wanted. Goes out: a `Leaves` of
arrays, one value per add, null where a text does not say or says it wrong: statistics that cannot
be read only prune less. Arrow's JSON reader takes all texts at once; what it refuses is read text
by text.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Path = tuple[str, ...]

SIDES = ("minValues", "maxValues", "nullCount")
ROWS = "numRecords"
_FIRST, _LONGEST = '{"numRecords":', 24
_ROWS_PATTERN = r'"numRecords"\s*:\s*(?P<rows>\d{1,18})\s*[,}]'
_NOT_NUMBERS = r'"-?(NaN|Infinity|INF)"'
_LEAST_BLOCK = 1 << 20


@dataclass(frozen=True)
class Leaf:
    """A column that statistics may speak of: its physical path, and how JSON has its values."""

    path: Path
    json_type: pa.DataType | None  # None: no bounds


@dataclass
class Leaves:
    """Statistics of some adds: row counts, and for each leaf an array of each side."""

    rows: pa.Array
    sides: dict[str, dict[Path, pa.Array]] = field(default_factory=dict)


def row_counts(texts: pa.Array) -> pa.Array:
    """Return `numRecords` of each text, null where it has none; writers put it first."""
    if pc.all(pc.fill_null(pc.starts_with(texts, _FIRST), True)).as_py():
        start = pc.utf8_slice_codeunits(texts, len(_FIRST), len(_FIRST) + _LONGEST)
        found = _captured(start, r"^\s*(?P<rows>\d{1,18})\s*[,}]")
        if found.null_count == texts.null_count:
            return found
    named = pc.count_substring(texts, f'"{ROWS}"')
    if (pc.max(named).as_py() or 0) > 1:  # a column of that name
        return _parsed(texts, ()).rows
    return _captured(texts, _ROWS_PATTERN)


def _captured(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.struct_field(pc.extract_regex(texts, pattern), "rows").cast(pa.int64())


def read_leaves(texts: pa.Array, wanted: Sequence[Leaf]) -> Leaves:
    """Return the statistics of these leaves."""
    return _parsed(texts, wanted) if wanted else Leaves(row_counts(texts))


def _parsed(texts: pa.Array, wanted: Sequence[Leaf]) -> Leaves:
    try:
        return _parsed_at_once(texts, wanted)
    except (pa.ArrowException, ValueError):
        return _parsed_one_by_one(texts.to_pylist(), wanted)


def _types(leaf: Leaf) -> dict[str, pa.DataType]:
    bounds = {} if leaf.json_type is None else dict.fromkeys(SIDES[:2], leaf.json_type)
    return {**bounds, SIDES[2]: pa.int64()}


def _parsed_at_once(texts: pa.Array, wanted: Sequence[Leaf]) -> Leaves:
    if not len(texts):
        return _parsed_one_by_one([], wanted)
    clean = pc.fill_null(pc.replace_substring_regex(texts, r"[\r\n]", " "), "{}")
    clean = pc.if_else(pc.equal(clean, ""), "{}", clean)
    # Arrow's parser crashes at a null in the place of the first object, and blanks are no row.
    if not pc.all(pc.match_substring_regex(clean, r"^\s*\{")).as_py():
        raise ValueError("a text is no object")
    if pc.any(pc.match_substring_regex(clean, _NOT_NUMBERS)).as_py():
        clean = pc.replace_substring_regex(clean, _NOT_NUMBERS, "null")
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(clean)], clean), "\n")
    data = lines[0].as_buffer()
    schema = _schema(wanted)
    longest = pc.max(pc.binary_length(clean)).as_py()
    table = arrow_json.read_json(
        io.BytesIO(data),
        arrow_json.ReadOptions(block_size=max(_LEAST_BLOCK, longest + 2)),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(texts):
        raise ValueError(f"{table.num_rows} objects in {len(texts)} texts")
    found = Leaves(_one(table[ROWS]), {side: {} for side in SIDES})
    known = {side: dict(_flat(_one(table[side]))) for side in SIDES if side in schema.names}
    for leaf in wanted:
        for side in _types(leaf):
            found.sides[side][leaf.path] = known[side][leaf.path]
    return found


def _flat(values: pa.StructArray, above: Path = ()) -> Iterator[tuple[Path, pa.Array]]:
    """Yield the leaves of nested structs; tables may have very many columns."""
    for one, inside in zip(values.type, values.flatten(), strict=True):
        path = (*above, one.name)
        if pa.types.is_struct(one.type):
            yield from _flat(inside, path)
        else:
            yield path, inside


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _schema(wanted: Iterable[Leaf]) -> pa.Schema:
    """Return what of the statistics is to be read, nested as they are."""
    trees: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
    for leaf in wanted:
        for side, kind in _types(leaf).items():
            level = trees[side]
            for name in leaf.path[:-1]:
                level = level.setdefault(name, {})
            level[leaf.path[-1]] = kind
    fields = [pa.field(side, _struct(tree)) for side, tree in trees.items() if tree]
    return pa.schema([pa.field(ROWS, pa.int64()), *fields])


def _struct(tree: Mapping[str, Any]) -> pa.DataType:
    return pa.struct(
        [
            pa.field(name, _struct(below) if isinstance(below, dict) else below)
            for name, below in tree.items()
        ]
    )


def _parsed_one_by_one(texts: Sequence[str | None], wanted: Sequence[Leaf]) -> Leaves:
    objects = [_object(text) for text in texts]
    rows = [_value(one, (ROWS,), pa.int64()) for one in objects]
    found = Leaves(pa.array(rows, pa.int64()), {side: {} for side in SIDES})
    for leaf in wanted:
        for side, kind in _types(leaf).items():
            values = [_value(one, (side, *leaf.path), kind) for one in objects]
            found.sides[side][leaf.path] = pa.array(values, kind)
    return found


def _object(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _value(found: Any, path: Path, kind: pa.DataType) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return None
    try:
        if isinstance(found, bool) != pa.types.is_boolean(kind):
            return None
        if pa.types.is_string(kind) != isinstance(found, str):
            return None
        given = str(found) if pa.types.is_decimal(kind) else found
        scalar = (
            pa.scalar(given).cast(kind) if pa.types.is_decimal(kind) else pa.scalar(given, kind)
        )
        return scalar.as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
