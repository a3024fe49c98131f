"""What became of a swap: landed, conflict or unknown, and never a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


@dataclass(frozen=True)
class Landed:
    """The commit is in the table; `handle` is the table after it."""

    handle: TableHandle


@dataclass(frozen=True)
class Conflict:
    """The commit is not in the table and never will be; it may be tried again."""

    cause: str


@dataclass(frozen=True)
class Unknown:
    """Nobody can tell; no file may be removed."""

    cause: str


Outcome: TypeAlias = Landed | Conflict | Unknown
