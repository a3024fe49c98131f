"""Views over lake tables: their text takes the place of their name, at each use.

Comes in: a statement's text. Goes out: the text with every view's query in brackets where its name
stood, so that what the statement needs of a view's tables is pushed down to them. In a view's query
a name means what it meant when the view was made: a temporary view, or a table of the namespace
that was the current one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.query.cached_rows import cached_view
from rowlake.query.pushdown import query_start, table_names_in
from rowlake.query.shape import blocks, queries, references_in
from rowlake.query.shape_reader import ShapeReader
from rowlake.query.token_reader import NotFollowed
from rowlake.sqltext.edits import Edit, spliced
from rowlake.sqltext.lexer import Lexer, quote, quote_parts, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.names import Name
    from rowlake.workspace import TextView


@dataclass(frozen=True)
class _Named:
    """A name in a FROM clause; an alias can be added at `alias_at`.

    `table_at` is where `TABLE` stands that makes a query of the name alone.
    """

    parts: Name
    start: int
    name_end: int
    end: int
    alias_at: int
    alias: str | None
    travels: bool
    table_at: int | None = None


@dataclass
class Expanded:
    """A text without views; `frames` are views that had to be read apart, by their stand-ins.

    `left` are names of one part that are neither the lake's nor views over it, in lower case.
    """

    text: str
    frames: dict[str, Any] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)


class ViewExpander:
    """Expands the views in one statement.

    `run` makes a DataFrame of a query without views, `fresh` a name for it. It serves cached views,
    and those whose query uses a name that is a common table expression in the statement.
    """

    def __init__(
        self,
        lookup: TableLookup,
        run: Callable[[str, dict[str, Any]], Any],
        fresh: Callable[[], str],
    ) -> None:
        self.lookup, self.run, self.fresh = lookup, run, fresh

    def expanded(self, text: str, inside: tuple[TextView, ...] = ()) -> Expanded:
        """Return a text with its views replaced; `inside` are the views that it is part of."""
        lexer = Lexer(text)
        names, ctes = _names_in(lexer)
        found = Expanded(text)
        edits: list[Edit] = []
        for name in names:
            edits += self._edits(name, ctes, inside, found)
        found.text = spliced(text, edits) if edits else text
        return found

    def _edits(
        self, name: _Named, ctes: set[str], inside: tuple[TextView, ...], found: Expanded
    ) -> list[Edit]:
        around = inside[-1] if inside else None
        parts = name.parts if around is None else self._meant(name.parts, around)
        view = self.lookup.view(parts)
        if view is None:
            if len(parts) == 1 and self.lookup.handle(parts) is None:
                found.left.add(parts[0].lower())
            renamed = parts != name.parts
            return [(name.start, name.name_end, quote_parts(parts))] if renamed else []
        if name.travels:
            raise InvalidStatementError(f"{readable(name.parts)} is a view, which has no versions.")
        text = self._relation(view, ctes, inside, found)
        if name.table_at is not None:
            return [(name.table_at, name.end, f"SELECT * FROM {text} AS {quote(parts[-1])}")]
        edits: list[Edit] = [(name.start, name.end, text)]
        if name.alias is None:
            edits.append((name.alias_at, name.alias_at, f" AS {quote(name.parts[-1])}"))
        return edits

    def _meant(self, parts: Name, around: TextView) -> Name:
        """Return the name that a name in a view's query stands for now."""
        if len(parts) > 1 or parts[0].lower() in around.temporary:
            return parts
        full = (*around.namespace, *parts)
        known = self.lookup.stored(full) is not None or self.lookup.view(full) is not None
        return full if known else parts

    def _relation(
        self, view: TextView, ctes: set[str], inside: tuple[TextView, ...], found: Expanded
    ) -> str:
        """Return what stands for a view in a FROM clause."""
        if any(view.name == other.name for other in inside):
            raise InvalidStatementError(f"The view {readable(view.name)} reads itself.")
        cached = cached_view(self.lookup, view, lambda: self._frame(view, inside))
        if cached is not None:
            return self._stand_in(cached, found)
        body = self.expanded(view.query, (*inside, view))
        text = self._with_columns(view, body.text)
        if body.left & ctes:
            return self._stand_in(self.run(text, body.frames), found)
        found.frames.update(body.frames)
        found.left |= body.left
        return f"({text}\n)"  # the query may end in a comment

    def _frame(self, view: TextView, inside: tuple[TextView, ...]) -> Any:
        body = self.expanded(view.query, (*inside, view))
        return self.run(self._with_columns(view, body.text), body.frames)

    def _stand_in(self, frame: Any, found: Expanded) -> str:
        name = self.fresh()
        found.frames[name] = frame
        return quote(name)

    def _with_columns(self, view: TextView, text: str) -> str:
        """Return a view's query with the columns that the view had when it was made."""
        if view.columns == view.produced and self._is_as_it_was(view):
            return text
        listed = ", ".join(
            quote(given) if given == name else f"{quote(given)} AS {quote(name)}"
            for given, name in zip(view.produced, view.columns, strict=True)
        )
        return f"SELECT {listed} FROM ({text}\n)"

    def _is_as_it_was(self, view: TextView) -> bool:
        """Return whether the tables of a view have the columns that they had."""
        if not view.tables:
            return False
        for name, columns in view.tables.items():
            handle = self.lookup.stored(name)
            if handle is None or tuple(handle.view().schema.arrow.names) != columns:
                return False
        return True


def _names_in(lexer: Lexer) -> tuple[list[_Named], set[str]]:
    """Return the tables that a statement names, and its common table expressions in lower case."""
    tokens = lexer.all()
    start = query_start(tokens)
    try:
        query = ShapeReader(lexer, start).whole() if start is not None else None
    except NotFollowed:
        query = None
    if query is None:
        return _names_by_tokens(lexer), {t.value.lower() for t in tokens if t.is_name}
    ctes = {cte.name.lower() for found in queries(query) for cte in found.ctes}
    names = []
    for block in blocks(query):
        for one in references_in(block):
            if one.span_of_changes is not None:
                continue
            last = tokens[one.span[0] + 2 * (len(one.parts) - 1)]
            bare = tokens[block.span[0]].start if block.kind == "table" else None
            travels = one.travel is not None
            names.append(
                _Named(
                    one.parts, one.start, last.end, one.end, one.alias_at, one.alias, travels, bare
                )
            )
    return names, ctes


def _names_by_tokens(lexer: Lexer) -> list[_Named]:
    tokens = lexer.all()
    found = []
    for parts, first, after, aliased in table_names_in(tokens):
        start, end = tokens[first].start, tokens[after - 1].end
        before = tokens[first - 1]
        bare = before.start if before.word == "TABLE" else None
        alias = parts[-1] if aliased else None
        found.append(_Named(tuple(parts), start, end, end, end, alias, False, bare))
    return found


def described(lookup: TableLookup, view: TextView) -> TextView:
    """Return a view with what its query names now: temporary views, and lake tables' columns.

    The query has been run with this lookup.
    """
    names, _ = _names_in(Lexer(view.query))
    single = {name.parts[0] for name in names if len(name.parts) == 1}
    temporary = frozenset(one.lower() for one in single if lookup.is_temporary(one))
    tables = {name: tuple(one.view().schema.arrow.names) for name, one in lookup.loaded.items()}
    return replace(view, temporary=temporary, tables=tables)
