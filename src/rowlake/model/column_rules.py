"""Columns whose values a table makes by itself: defaults, generated columns, identity columns.

A field of a view's schema carries its rule as metadata, so that every room that sees the schema
sees the rule. Texts are SQL expressions of Spark. A column that incoming rows lack must have been
made before rows are conformed to the schema; `rowlake.verbs.made_columns` does so.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rowlake.model.schema import WRITE_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

DEFAULT_TEXT = b"rowlake:default-text"
GENERATED_AS = b"rowlake:generated-as"
IDENTITY = b"rowlake:identity"
# The same in the JSON form of a schema that is to be created, beside the spec's own keys.
DEFAULT_KEY, GENERATED_KEY, IDENTITY_KEY = "default-text", "generated-as", "identity"
WRITE_DEFAULT_KEY = "write-default"  # the value of a default, of the spec
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Identity:
    """An identity column: its values are `start + k * step`, each beyond the high-water mark.

    `mark` is the value that is furthest in the direction of `step`; None before the first one.
    """

    start: int = 1
    step: int = 1
    mark: int | None = None
    allows_explicit: bool = False

    @property
    def following(self) -> int:
        """The next value."""
        return self.start if self.mark is None else self.mark + self.step

    def furthest(self, values: Iterable[int]) -> int | None:
        """Return the high-water mark after some values were written; None where there is none.

        Values of users may lie between those of the column: the mark is the next of its own.
        """
        reached = [self._rounded(one) for one in values if (one - self.start) * self.step >= 0]
        marks = reached if self.mark is None else [*reached, self.mark]
        if not marks:
            return None
        return max(marks) if self.step > 0 else min(marks)

    def _rounded(self, value: int) -> int:
        steps = -((self.start - value) // self.step)
        return self.start + steps * self.step

    def holds(self, value: int) -> bool:
        """Return whether a value fits into the column's type."""
        return _LEAST <= value <= _MOST


def identity_text(found: Identity) -> bytes:
    """Return an identity as a field's metadata has it."""
    return json.dumps(asdict(found)).encode()


def default_text(found: pa.Field) -> str | None:
    """Return the expression of a column's default where it is one, and not yet a value."""
    return _text(found, DEFAULT_TEXT)


def generated_as(found: pa.Field) -> str | None:
    """Return the expression of a generated column."""
    return _text(found, GENERATED_AS)


def identity_of(found: pa.Field) -> Identity | None:
    """Return what makes the values of an identity column."""
    text = _text(found, IDENTITY)
    return None if text is None else Identity(**json.loads(text))


def _text(found: pa.Field, key: bytes) -> str | None:
    value = (found.metadata or {}).get(key)
    return None if value is None else value.decode()


def is_made(found: pa.Field) -> bool:
    """Return whether rows may lack a column although it must not be null: the table makes it."""
    metadata = found.metadata or {}
    return any(key in metadata for key in (WRITE_DEFAULT, DEFAULT_TEXT, GENERATED_AS, IDENTITY))


def is_unmade(found: pa.Field) -> bool:
    """Return whether nobody has made the values of a column that rows lack."""
    metadata = found.metadata or {}
    is_default = DEFAULT_TEXT in metadata and WRITE_DEFAULT not in metadata
    return is_default or GENERATED_AS in metadata or IDENTITY in metadata


def generated_columns(schema: pa.Schema) -> dict[str, str]:
    """Return the expressions of generated columns by name."""
    texts = {found.name: generated_as(found) for found in schema}
    return {name: text for name, text in texts.items() if text is not None}


def identity_columns(schema: pa.Schema) -> dict[str, Identity]:
    """Return the identity columns by name."""
    kinds = {found.name: identity_of(found) for found in schema}
    return {name: kind for name, kind in kinds.items() if kind is not None}
