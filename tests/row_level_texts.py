"""Texts of row-level statements: expressions that hold keywords, and statements with mistakes."""

from __future__ import annotations

EXPRESSIONS = [
    "CASE WHEN a THEN b ELSE c END",
    "CASE a WHEN 1 THEN 2 WHEN 3 THEN CASE WHEN x THEN y END END",
    "CASE WHEN CASE WHEN a THEN b END THEN CASE c WHEN d THEN e END ELSE -1 END + 1",
    "(SELECT max(x) FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.a = u.a))",
    "CASE WHEN (SELECT count(*) FROM u) > 1 THEN (CASE WHEN a THEN b END) END",
    "t.when + s.`then` + t.end + t.case",
    "CASE WHEN t.end > 1 THEN end ELSE t.when END",
    "CASE WHEN end > 1 THEN then END",
    "'WHEN MATCHED THEN DELETE'",
    '"THEN"',
    "`WHEN`",
    "r'\\' || a /* WHEN */ || b",
    "case = 1",
    "-CASE -a WHEN 1 THEN 2 END",
    "a IS NOT NULL AND b NOT IN (1, 2) AND c NOT LIKE 'x' AND d NOT BETWEEN 1 AND 2",
    "a IS NOT DISTINCT FROM b",
    "a::map<string, array<int>> IS NULL",
    "a < b AND c > d",
    "transform(a, (x, i) -> CASE WHEN x > i THEN x END)",
    "a:b.c[0]",
    "INTERVAL '1' DAY",
    "DATE'2020-01-01'",
    "count(*)",
    "f(a => 1)",
    "a + interval",
    "a = like",
    "struct(1 AS a, 2 AS b).a",
    "! a",
    "NOT a",
    "a <=> b",
    "a[b['WHEN']]",
]

