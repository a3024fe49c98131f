"""UPDATE, MERGE and DELETE are read as Spark's own parser reads them."""

from __future__ import annotations

import re

import pytest

from rowlake.dml.operations import Clause, Delete, Merge, Update, When
from rowlake.sql.parse.statement import parse
from tests.row_level_texts import EXPRESSIONS

STATEMENTS = [
    *(f"UPDATE ns.t AS q SET a = {text}, b.c = {text} WHERE {text}" for text in EXPRESSIONS),
    *(f"DELETE FROM ns.t AS q WHERE {text}" for text in EXPRESSIONS),
    *(
        f"MERGE INTO ns.t AS q USING (SELECT {text} AS x) AS s ON {text} "
        f"WHEN MATCHED AND {text} THEN UPDATE SET a = {text}, b.c = {text} "
        "WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED AND {text} THEN INSERT (a, b) VALUES ({text}, {text}) "
        "WHEN NOT MATCHED THEN INSERT * "
        f"WHEN NOT MATCHED BY SOURCE AND {text} THEN UPDATE SET a = {text} "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        for text in EXPRESSIONS
    ),
    "UPDATE t SET a == DEFAULT, `b c` = 1;",
    "DELETE FROM ns.t",
    "WITH c AS (SELECT 1) MERGE WITH SCHEMA EVOLUTION INTO ns.t USING c ON true "
    "WHEN MATCHED THEN UPDATE SET * WHEN ! MATCHED BY TARGET THEN INSERT *",
]


class Reader:
    """Spark's parser; what it makes of a statement as plain values."""

    def __init__(self, spark) -> None:
        self.parser = spark._jsparkSession.sessionState().sqlParser()

    def expression(self, text: str | None) -> str | None:
        return None if text is None else plain(self.parser.parseExpression(text))

    def statement(self, text: str) -> tuple:
        plan = self.parser.parsePlan(text)
        if plan.getClass().getSimpleName() == "UnresolvedWith":
            plan = plan.child()
        kind = plan.getClass().getSimpleName()
        if kind == "UpdateTable":
            return kind, pairs(plan), optional(plan.condition())
        if kind == "DeleteFromTable":
            return kind, plain(plan.condition())
        actions = [
            plan.matchedActions(),
            plan.notMatchedActions(),
            plan.notMatchedBySourceActions(),
        ]
        found = [[action_of(each) for each in items(list_)] for list_ in actions]
        return kind, plain(plan.mergeCondition()), found, plan.withSchemaEvolution()

    def ours(self, text: str) -> tuple:
        found = parse(text)
        if isinstance(found, Delete):
            return "DeleteFromTable", self.expression(found.where or "true")
        if isinstance(found, Update):
            return "UpdateTable", self.assigned(found.assignments), self.expression(found.where)
        assert isinstance(found, Merge)
        clauses = [[self.clause(each) for each in found.of(when)] for when in When]
        return "MergeIntoTable", self.expression(found.on), clauses, found.schema_evolution

    def assigned(self, assignments) -> list[tuple[str, str | None]]:
        return [(".".join(each.column), self.expression(each.value)) for each in assignments]

    def clause(self, clause: Clause) -> tuple:
        star = "Star" if clause.assignments is None else ""
        kind = f"{clause.action.value.capitalize()}{star}Action"
        return kind, self.expression(clause.condition), self.assigned(clause.assignments or ())


def plain(expression) -> str:
    """Return Spark's text of an expression, without the ids that differ between two readings."""
    return re.sub(r"#\d+|`", "", expression.toString())


def optional(expression) -> str | None:
    return plain(expression.get()) if expression.isDefined() else None


def items(sequence) -> list:
    return [sequence.apply(index) for index in range(sequence.size())]


def pairs(holder) -> list[tuple[str, str]]:
    found = items(holder.assignments())
    return [(plain(each.key()).lstrip("'"), plain(each.value())) for each in found]


def action_of(action) -> tuple:
    kind = action.getClass().getSimpleName()
    values = pairs(action) if kind in ("UpdateAction", "InsertAction") else []
    return kind, optional(action.condition()), values


@pytest.fixture(scope="module")
def reader(spark) -> Reader:
    return Reader(spark)


def test_statements_are_read_as_spark_reads_them(reader) -> None:
    different = [text for text in STATEMENTS if reader.ours(text) != reader.statement(text)]
    assert not different
