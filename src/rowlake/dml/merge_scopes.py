"""Which columns the clauses of a MERGE may read: rows without a match have one side only.

Spark judges a text that may name a column of the side that is missing: it is resolved on the other
side alone. Joined rows would have null there, so that such a name would go unnoticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.dml.merge_by_key import run_source
from rowlake.dml.operations import When
from rowlake.errors import InvalidStatementError
from rowlake.query.run import run_query
from rowlake.sqltext.lexer import quote, quote_parts

if TYPE_CHECKING:
    from rowlake.dml.merge_clauses import MergeClause, Merging


def validate_scopes(merging: Merging) -> None:
    """Refuse columns of the target in NOT MATCHED, and of the source in NOT MATCHED BY SOURCE."""
    for clause in merging.clauses:
        if clause.when is not When.MATCHED:
            _validate_clause(merging, clause)


def _validate_clause(merging: Merging, clause: MergeClause) -> None:
    inserts = clause.when is When.NOT_MATCHED
    is_doubtful = merging.sides.mentions_target if inserts else merging.sides.mentions_source
    written = [clause.condition or "", *(t for each in clause.assigned for t in each.texts)]
    doubtful = [text for text in dict.fromkeys(written) if is_doubtful(text)]
    if not doubtful:
        return
    missing, there = ("target", "source") if inserts else ("source", "target")
    try:
        _resolve(merging, doubtful, inserts=inserts)
    except InvalidStatementError as error:
        raise InvalidStatementError(
            f"A {clause.when.value} clause has no row of the {missing}: it can only name columns "
            f"of the {there}. {error}"
        ) from error


def _resolve(merging: Merging, texts: list[str], *, inserts: bool) -> Any:
    """Let Spark analyse texts on one side; nothing is read."""
    listed = [f"{text} AS {quote(f'__{at}')}" for at, text in enumerate(texts)]
    if inserts:
        return run_source(merging, listed)
    target = merging.target
    rest = f" FROM {quote_parts(target.written[0])} AS {quote(target.visible)}"
    query = f"{merging.with_clause}SELECT {', '.join(listed)}{rest}"
    return run_query(target.lookup, query, merging.arguments)