# Each with what is said about it, and at which offset.
HEAD = "MERGE INTO ns.t USING u ON t.a = u.a "
MISTAKES = {
    "UPDATE ns.t": "Expected SET but found end of statement @11",
    "UPDATE ns.t SET": "Expected a column but found end of statement @15",
    "UPDATE ns.t SET a": "Expected = but found end of statement @17",
    "UPDATE ns.t SET a =": "Expected an expression but found end of statement @19",
    "UPDATE ns.t SET a = , b = 1": "Expected an expression but found , @20",
    "UPDATE ns.t SET a = b + WHERE c": "Expected an expression but found WHERE @24",
    "UPDATE ns.t SET a = 1,": "Expected a column but found end of statement @22",
    "UPDATE ns.t SET a = 1, t.a = 2": "Column a is assigned twice @23",
    "UPDATE ns.t SET a = 1 WHERE": "Expected an expression but found end of statement @27",
    "UPDATE ns.t SET a = 1 WHERE b = 1, c = 2": (
        "Expected the end of the statement but found , @33"
    ),
    "UPDATE ns.t SET a = (1": "A bracket is not closed @20",
    "UPDATE ns.t SET a = 1)": "Expected the end of the statement but found ) @21",
    "UPDATE ns.t SET a = CASE WHEN b THEN c": "CASE has no END @20",
    "UPDATE ns.t SET a = 'x": "A quote is not closed @20",
    "UPDATE ns.t AS x(a, b) SET a = 1": (
        "The target of UPDATE cannot give its columns other names @16"
    ),
    "UPDATE ns.t SET a = 1; UPDATE ns.t SET a = 2": (
        "Expected the end of the statement but found ; @21"
    ),
    "DELETE ns.t": "Expected FROM but found ns @7",
    "DELETE FROM": "Expected the name of a table but found end of statement @11",
    "DELETE FROM ns.t WHERE": "Expected an expression but found end of statement @22",
    "DELETE FROM ns.t WHERE a = (1": "A bracket is not closed @27",
    "MERGE ns.t": "Expected INTO but found ns @6",
    "MERGE WITH SCHEMA INTO ns.t": "Expected INTO but found WITH @6",
    "MERGE INTO ns.t": "Expected USING but found end of statement @15",
    "MERGE INTO ns.t USING": (
        "Expected a table, a view or a query in brackets but found end of statement @21"
    ),
    "MERGE INTO ns.t USING (SELECT 1": "A bracket is not closed @22",
    "MERGE INTO ns.t USING u": "Expected ON but found end of statement @23",
    "MERGE INTO ns.t USING u s(a) ON 1": (
        "The source of MERGE cannot give its columns other names; use a query @25"
    ),
    "MERGE INTO ns.t USING u ON": "Expected an expression but found end of statement @26",
    "MERGE INTO ns.t USING u ON WHEN MATCHED THEN DELETE": (
        "Expected an expression but found WHEN @27"
    ),
    "MERGE INTO ns.t USING u ON t.a = WHEN MATCHED THEN DELETE": (
        "Expected an expression but found WHEN @33"
    ),
    HEAD: "MERGE needs at least one WHEN clause @37",
    HEAD + ", b": "Expected WHEN or the end of the statement but found , @37",
    HEAD + "WHEN": "Expected MATCHED but found end of statement @41",
    HEAD + "WHEN NOT": "Expected MATCHED but found end of statement @45",
    HEAD + "WHEN MATCHED": "Expected THEN but found end of statement @49",
    HEAD + "WHEN MATCHED DELETE": "Expected THEN but found DELETE @50",
    HEAD + "WHEN MATCHED AND THEN DELETE": "Expected an expression but found THEN @54",
    HEAD + "WHEN MATCHED AND a DELETE": "Expected THEN but found end of statement @62",
    HEAD + "WHEN MATCHED THEN": (
        "Expected UPDATE or DELETE or INSERT but found end of statement @54"
    ),
    HEAD + "WHEN MATCHED THEN INSERT *": (
        "A MATCHED clause cannot INSERT: it can UPDATE or DELETE @55"
    ),
    HEAD + "WHEN NOT MATCHED THEN DELETE": (
        "A NOT MATCHED clause has no target row to DELETE: it can only INSERT @59"
    ),
    HEAD + "WHEN NOT MATCHED BY TARGET THEN UPDATE SET *": (
        "A NOT MATCHED clause has no target row to UPDATE: it can only INSERT @69"
    ),
    HEAD + "WHEN NOT MATCHED BY SOURCE THEN INSERT *": (
        "A NOT MATCHED BY SOURCE clause cannot INSERT: it can UPDATE or DELETE @69"
    ),
    HEAD + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *": (
        "A NOT MATCHED BY SOURCE clause has no source row: UPDATE SET * needs one @80"
    ),
    HEAD + "WHEN NOT MATCHED BY u THEN DELETE": "Expected SOURCE or TARGET but found u @57",
    HEAD + "WHEN MATCHED THEN UPDATE *": "Expected SET but found * @62",
    HEAD + "WHEN NOT MATCHED THEN INSERT VALUES (1)": (
        "Expected * or the columns to insert in brackets but found VALUES @66"
    ),
    HEAD + "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)": (
        "INSERT names 2 columns but has 1 value @80"
    ),
    HEAD + "WHEN NOT MATCHED THEN INSERT (a) VALUES (1, f(2, 3))": (
        "INSERT names 1 column but has 2 values @77"
    ),
    HEAD + "WHEN NOT MATCHED THEN INSERT (a, a) VALUES (1, 2)": "Column a is assigned twice @70",
    HEAD
    + "WHEN NOT MATCHED THEN INSERT (a) VALUES (1": "Expected ) but found end of statement @79",
    HEAD + "WHEN NOT MATCHED THEN INSERT (a) VALUES ()": "Expected an expression but found ) @78",
    HEAD + "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *": (
        "Only the last MATCHED clause can be without a condition: those after this one would "
        "never be reached @37"
    ),
    HEAD + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT * "
    "WHEN NOT MATCHED AND a THEN INSERT *": (
        "Only the last NOT MATCHED clause can be without a condition: those after this one would "
        "never be reached @62"
    ),
    HEAD + "WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE": (
        "MATCHED clauses come before NOT MATCHED clauses @68"
    ),
    HEAD + "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT *": (
        "NOT MATCHED clauses come before NOT MATCHED BY SOURCE clauses @76"
    ),
    HEAD + "WHEN MATCHED THEN DELETE, DELETE": (
        "Expected WHEN or the end of the statement but found , @61"
    ),
    HEAD + "WHEN MATCHED THEN DELETE; SELECT 1": (
        "Expected WHEN or the end of the statement but found ; @61"
    ),
    "EXPLAIN UPDATE ns.t SET a": "Expected = but found end of statement @25",
    "WITH a AS (SELECT 1) MERGE ns.t": "Expected INTO but found ns @27",
}
