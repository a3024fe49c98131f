"""Columns of target rows compared with values of their source rows.

Comes in: two columns of one type. Goes out: where the comparison is TRUE; null, which is neither
TRUE nor FALSE, only equals null where `<=>` asks. Not for floating-point numbers, whose NaN and
zeros Spark compares in ways of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_TESTS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
NULL_SAFE = "<=>"
OPERATORS = (*_TESTS, NULL_SAFE)


@dataclass(frozen=True)
class Comparison:
    """`column` of the target, an operator of `OPERATORS`, a staged column."""

    column: str
    operator: str
    staged: str


def holds(operator: str, target: pa.Array, source: pa.Array) -> NDArray[np.bool_]:
    """Return for which rows a comparison is TRUE."""
    left = target if target.type.equals(source.type) else target.cast(source.type)
    if operator == NULL_SAFE:
        equal = pc.fill_null(pc.equal(left, source), False)
        return np.asarray(pc.or_(equal, pc.and_(left.is_null(), source.is_null())))
    return np.asarray(pc.fill_null(_TESTS[operator](left, source), False))
