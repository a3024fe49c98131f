"""`Transaction`: what a user holds of changes that land together. Thin: the work is below.

Inside the block each table is as it was at the transaction's first look at it, with the changes
made so far; others see nothing of them. Leaving the block commits all; an error removes all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.transaction import HoldingCatalog
from rowlake.commit.outcome import commit_all_or_raise
from rowlake.commit.transaction import discard
from rowlake.errors import InvalidStatementError
from rowlake.maintain.autopilot.auto import tidy_after

if TYPE_CHECKING:
    from types import TracebackType

    from rowlake.lake import Lake
    from rowlake.table import Table


class Transaction:
    """Changes to one or several tables, all or nothing; made by `Lake.transaction`.

    Results returned inside name the snapshots that will land. Where another writer was first, the
    changes are checked and made again on what it left, under the same snapshot ids; counts of
    rows removed by a filter may then differ from what was returned.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._catalog = HoldingCatalog(lake.catalog)
        self._inside = lake.over(self._catalog)
        self._is_open = False

    def __repr__(self) -> str:
        return f"Transaction({self._lake.catalog.name})"

    def __enter__(self) -> Transaction:
        if self._is_open or self._catalog.is_over:
            raise InvalidStatementError("A transaction is used once: start another one.")
        self._is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._catalog.is_over:  # rolled back inside
            return
        self._is_open = False
        try:
            if error is not None:
                discard(self._catalog)
            elif self._catalog.changed:
                commit_all_or_raise(self._catalog)
                tidy_after(self._catalog, self._lake.engine)
        finally:
            self._catalog.is_over = True

    def table(self, name: str | tuple[str, ...]) -> Table:
        """Return a table by name, as the transaction sees it; it takes the verbs of any table."""
        self._validate_open()
        return self._inside.table(name)

    def sql(self, statement: str, args: Any = None) -> Any:
        """Run a statement inside the transaction; tables cannot be created or dropped."""
        self._validate_open()
        return self._inside.sql(statement, args)

    def rollback(self) -> None:
        """Give up all changes made so far; the transaction is over."""
        self._validate_open()
        self._is_open, self._catalog.is_over = False, True
        discard(self._catalog)

    def _validate_open(self) -> None:
        if not self._is_open:
            raise InvalidStatementError(
                "The transaction is not open: use it inside `with lake.transaction() as tx:`."
            )
