"""The target of a row-level operation: the table or branch, at the snapshot that it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rowlake.conditions.qualified import requalified
from rowlake.conditions.store_assignment import StoreAssignment as Assigning
from rowlake.conditions.target_columns import target_columns
from rowlake.dml.options import for_write
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.query.lookup import setting
from rowlake.sqltext.lexer import readable
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from rowlake.conditions.store_assignment import TargetColumn
    from rowlake.dml.operations import Delete, Merge, Update
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView
    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.names import Name, NameRules
    from rowlake.verbs.write import WriteOptions


@dataclass(frozen=True)
class RowTarget:
    """A table that is to be changed; `visible` qualifies its columns in the statement.

    So may its full names, which are `written`; `short` puts `visible` in their place.
    `lookup` has the table as `handle` has it, so that queries of the statement read that.
    """

    lookup: TableLookup
    handle: TableHandle
    options: WriteOptions
    visible: str
    written: tuple[Name, ...]

    def at(self, handle: TableHandle) -> RowTarget:
        """Return the same table as it is in other metadata."""
        return replace(self, handle=handle, lookup=self.lookup.at(handle))

    @property
    def engine(self) -> Engine:
        """What runs the operation."""
        return self.lookup.engine

    @cached_property
    def view(self) -> TableView:
        """The head of the branch that is written to."""
        return view_for_write(self.handle, self.options.branch)

    @cached_property
    def columns(self) -> list[TargetColumn]:
        """The table's columns in Spark's types."""
        return target_columns(self.engine, self.view.schema)

    @property
    def names(self) -> NameRules:
        """How the session compares names, and its time zone."""
        return self.lookup.names

    def short(self, text: str, names: NameRules | None = None) -> str:
        """Return a text in which columns that a full name qualifies go by the short one."""
        for name in self.written:
            text = requalified(text, name, self.visible, names or self.names)
        return text

    @cached_property
    def assigning(self) -> Assigning:
        """How values are stored into columns."""
        ansi = setting(self.engine, "spark.sql.ansi.enabled", "true").lower() == "true"
        return Assigning(
            self.view.name, by_name=True, names=self.names, ansi=ansi, whole_structs=True
        )


def row_target(
    lookup: TableLookup, operation: Delete | Update | Merge, verb: str, options: dict[str, Any]
) -> RowTarget:
    """Return the target of an operation; it must be a table of the lake or a branch of one."""
    name = operation.name
    target = lookup.target(name)
    if target is None:
        raise TableNotFoundError(readable(name))
    if not target.is_current:
        raise InvalidStatementError(
            f"Cannot {verb} {readable(name)}: only tables and their branches are written to."
        )
    if target.branch:
        options = {**options, "branch": target.branch}
    handle, chosen = for_write(lookup.need(target.table), lookup.engine, options)
    written = tuple(dict.fromkeys((name, target.table)))
    return RowTarget(lookup.at(handle), handle, chosen, operation.alias or name[-1], written)
