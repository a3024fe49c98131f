"""Store assignment, as Spark's ANSI policy has it."""

from __future__ import annotations

import pytest

from rowlake.conditions.store_assignment import (
    Assignment,
    SourceColumn,
    TargetColumn,
    assigned,
    converted,
)
from rowlake.errors import SchemaMismatchError

TABLE = [
    TargetColumn("id", "bigint", True),
    TargetColumn("Name", "string"),
    TargetColumn("n", "int", default="7"),
]


def source(*columns):
    return [SourceColumn(name, kind, f"__{i}") for i, (name, kind) in enumerate(columns)]


def test_columns_by_position():
    found = assigned(source(("a", "int"), ("b", "string"), ("c", "bigint")), TABLE, Assignment("t"))
    assert found == ["CAST(__0 AS bigint) AS `id`", "__1 AS `Name`", "CAST(__2 AS int) AS `n`"]


def test_a_column_list_leaves_the_rest_to_defaults():
    how = Assignment("t", columns=("NAME", "id"))
    found = assigned(source(("a", "string"), ("b", "bigint")), TABLE, how)
    assert found == ["__1 AS `id`", "__0 AS `Name`", "CAST(7 AS int) AS `n`"]


def test_columns_by_name():
    how = Assignment("t", by_name=True)
    found = assigned(source(("N", "int"), ("ID", "bigint")), TABLE, how)
    assert found == ["__1 AS `id`", "CAST(NULL AS string) AS `Name`", "__0 AS `n`"]


def test_static_partition_values():
    how = Assignment("t", static={"n": "1 + 1"})
    found = assigned(source(("a", "bigint"), ("b", "string")), TABLE, how)
    assert found[2] == "CAST(1 + 1 AS int) AS `n`"


@pytest.mark.parametrize(
    ("columns", "how", "message"),
    [
        ([("a", "int")], {}, "3 columns are needed"),
        ([("a", "int")], {"columns": ("nope",)}, "has no column nope"),
        ([("a", "int"), ("b", "int")], {"columns": ("id", "ID")}, "id gets two values"),
        ([("a", "string")], {"columns": ("Name",)}, "id is required"),
        ([("x", "int")], {"by_name": True}, "has no column x"),
        ([("id", "int"), ("ID", "int")], {"by_name": True}, "id gets two values"),
        ([("a", "string"), ("b", "string"), ("c", "int")], {}, "Cannot write string to column id"),
    ],
)
def test_mismatches(columns, how, message):
    with pytest.raises(SchemaMismatchError, match=message):
        assigned(source(*columns), TABLE, Assignment("t", **how))


ALLOWED = {
    ("int", "bigint"),
    ("bigint", "int"),
    ("double", "int"),
    ("int", "decimal(9,2)"),
    ("decimal(9,2)", "decimal(5,1)"),
    ("int", "string"),
    ("date", "string"),
    ("boolean", "string"),
    ("date", "timestamp"),
    ("timestamp", "date"),
    ("timestamp_ntz", "timestamp"),
    ("void", "int"),
    ("array<int>", "array<bigint>"),
    ("map<string,int>", "map<string,double>"),
    ("struct<a:int>", "struct<b:bigint>"),
    ("tinyint", "int"),
    ("void", "struct<a:int>"),
}
REFUSED = {
    ("string", "int"),
    ("string", "date"),
    ("boolean", "int"),
    ("int", "boolean"),
    ("int", "date"),
    ("timestamp", "bigint"),
    ("binary", "int"),
    ("array<string>", "array<int>"),
    ("struct<a:int>", "struct<a:int,b:int>"),
    ("int", "array<int>"),
    ("interval day", "int"),
    ("string", "binary"),
}


@pytest.mark.parametrize(("one", "other"), sorted(ALLOWED))
def test_allowed(one, other):
    assert converted("e", one, TargetColumn("c", other), Assignment("t")) == f"CAST(e AS {other})"


@pytest.mark.parametrize(("one", "other"), sorted(REFUSED))
def test_refused(one, other):
    with pytest.raises(SchemaMismatchError):
        converted("e", one, TargetColumn("c", other), Assignment("t"))


def test_structs_by_name():
    how = Assignment("t", by_name=True)
    found = converted("e", "struct<b:int,a:int>", TargetColumn("c", "struct<a:bigint,b:int>"), how)
    assert found == (
        "IF(e IS NULL, NULL, named_struct('a', CAST(e.`a` AS BIGINT), 'b', CAST(e.`b` AS INT)))"
    )


def test_structs_by_name_are_checked_by_name():
    how = Assignment("t", by_name=True)
    target = TargetColumn("c", "struct<a:string,b:int>")
    assert "named_struct" in converted("e", "struct<b:int,a:string>", target, how)
    assert "CAST(NULL AS STRING)" in converted("e", "struct<b:int>", target, how)
    for source in ("struct<b:string,a:string>", "struct<a:string,c:int>"):
        with pytest.raises(SchemaMismatchError):
            converted("e", source, target, how)


def test_overflow_is_checked_where_the_session_would_not():
    how = Assignment("t", ansi=False)
    found = converted("e", "bigint", TargetColumn("c", "int"), how)
    assert "BETWEEN -2147483648 AND 2147483647" in found
    assert "raise_error" in found
