"""Type texts, both ways."""

from __future__ import annotations

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.spark_types import columns_of
from rowlake.sqltext.types import (
    Field,
    List,
    Map,
    Primitive,
    Struct,
    column_text,
    parse_type,
    spark_text,
)

NAMES = {
    "boolean": "boolean",
    "TINYINT": "int",
    "smallint": "int",
    "int": "int",
    "integer": "int",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "decimal": "decimal(10, 0)",
    "decimal(9)": "decimal(9, 0)",
    "numeric(9,2)": "decimal(9, 2)",
    "string": "string",
    "varchar(10)": "string",
    "char(3)": "string",
    "binary": "binary",
    "date": "date",
    "time": "time",
    "time(6)": "time",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamptz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "timestamp_ns": "timestamp_ns",
    "timestamptz_ns": "timestamptz_ns",
    "uuid": "uuid",
    "fixed(16)": "fixed[16]",
    "fixed[16]": "fixed[16]",
    "variant": "variant",
    "void": "unknown",
    "geometry(srid:4326)": "geometry(srid:4326)",
}


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_primitive_types(text, name):
    assert parse_type(text) == Primitive(name)


def test_nested_types():
    text = "struct<a: array<array<map<int,string>>>, b: map<string,struct<`x y`: int>>>"
    inner = List(List(Map(Primitive("int"), Primitive("string"))))
    field = Map(Primitive("string"), Struct((Field("x y", Primitive("int")),)))
    assert parse_type(text) == Struct((Field("a", inner), Field("b", field)))
    assert parse_type("array<int not null>") == List(Primitive("int"), True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "blob",
        "array<",
        "array<int",
        "map<int>",
        "fixed",
        "struct<a>",
        "decimal(40,2)",
        "decimal(5,9)",
        "int int",
        "string collate de",
    ],
)
def test_wrong_types(text):
    with pytest.raises(InvalidStatementError):
        parse_type(text)


def test_spark_text_reads_back():
    text = "struct<a:array<bigint>,b:map<string,decimal(9,2)>,c:timestamp,d:timestamp_ntz>"
    assert spark_text(parse_type(text)) == text


def test_column_text_reads_back():
    column = Field("a b", Struct((Field("x", Primitive("long"), True, "it's"),)), True, "c", "NULL")
    text = column_text(column)
    assert text == (
        "`a b` STRUCT<`x`: BIGINT NOT NULL COMMENT 'it\\'s'> NOT NULL DEFAULT NULL COMMENT 'c'"
    )


def test_columns_of_a_spark_schema():
    schema = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "long", "nullable": False, "metadata": {"comment": "k"}},
            {"name": "b", "type": "decimal(9,2)", "nullable": True, "metadata": {}},
            {
                "name": "c",
                "type": {"type": "array", "elementType": "integer", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "d",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "timestamp_ntz",
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    assert columns_of(schema) == (
        Field("a", Primitive("long"), comment="k"),
        Field("b", Primitive("decimal(9, 2)")),
        Field("c", List(Primitive("int"))),
        Field("d", Map(Primitive("string"), Primitive("timestamp"))),
    )
