"""DELETE, UPDATE and MERGE to the module that runs each; the way in for statements and builder.

Arguments by position (`?`) become named ones first: conditions and values are put into other texts
and in another order than they were written in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.engine.tally import says_where_it_ran
from rowlake.errors import InvalidStatementError
from rowlake.sql.execute_delete import delete_rows
from rowlake.sql.execute_explain import explain_row_level
from rowlake.sql.execute_merge import merge_rows
from rowlake.sql.execute_update import update_rows
from rowlake.sql.lexer import Kind, Lexer
from rowlake.sql.pushdown import spliced
from rowlake.sql.refusals import refusing_too_complex
from rowlake.sql.row_statements import Update
from rowlake.sql.statements import Delete

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.sql.row_statements import Merge

    Changing = TypeVar("Changing", bound=Delete | Update | Merge)

MAIN = "main"
_ARGUMENT = "rowlake_argument_"


@says_where_it_ran
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


@says_where_it_ran
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


def with_named_arguments(text: str, arguments: Any) -> tuple[str, Any]:
    """Return a statement in which every `?` has a name, and the arguments by these names."""
    if not arguments or isinstance(arguments, Mapping):
        return text, arguments
    marks = [token for token in Lexer(text).all() if token.kind is Kind.PARAMETER]
    marks = [token for token in marks if token.text == "?"]
    if len(marks) != len(arguments):
        raise InvalidStatementError(
            f"The statement has {len(marks)} parameters (?) but {len(arguments)} arguments."
        )
    names = [f"{_ARGUMENT}{index}" for index in range(len(marks))]
    edits = [(t.start, t.end, f":{name}") for t, name in zip(marks, names, strict=True)]
    return spliced(text, edits), dict(zip(names, arguments, strict=True))
