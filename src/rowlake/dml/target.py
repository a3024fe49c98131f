"""The target of a row-level statement: the table or branch, at the snapshot that it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rowlake.conditions.store_assignment import Assignment as Assigning
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.query.workspace import Lookup, names_of, need_table, setting
from rowlake.sql.execute.insert import target_columns
from rowlake.sqltext.lexer import readable
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle
    from rowlake.conditions.store_assignment import TargetColumn
    from rowlake.lake import Lake
    from rowlake.model.view import TableView
    from rowlake.sqltext.names import Name, Names
    from rowlake.verbs.write import WriteOptions


@dataclass(frozen=True)
class RowTarget:
    """A table that is to be changed; `visible` qualifies its columns in the statement."""

    lake: Lake
    handle: TableHandle
    options: WriteOptions
    view: TableView
    visible: str

    def at(self, handle: TableHandle) -> RowTarget:
        """Return the same table as it is in other metadata."""
        return replace(self, handle=handle, view=view_for_write(handle, self.options.branch))

    @cached_property
    def columns(self) -> list[TargetColumn]:
        """The table's columns in Spark's types."""
        return target_columns(self.lake, self.view.schema)

    @cached_property
    def names(self) -> Names:
        """How the session compares names."""
        return names_of(self.lake)

    @cached_property
    def assigning(self) -> Assigning:
        """How values are stored into columns."""
        ansi = setting(self.lake, "spark.sql.ansi.enabled", "true").lower() == "true"
        return Assigning(
            self.view.name, by_name=True, names=self.names, ansi=ansi, whole_structs=True
        )


def row_target(
    lake: Lake, name: Name, alias: str | None, verb: str, options: dict[str, Any]
) -> RowTarget:
    """Return the target of a statement; it must be a table of the lake or a branch of one."""
    target = Lookup(lake).target(name)
    if target is None:
        raise TableNotFoundError(readable(name))
    if not target.is_current:
        raise InvalidStatementError(
            f"Cannot {verb} {readable(name)}: only tables and their branches are written to."
        )
    if target.branch:
        options = {**options, "branch": target.branch}
    handle, chosen = need_table(lake, target.table).for_write(options)
    view = view_for_write(handle, chosen.branch)
    return RowTarget(lake, handle, chosen, view, alias or name[-1])
