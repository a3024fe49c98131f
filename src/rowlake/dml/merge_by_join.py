"""MERGE by a join of Spark: for every ON, condition and value that Spark can evaluate.

Spark joins the target (the columns that are named, with `_file` and `_pos`) and the source, picks
the clause of each row and evaluates what it assigns; the result is staged by target file. Columns
that are not set, and rows that do not change, never pass through Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.conditions.pushed import columns_in, pushed_condition
from rowlake.dml.assigned_columns import stored_text
from rowlake.dml.generated_columns import texts_of
from rowlake.dml.merge_by_key import PreparedMerge
from rowlake.dml.operations import Action, When
from rowlake.dml.values import spark_types
from rowlake.model.column_rules import generated_columns, identity_columns
from rowlake.model.predicate import TRUE
from rowlake.model.task import FILE_COLUMN, POS_COLUMN
from rowlake.prune.bind import bind
from rowlake.query.run import fresh_name, run_query
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.sqltext.lexer import quote
from rowlake.verbs.identity_columns import numbered_frame
from rowlake.verbs.read import Request, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.merge_clauses import MergeClause, Merging
    from rowlake.model.column_rules import Identity
    from rowlake.model.predicate import Predicate

_FILE, _POS = FILE_COLUMN, POS_COLUMN
_CLAUSE, _PRESENT, _NEW = "__clause", "__present", "__new_"


def by_join(merging: Merging) -> PreparedMerge:
    """Return how to do a MERGE by a join of Spark."""
    joined = _Joined(merging)
    columns = _set_columns(merging)
    staged = {name: f"v{at}" for at, name in enumerate(columns)}
    schema = merging.target.view.schema
    fields = [
        pa.field(_FILE, pa.string()),
        pa.field(_POS, pa.int64()),
        *(pa.field(f"f{at}", pa.bool_()) for at in range(len(merging.clauses))),
        *(schema.arrow.field(name).with_name(held) for name, held in staged.items()),
    ]
    clauses = tuple(
        TaskClause(
            clause.when if clause.when is When.NOT_MATCHED else When.MATCHED,
            clause.action,
            flag=f"f{at}",
            values={name: staged[name] for name in columns if name in clause.columns},
        )
        for at, clause in enumerate(merging.clauses)
    )
    change = RowChange(
        "merge",
        clauses,
        Matching(location=_FILE, position=_POS),
        joined.predicate,
        checks_cardinality=merging.checks_cardinality,
        snapshot_id=merging.target.view.snapshot_id,
        makes_columns=True,
        identities=_identities(merging),
    )
    shape = Shape(tuple(fields), dealing=Dealing(file_column=_FILE))
    return PreparedMerge(joined.changes(staged), shape, change)


def _identities(merging: Merging) -> dict[str, Identity]:
    """Return the identity columns that inserted rows get new values of."""
    made = {name for clause in merging.clauses for name in clause.made}
    found = identity_columns(merging.target.view.schema.arrow)
    return {name: one for name, one in found.items() if name in made}


def _set_columns(merging: Merging) -> list[str]:
    """Return the columns that any clause sets, in the table's order."""
    found = {name for clause in merging.clauses for name in clause.columns}
    return [column.name for column in merging.target.columns if column.name in found]


