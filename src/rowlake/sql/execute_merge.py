"""MERGE: rows of a source update, delete and add rows of a table, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import UnsupportedFeatureError
from rowlake.sql.lexer import readable

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.sql.row_statements import Merge


def merge_rows(_lake: Lake, statement: Merge, _arguments: Any, **_options: Any) -> Result:
    """Run a MERGE into a table of the lake or a branch of one."""
    raise UnsupportedFeatureError(f"MERGE on {readable(statement.name)}: not yet.")
