"""Columns -> JSON texts, one a row: the literals of values, and objects made of them.

Texts are made by columns, as they are for hundreds of thousands of files at once; only texts with
characters that JSON escapes are made one by one. Null stays null: what has no JSON form (NaN,
infinities, years beyond 9999) is null too, and objects leave nulls out.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Mapping

    Path = tuple[str, ...]

_ESCAPED = r'["\\\x00-\x1f]'
_MICROS_PER_MS = 1000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_MS_PER_DAY = 86_400_000


def literals(values: pa.Array) -> pa.Array:
    """Return each value of a column as JSON; times are cut to milliseconds, as Delta cuts them."""
    kind = values.type
    if pt.is_string(kind):
        return quoted(values)
    if pt.is_date(kind):
        return quoted(_within_years(values.cast(pa.int32()), 1, values).cast(pa.string()))
    if pt.is_timestamp(kind):
        return quoted(_times(values))
    if pt.is_floating(kind):
        return pc.if_else(pc.is_finite(values), values, None).cast(pa.string())
    if pt.is_decimal(kind):
        return _decimals(values.cast(pa.string()))
    return values.cast(pa.string())


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings."""
    plain = pc.binary_join_element_wise('"', texts, '"', "")
    odd = pc.match_substring_regex(texts, _ESCAPED)
    if not pc.any(odd, min_count=0).as_py():
        return plain
    some = [json.dumps(one, ensure_ascii=False) for one in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(plain, pc.fill_null(odd, False), pa.array(some, pa.string()))


def _within_years(numbers: pa.Array, per_day: int, values: pa.Array) -> pa.Array:
    first, last = _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day
    usable = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, last))
    return pc.if_else(usable, values, None)


def _times(values: pa.Array) -> pa.Array:
    """Return times as ISO texts, floored to milliseconds."""
    micros = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    floored = np.asarray(pc.fill_null(micros, 0)) // _MICROS_PER_MS
    numbers = pa.array(floored, mask=np.asarray(micros.is_null()))
    usable = _within_years(numbers, _MS_PER_DAY, numbers).cast(pa.timestamp("ms"))
    texts = pc.replace_substring(usable.cast(pa.string()), " ", "T")
    return texts if values.type.tz is None else pc.binary_join_element_wise(texts, "Z", "")


def _decimals(texts: pa.Array) -> pa.Array:
    """Return decimals without exponents."""
    if not pc.any(pc.match_substring(texts, "E"), min_count=0).as_py():
        return texts
    return pa.array([_plain(one) for one in texts.to_pylist()], pa.string())


def _plain(text: str | None) -> str | None:
    return None if text is None else f"{Decimal(text):f}"


def objects(fields: Mapping[str, pa.Array], size: int) -> pa.Array:
    """Return objects of literals by name; a null field is left out."""
    if not fields:
        return pa.repeat(pa.scalar("{}"), size)
    parts = [_field(name, one) for name, one in fields.items()]
    # Not by `null_handling="skip"`: that drops rows of which all is null.
    inner = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)
    return pc.binary_join_element_wise("{", inner, "}", "")


def _field(name: str, values: pa.Array) -> pa.Array:
    start = f",{json.dumps(name, ensure_ascii=False)}:"
    return pc.fill_null(pc.binary_join_element_wise(start, values, ""), "")


def nested_objects(leaves: Mapping[Path, pa.Array], size: int) -> pa.Array:
    """Return objects of literals by path, nested as the paths are."""
    tree: dict[str, Any] = {}
    for path, one in leaves.items():
        level = tree
        for name in path[:-1]:
            level = level.setdefault(name, {})
        level[path[-1]] = one
    return _object(tree, size)


def _object(tree: Mapping[str, Any], size: int) -> pa.Array:
    fields = {
        name: _object(one, size) if isinstance(one, dict) else one for name, one in tree.items()
    }
    return objects(fields, size)
