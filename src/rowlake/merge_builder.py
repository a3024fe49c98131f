"""MERGE from Python: a builder whose steps are the clauses of the statement.

    lake.table("shop.sales").merge(df, on=["id"])
        .when_matched_update({"qty": "s.qty"}, condition="s.at > t.at")
        .when_not_matched_insert_all()
        .execute()

The target is `t` and the source is `s` in all texts. A builder is frozen: each step returns a new
one, and neither source nor table is touched before `execute` or `explain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.dml.change import change_rows, explain_rows
from rowlake.dml.clause_rules import first_broken_rule
from rowlake.dml.operations import Action, Clause, Merge, When
from rowlake.dml.python_arguments import assignments_of, condition_of, match_of
from rowlake.errors import InvalidStatementError
from rowlake.sources.rows import SourcePath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.table import Table

TARGET, SOURCE = "t", "s"


class GivenSource:
    """What was handed in as source, shared by all steps of a builder."""

    def __init__(self, given: Any) -> None:
        self.given = given

    @cached_property
    def rows(self) -> Any:
        """The source as a statement takes it: no text, and nothing that can be read only once."""
        if isinstance(self.given, (str, Path)):
            return SourcePath(str(self.given))
        if isinstance(self.given, pa.RecordBatchReader):
            return self.given.read_all()
        return self.given


@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE being put together; made by `Table.merge`."""

    table: Table
    source: GivenSource
    on: str
    clauses: tuple[Clause, ...] = ()
    schema_evolution: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.when.value} {c.action.value}" for c in self.clauses)
        return f"MergeBuilder({self.table.name}: {kinds or 'no clause yet'})"

    # ------------------------------------------------------------------ matched

    def when_matched_update(
        self, set: Mapping[str, Any], condition: str | None = None
    ) -> MergeBuilder:
        """Update target rows that match: columns (or fields, `a.b`) to SQL texts or values."""
        return self._with(When.MATCHED, Action.UPDATE, condition, set, "set")

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder:
        """Update all columns of target rows that match, from source columns of the same names."""
        return self._with_all(When.MATCHED, Action.UPDATE, condition)

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete target rows that match."""
        return self._with(When.MATCHED, Action.DELETE, condition)

    # ------------------------------------------------------------------ not matched

    def when_not_matched_insert(
        self, values: Mapping[str, Any], condition: str | None = None
    ) -> MergeBuilder:
        """Insert source rows without a match; columns not named get their default, or NULL."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, values, "values")

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder:
        """Insert source rows without a match, all columns by their names."""
        return self._with_all(When.NOT_MATCHED, Action.INSERT, condition)

    # ------------------------------------------------------------------ not matched by source

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Any], condition: str | None = None
    ) -> MergeBuilder:
        """Update target rows that no source row matches; there is no `s` here."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, set, "set")

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete target rows that no source row matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    # ------------------------------------------------------------------ the whole

    def with_schema_evolution(self) -> MergeBuilder:
        """Let columns that only the source has be added to the table."""
        return replace(self, schema_evolution=True)

    def explain(self) -> Plan:
        """Return what would be done: files, join, strategies, counts; nothing is written."""
        return explain_rows(self.table.lookup(), self._runnable(), **self.options)

    def execute(self) -> Result:
        """Run the MERGE; one commit, or none where nothing changes."""
        _, result = change_rows(self.table.lookup(), self._runnable(), **self.options)
        return result

    @property
    def statement(self) -> Merge:
        """The statement that this builder stands for, with the source as it was handed in."""
        return Merge(
            name=self.table.identifier,
            source=self.source.given,
            on=self.on,
            clauses=self.clauses,
            alias=TARGET,
            source_alias=SOURCE,
            schema_evolution=self.schema_evolution,
        )

    def _runnable(self) -> Merge:
        broken = first_broken_rule(self.clauses)
        if broken:
            raise InvalidStatementError(f"MERGE into {self.table.name}: {broken.text}.")
        return replace(self.statement, source=self.source.rows)

    def _with(
        self,
        when: When,
        action: Action,
        condition: Any,
        values: Any = None,
        what: str = "",
    ) -> MergeBuilder:
        assigned = assignments_of(values, ((TARGET,),), what) if what else ()
        return self._and(Clause(when, action, condition_of(condition), assigned))

    def _with_all(self, when: When, action: Action, condition: Any) -> MergeBuilder:
        return self._and(Clause(when, action, condition_of(condition), None))

    def _and(self, clause: Clause) -> MergeBuilder:
        return replace(self, clauses=(*self.clauses, clause))


def merge_into(table: Table, source: Any, on: Any, options: Mapping[str, Any]) -> MergeBuilder:
    """Return a builder without clauses."""
    is_listed = isinstance(on, Sequence) and not isinstance(on, str)
    # A plain name means itself; of any other the table says whether it is a column or a path.
    is_plain = not is_listed or all(str(column).isidentifier() for column in on)
    columns = () if is_plain else table.handle.view().schema.arrow.names
    matching = match_of(on, TARGET, SOURCE, columns)
    return MergeBuilder(table, GivenSource(source), matching, options=dict(options))
