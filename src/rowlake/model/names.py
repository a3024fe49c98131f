"""Names of tables and namespaces: text with dots, or tuples of levels."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Iterable

Identifier: TypeAlias = tuple[str, ...]
Name: TypeAlias = str | Identifier

# The namespace that every lake has; catalogs get it with its first table.
DEFAULT_NAMESPACE: Identifier = ("default",)

LONGEST_FOLDER = 255  # bytes, of common file systems

_PLAIN = re.compile(r"\w+")
_LEVEL = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^.`]*[^.`\s]))\s*")


def levels_of(name: Name) -> Identifier:
    """Return the levels of a name.

    Text is split at dots outside backticks; a doubled backtick inside them stands for one. A
    tuple is taken as it is.
    """
    if not isinstance(name, (str, tuple, list)):
        raise InvalidStatementError(
            f"{name!r} is not a name: give text like 'ns.t', or a tuple of its parts."
        )
    levels = _split(name) if isinstance(name, str) else tuple(name)
    if not levels or not all(isinstance(level, str) and level for level in levels):
        raise InvalidStatementError(f"{name!r} is not a name: it has an empty part.")
    return levels


def _split(text: str) -> Identifier:
    levels: list[str] = []
    position = 0
    while True:
        found = _LEVEL.match(text, position)
        if not found:
            raise InvalidStatementError(
                f"{text!r} is not a name: write parts with dots between them, and put a part "
                f"with dots or backticks of its own in backticks.",
                statement=text,
                position=position,
            )
        quoted_level, plain = found.groups()
        levels.append(plain if quoted_level is None else quoted_level.replace("``", "`"))
        position = found.end()
        if position == len(text):
            return tuple(levels)
        if text[position] != ".":
            raise InvalidStatementError(
                f"{text!r} is not a name: a dot must come next.", statement=text, position=position
            )
        position += 1


def table_levels(name: Name) -> Identifier:
    """Return the levels of a table's name: at least one namespace, then the table."""
    return within(DEFAULT_NAMESPACE, levels_of(name))


def within(namespace: Identifier, levels: Identifier) -> Identifier:
    """Return a table's name in full: in this namespace where it names none."""
    return levels if len(levels) > 1 else (*namespace, *levels)


def quoted(levels: Iterable[str]) -> str:
    """Return a name as text that `levels_of` reads back."""
    return ".".join(
        level if _PLAIN.fullmatch(level) else "`" + level.replace("`", "``") + "`"
        for level in levels
    )


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return those known names that somebody who typed this one may have meant."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return tuple(by_lower[match] for match in found)


def folder_name(level: str) -> str:
    """Return a level of a name as a folder's name; refuses what would lead elsewhere."""
    if level in {".", ".."} or "/" in level or "\0" in level:
        raise InvalidStatementError(
            f"{level!r} cannot be a folder's name: give the table another name, or a location."
        )
    if len(level.encode(errors="replace")) > LONGEST_FOLDER:
        raise InvalidStatementError(
            f"A name of {len(level):,} characters is too long ({level[:20]!r} …): a folder's name "
            f"has at most {LONGEST_FOLDER} bytes."
        )
    if any("\ud800" <= character <= "\udfff" for character in level):
        raise InvalidStatementError(f"{level!r} cannot be a name: it is no Unicode text.")
    return level


def new_folder_name(level: str) -> str:
    """Return a level of a new name as a folder's name; refuses those that count as hidden."""
    if level.startswith((".", "_")):
        raise InvalidStatementError(
            f"{level!r} cannot be a name in a file-system catalog: folders that start with a dot "
            "or an underscore are hidden and would not be listed. Choose another name."
        )
    return folder_name(level)