class _Joined:
    """Target and source, joined by Spark."""

    def __init__(self, merging: Merging) -> None:
        self.merging = merging
        self.t, self.s = quote(merging.target.visible), quote(merging.visible)
        self.names = fresh_name(), fresh_name()
        self.predicate = self._predicate()
        self.frames = {self.names[0]: self._target(), self.names[1]: self._source()}

    def _predicate(self) -> Predicate:
        """Return what ON says of the target alone; all rows where unmatched ones change too."""
        merging = self.merging
        if merging.of(When.NOT_MATCHED_BY_SOURCE):
            return TRUE
        pushed = pushed_condition(
            merging.on,
            merging.target.view.schema,
            zone=merging.target.names.zone,
            case_sensitive=merging.target.names.case_sensitive,
            qualifier=merging.target.visible,
        )
        return bind(pushed.predicate, merging.target.view.schema)

    def _target(self) -> Any:
        target, merging = self.merging.target, self.merging
        texts = [merging.on, *(clause.condition or "" for clause in merging.clauses)]
        texts += [t for clause in merging.clauses for each in clause.assigned for t in each.texts]
        nested = [
            each.column.name
            for clause in merging.clauses
            for each in clause.assigned
            if each.plain is None
        ]
        return self._read([*columns_in(" ; ".join(texts), target.view.schema), *nested])

    def _read(self, names: Sequence[str]) -> Any:
        target = self.merging.target
        columns = [*dict.fromkeys(names), _FILE, _POS]
        request = Request(columns, self.predicate, snapshot_id=target.view.snapshot_id)
        return frame(target.handle, target.engine, request)

    def _widened(self) -> dict[str, Any]:
        return {self.names[0]: self._read(self.merging.target.view.schema.arrow.names)}

    def _source(self) -> Any:
        return self.merging.source.frame.selectExpr("*", f"TRUE AS {quote(_PRESENT)}")

    def run(self, listed: Sequence[str]) -> Any:
        """Return the DataFrame of a SELECT list over the join."""
        merging = self.merging
        kinds = {
            (False, False): "INNER",
            (True, False): "RIGHT OUTER",
            (False, True): "LEFT OUTER",
            (True, True): "FULL OUTER",
        }
        inserts = bool(merging.of(When.NOT_MATCHED))
        kind = kinds[inserts, bool(merging.of(When.NOT_MATCHED_BY_SOURCE))]
        text = (
            f"{merging.with_clause}SELECT {', '.join(listed)} FROM {quote(self.names[0])} "
            f"AS {self.t} {kind} JOIN {quote(self.names[1])} AS {self.s} ON {merging.on}"
        )
        target = merging.target
        return run_query(
            target.lookup,
            text,
            merging.arguments,
            self.frames,
            widened=self._widened,
        )

    def changes(self, staged: dict[str, str]) -> Any:
        """Return the rows that a clause is for (and all matches, where they are counted)."""
        merging = self.merging
        texts = [t for clause in merging.clauses for each in clause.assigned for t in each.texts]
        types = spark_types(texts, self.run)
        given = {each.column.name for clause in merging.clauses for each in clause.assigned}
        held = {name: place for name, place in staged.items() if name in given}
        values = [f"{self._value(name, types)} AS {quote(place)}" for name, place in held.items()]
        listed = [
            f"{self.t}.{quote(_FILE)} AS {quote(_FILE)}",
            f"{self.t}.{quote(_POS)} AS {quote(_POS)}",
            f"{self._clause_number()} AS {quote(_CLAUSE)}",
            *values,
        ]
        frame = self.run(listed).where(f"{quote(_CLAUSE)} IS NOT NULL")
        flags = [
            f"{quote(_CLAUSE)} = {at} AS {quote(f'f{at}')}" for at in range(len(merging.clauses))
        ]
        own = [quote(_FILE), quote(_POS)]
        made = self._made()
        if not made:
            return frame.selectExpr(*own, *flags, *map(quote, staged.values()))
        named = [f"{quote(place)} AS {quote(name)}" for name, place in held.items()]
        listed = [f"{made.get(name, quote(name))} AS {quote(to)}" for name, to in staged.items()]
        frame = frame.selectExpr(*own, quote(_CLAUSE), *named)
        new = {f"{_NEW}{name}": one for name, one in _identities(merging).items()}
        frame = numbered_frame(frame, new, merging.target.engine)
        return frame.selectExpr(*own, *flags, *listed)

    def _made(self) -> dict[str, str]:
        """Return the texts of generated columns: by the clause of each row, made or checked."""
        target, found = self.merging.target, {}
        schema = target.view.schema.arrow
        generated, identities = generated_columns(schema), identity_columns(schema)
        made = {name: quote(f"{_NEW}{name}") for name in identities} | texts_of(target, ())
        given = {name: quote(name) for name in identities} | texts_of(target, generated)
        for name in (*generated, *identities):
            branches = []
            for at, clause in enumerate(self.merging.clauses):
                if name in clause.columns:
                    text = made[name] if name in clause.made else given[name]
                    branches.append(f"WHEN {quote(_CLAUSE)} = {at} THEN {text}")
            if branches:
                found[name] = f"CASE {' '.join(branches)} END"
        return found

    def _clause_number(self) -> str:
        """Return the number of the first clause for a row; -1 for a match without one."""
        merging = self.merging
        in_target = f"{self.t}.{quote(_FILE)} IS NOT NULL"
        in_source = f"{self.s}.{quote(_PRESENT)} IS NOT NULL"
        unused = -1 if merging.checks_cardinality else "NULL"
        return (
            f"CASE WHEN {in_target} AND {in_source} THEN {self._first(When.MATCHED, unused)} "
            f"WHEN {in_source} THEN {self._first(When.NOT_MATCHED)} "
            f"ELSE {self._first(When.NOT_MATCHED_BY_SOURCE)} END"
        )

    def _first(self, when: When, otherwise: object = "NULL") -> str:
        branches = [
            f"WHEN {clause.condition or 'TRUE'} THEN {at}"
            for at, clause in enumerate(self.merging.clauses)
            if clause.when is when
        ]
        if not branches:
            return f"CAST({otherwise} AS INT)"
        return f"CASE {' '.join(branches)} ELSE {otherwise} END"

    def _value(self, name: str, types: dict[str, str]) -> str:
        """Return the new value of a column: by the clause of each row."""
        branches = [
            f"WHEN {quote(_CLAUSE)} = {at} THEN {text}"
            for at, clause in enumerate(self.merging.clauses)
            for text in self._texts(clause, name, types)
        ]
        return f"CASE {' '.join(branches)} END"

    def _texts(self, clause: MergeClause, name: str, types: dict[str, str]) -> list[str]:
        if clause.action is Action.DELETE:
            return []
        return [
            stored_text(each, types, self.merging.target)
            for each in clause.assigned
            if each.column.name == name
        ]
