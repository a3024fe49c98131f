"""DELETE, UPDATE and MERGE to the module that runs each; the way in for statements and builder.

Arguments by position (`?`) become named ones first: conditions and values are put into other texts
and in another order than they were written in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.dml.delete import delete_rows
from rowlake.dml.explain import explain_row_level
from rowlake.dml.merge import merge_rows
from rowlake.dml.operations import Delete, Update
from rowlake.dml.update import update_rows
from rowlake.query.refusals import refusing_too_complex

if TYPE_CHECKING:
    from rowlake.dml.operations import Merge
    from rowlake.lake import Lake
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result

    Changing = TypeVar("Changing", bound=Delete | Update | Merge)

MAIN = "main"


def change_rows(
    lake: Lake, statement: Delete | Update | Merge, arguments: Any = None, **options: Any
) -> Result:
    """Run a row-level statement; `options` are those of every write (`branch`, `mode`, …)."""
    statement = _placed(statement, options)
    with refusing_too_complex():
        if isinstance(statement, Delete):
            return delete_rows(lake, statement, arguments, **options)
        if isinstance(statement, Update):
            return update_rows(lake, statement, arguments, **options)
        return merge_rows(lake, statement, arguments, **options)


def explain_rows(
    lake: Lake, statement: Delete | Update | Merge, arguments: Any = None, **options: Any
) -> Plan:
    """Return the plan of a row-level statement; nothing is written."""
    statement = _placed(statement, options)
    with refusing_too_complex():
        return explain_row_level(lake, statement, arguments, **options)


def _placed(statement: Changing, options: dict[str, Any]) -> Changing:
    """Return a statement on the branch of the options, which is taken out of them."""
    if options.get("branch") in (None, MAIN):
        return statement
    return on_branch(statement, options.pop("branch"))


def on_branch(statement: Changing, branch: str) -> Changing:
    """Return a statement on a branch of its table, as if its name had said so."""
    alias = statement.alias or statement.name[-1]
    return replace(statement, name=(*statement.name, f"branch_{branch}"), alias=alias)
