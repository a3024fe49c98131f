"""EXPLAIN DELETE | UPDATE | MERGE: what would happen; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import UnsupportedFeatureError
from rowlake.sql.lexer import readable

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sql.row_statements import Explain


def explain_row_level(_lake: Lake, statement: Explain, _arguments: Any, **_options: Any) -> Any:
    """Return the plan of a row-level statement."""
    verb, name = type(statement.statement).__name__.upper(), statement.statement.name
    raise UnsupportedFeatureError(f"EXPLAIN {verb} on {readable(name)}: not yet.")
