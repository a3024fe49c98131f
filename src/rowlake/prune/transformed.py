"""Tests of transforms as tests of their columns, where a range of the column says the same.

A year is a range of times and a truncated number is a range of numbers; so metrics and partition
values of every transform can be used. A bucket is no range: it stays as it is.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.model.predicate import FALSE, Op, conjunction, disjunction, negation
from rowlake.model.transform import DATE_TRANSFORMS, parse_transform

if TYPE_CHECKING:
    from rowlake.model.predicate import Leaf, Predicate

_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_COMPARED = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.NOT_IN)


def projected(leaf: Leaf, column: pa.Field) -> Predicate:
    """Return a test of the column that selects the same rows; the leaf where there is none."""
    if leaf.transform is None:
        return leaf
    if leaf.op in (Op.IS_NULL, Op.NOT_NULL):
        return replace(leaf, transform=None)
    parsed = parse_transform(leaf.transform)
    if leaf.op in _COMPARED and parsed.name in DATE_TRANSFORMS:
        return _of_times(leaf, column, parsed.name)
    if leaf.op in (Op.EQ, Op.NE, Op.IN, Op.NOT_IN) and parsed.name == "truncate":
        return _of_truncated(leaf, column, parsed.width)
    return leaf


def _of_times(leaf: Leaf, column: pa.Field, name: str) -> Predicate:
    plain = replace(leaf, transform=None)
    try:
        edges = [
            (_start(value, name, 0, column), _start(value, name, 1, column))
            for value in leaf.values
        ]
    except (OverflowError, ValueError):
        return leaf  # a time that Python has not
    inside = [
        conjunction(
            replace(plain, op=Op.GE, values=(first,)), replace(plain, op=Op.LT, values=(end,))
        )
        for first, end in edges
    ]
    if leaf.op in (Op.EQ, Op.IN):
        return disjunction(*inside)
    if leaf.op in (Op.NE, Op.NOT_IN):
        return conjunction(*map(negation, inside))
    ((first, end),) = edges
    op, edge = {
        Op.LT: (Op.LT, first),
        Op.LE: (Op.LT, end),
        Op.GT: (Op.GE, end),
        Op.GE: (Op.GE, first),
    }[leaf.op]
    return replace(plain, op=op, values=(edge,))


def _start(value: Any, name: str, later: int, column: pa.Field) -> dt.date | dt.datetime:
    """Return when a period starts, or one so many periods later."""
    epoch = dt.date(1970, 1, 1)
    number = (value - epoch).days if isinstance(value, dt.date) else int(value)
    periods = np.array([number + later], f"datetime64[{_UNITS[name]}]")
    moment = periods.astype("datetime64[us]")[0].item()
    if not isinstance(moment, dt.datetime):
        raise OverflowError(f"{name} {number} is no time")
    if pa.types.is_date(column.type):
        return moment.date()
    return moment if column.type.tz is None else moment.replace(tzinfo=dt.timezone.utc)


def _of_truncated(leaf: Leaf, column: pa.Field, width: int) -> Predicate:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not pa.types.is_signed_integer(column.type):
        return leaf
    single = _of_text if is_text else _of_integer
    found = [single(replace(leaf, transform=None), value, width, column) for value in leaf.values]
    known = [part for part in found if part is not None]
    if len(known) < len(found):
        return leaf
    if leaf.op in (Op.EQ, Op.IN):
        return disjunction(*known)
    if FALSE in known:
        return leaf
    return conjunction(*map(negation, known))


def _of_text(plain: Leaf, value: str, width: int, _: pa.Field) -> Predicate:
    if len(value) > width:
        return FALSE
    return replace(plain, op=Op.EQ if len(value) < width else Op.STARTS_WITH, values=(value,))


def _of_integer(plain: Leaf, value: int, width: int, column: pa.Field) -> Predicate | None:
    most = 2 ** (column.type.bit_width - 1) - 1
    if value > most - width:
        return None  # the lowest numbers wrap around to it
    if value % width:
        return FALSE
    return conjunction(
        replace(plain, op=Op.GE, values=(value,)),
        replace(plain, op=Op.LE, values=(value + width - 1,)),
    )
