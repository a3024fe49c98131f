"""PySpark's readers and writers with some methods overridden: made from ones that PySpark made."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@cache
def _kind(overriding: type, base: type) -> type:
    return type(f"Lake{base.__name__}", (overriding, base), {})


def overridden(made: Any, overriding: type, **state: Any) -> Any:
    """Return an object of PySpark's as one whose class has some methods overridden."""
    base: Any = type(made)
    made.__class__ = _kind(overriding, base)
    vars(made).update(state)
    return made


def as_text(value: Any) -> str | None:
    """Return the value of an option as Spark gets it; None is no value."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as Spark gets them, those without a value left out."""
    found = {key: as_text(value) for key, value in options.items()}
    return {key: value for key, value in found.items() if value is not None}


def flat(columns: Iterable[Any]) -> tuple[Any, ...]:
    """Return columns that are given one by one, or as one list."""
    given = list(columns)
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        return tuple(given[0])
    return tuple(given)


def refuse_other(other: Iterable[str], name: str) -> None:
    """Raise for what no table of a lake has: buckets of Spark's own, and the like."""
    for each in sorted(other):
        raise InvalidStatementError(
            f"{each} does not apply to {name}, which is a table of the lake: use partitionedBy "
            "with a transform, or ALTER TABLE … WRITE ORDERED BY."
        )
