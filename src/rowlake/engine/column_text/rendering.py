"""Functions of columns as SQL: operators between their arguments, others by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rowlake.engine.column_text.names import no_text, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN = {
    **{sign: sign for sign in ("=", "<=>", "<", "<=", ">", ">=", "!=", "+", "-", "*", "/", "%")},
    **{sign: sign for sign in ("&", "|", "^", "<<", ">>", ">>>")},
    **{word: word.upper() for word in ("and", "or", "like", "ilike", "rlike")},
    "==": "=",
}
_AFTER = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_BEFORE = {"!": "NOT", "not": "NOT", "~": "~"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TWO, _THREE = 2, 3


def function_text(name: str, arguments: Sequence[str], *, distinct: bool = False) -> str:
    """Return a call; operators are in brackets of their own."""
    word, count = name.lower(), len(arguments)
    if word in _BETWEEN and count == _TWO:
        return f"({arguments[0]} {_BETWEEN[word]} {arguments[1]})"
    if word in ("like", "ilike") and count == _THREE:
        return f"({arguments[0]} {word.upper()} {arguments[1]} ESCAPE {arguments[2]})"
    if word in _AFTER and count == 1:
        return f"({arguments[0]} {_AFTER[word]})"
    if word in _BEFORE and count == 1:
        return f"({_BEFORE[word]} {arguments[0]})"
    if word == "in" and count:
        # Spark's IN of no values is FALSE, and has no text of its own.
        listed = ", ".join(arguments[1:])
        return f"({arguments[0]} IN ({listed}))" if listed else "false"
    if word == "when" and count >= _TWO:
        return case_text(arguments)
    called = name if _PLAIN.fullmatch(name) else quoted(name)
    return f"{called}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"


def case_text(parts: Sequence[str]) -> str:
    """Return CASE of conditions and values in turn, the value of ELSE last where there is one."""
    branches = [
        f"WHEN {parts[index]} THEN {parts[index + 1]}" for index in range(0, len(parts) - 1, _TWO)
    ]
    otherwise = [f"ELSE {parts[-1]}"] if len(parts) % _TWO else []
    return " ".join(["CASE", *branches, *otherwise, "END"])


def cast_text(value: str, kind: str, mode: str | None) -> str:
    """Return a cast to a type by its text; `mode` is the name of how it fails."""
    known = {None: "CAST", "": "CAST", "try": "TRY_CAST"}
    word = known.get(mode if mode is None else mode.lower())
    if word is None:
        raise no_text(f"a cast in {mode} mode")
    return f"{word}({value} AS {kind})"


def expression_text(text: str) -> str:
    """Return a text of the user's, in brackets; a comment at its end stays one."""
    return f"({text}\n)" if "--" in text else f"({text})"


def lambda_text(names: Sequence[str], body: str) -> str:
    """Return a function of a higher-order function; Spark takes one name without brackets only."""
    shown = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"{shown} -> {body}"
