"""Types as statements write them, as a neutral tree with Iceberg's names.

Comes in: type texts with Spark's names (`bigint`, `array<int>`, …) or Iceberg's (`long`,
`fixed[16]`, `timestamp_ns`, …). Goes out: a tree that `rowlake.iceberg` turns into a schema, and
Spark's text for it. As in Iceberg's Spark tables, `timestamp` is the one with a zone
(`timestamptz`), and byte and short become `int`, char and varchar `string`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rowlake.model.column_rules import Identity
from rowlake.sqltext.cursor import Cursor
from rowlake.sqltext.lexer import TokenKind, quote, string_literal
from rowlake.sqltext.limits import MAX_TYPE_DEPTH


@dataclass(frozen=True)
class Primitive:
    """A type without parts, by Iceberg's name: `long`, `decimal(10, 2)`, `fixed[16]`."""

    name: str


@dataclass(frozen=True)
class Field:
    """One field of a struct, or one column; `default` and `generated` are texts of expressions."""

    name: str
    type: Type
    required: bool = False
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: Identity | None = None


@dataclass(frozen=True)
class Struct:
    """A struct; the columns of a table are one too."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class List:
    """A list; elements may be null unless `element_required`."""

    element: Type
    element_required: bool = False


@dataclass(frozen=True)
class Map:
    """A map; keys are never null."""

    key: Type
    value: Type
    value_required: bool = False


Type = Primitive | Struct | List | Map

_PLAIN = {
    "boolean": "boolean",
    "tinyint": "int",
    "byte": "int",
    "smallint": "int",
    "short": "int",
    "int": "int",
    "integer": "int",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "time": "time",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamptz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "timestamp_ns": "timestamp_ns",
    "timestamptz_ns": "timestamptz_ns",
    "string": "string",
    "uuid": "uuid",
    "binary": "binary",
    "variant": "variant",
    "void": "unknown",
    "unknown": "unknown",
    "geometry": "geometry",
    "geography": "geography",
}
_DECIMAL = ("decimal", "dec", "numeric")
_TEXT = ("varchar", "char", "character")
_SPARK = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "unknown": "void",
}


def parse_type(text: str) -> Type:
    """Return the tree of a type text; InvalidStatementError with the place where it is wrong."""
    cursor = Cursor(text)
    found = take_type(cursor)
    cursor.expect_end()
    return found


def take_type(cursor: Cursor) -> Type:
    """Take a type at a cursor."""
    if cursor.type_depth >= MAX_TYPE_DEPTH:
        cursor.fail(f"Types are nested too deep: more than {MAX_TYPE_DEPTH} levels")
    cursor.type_depth += 1
    try:
        return _take_type(cursor)
    finally:
        cursor.type_depth -= 1


def _take_type(cursor: Cursor) -> Type:
    token = cursor.current
    word = token.word.lower()
    if word in ("array", "list") and cursor.peek().text == "<":
        return _take_list(cursor)
    if word == "map" and cursor.peek().text == "<":
        return _take_map(cursor)
    if word == "struct" and cursor.peek().text in ("<", "<>"):
        return _take_struct(cursor)
    if not token.is_name:
        cursor.expected("a type")
    cursor.advance()
    return Primitive(_primitive_name(cursor, token.value.lower()))


def _primitive_name(cursor: Cursor, word: str) -> str:
    if word in _DECIMAL:
        return _decimal_name(cursor)
    if word in _TEXT:
        _arguments(cursor)
        return "string"
    if word == "fixed":
        return _fixed_name(cursor)
    if word in ("geometry", "geography"):
        return word + _raw_arguments(cursor)
    if word in ("time", "timestamp_ntz", "timestamp", "timestamp_ltz", "string"):
        if cursor.at_symbol("("):
            _arguments(cursor)
        elif word == "string" and cursor.accept("COLLATE"):
            _require_plain_collation(cursor)
    if word not in _PLAIN:
        cursor.fail(f"Unknown type {word}", cursor.peek(-1))
    return _PLAIN[word]


def _require_plain_collation(cursor: Cursor) -> None:
    token = cursor.current
    if cursor.name("a collation").upper() != "UTF8_BINARY":
        cursor.fail("Iceberg has no collations other than UTF8_BINARY", token)


def _decimal_name(cursor: Cursor) -> str:
    at = cursor.current
    arguments = _arguments(cursor) if cursor.at_symbol("(") else []
    precision, scale = [*arguments, *[10, 0][len(arguments) :]][:2]
    if len(arguments) > 2 or not (1 <= precision <= 38 and scale <= precision):
        cursor.fail(f"A decimal has 1 to 38 digits, not {precision} with scale {scale}", at)
    return f"decimal({precision}, {scale})"


def _fixed_name(cursor: Cursor) -> str:
    closing = "]" if cursor.at_symbol("[") else ")"
    if not cursor.accept_symbol("["):
        cursor.expect_symbol("(")
    length = cursor.integer("a length in bytes")
    cursor.expect_symbol(closing)
    return f"fixed[{length}]"


def _arguments(cursor: Cursor) -> list[int]:
    cursor.expect_symbol("(")
    numbers = [cursor.integer()]
    while cursor.accept_symbol(","):
        numbers.append(cursor.integer())
    cursor.expect_symbol(")")
    return numbers


def _raw_arguments(cursor: Cursor) -> str:
    if not cursor.at_symbol("("):
        return ""
    start = cursor.advance().start
    while not cursor.at_symbol(")"):
        if cursor.current.kind is TokenKind.END:
            cursor.expected(")")
        cursor.advance()
    return cursor.text[start : cursor.advance().end]


def _take_list(cursor: Cursor) -> List:
    cursor.advance()
    cursor.expect_symbol("<")
    element = take_type(cursor)
    required = cursor.accept("NOT", "NULL")
    cursor.expect_symbol(">")
    return List(element, required)


def _take_map(cursor: Cursor) -> Map:
    cursor.advance()
    cursor.expect_symbol("<")
    key = take_type(cursor)
    cursor.expect_symbol(",")
    value = take_type(cursor)
    required = cursor.accept("NOT", "NULL")
    cursor.expect_symbol(">")
    return Map(key, value, required)


def _take_struct(cursor: Cursor) -> Struct:
    cursor.advance()
    if cursor.accept_symbol("<>"):
        return Struct(())
    cursor.expect_symbol("<")
    fields: list[Field] = []
    while not cursor.at_symbol(">"):
        name = cursor.name("the name of a field")
        cursor.accept_symbol(":")
        fields.append(take_field_rest(cursor, name))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(">")
    return Struct(tuple(fields))


def take_field_rest(cursor: Cursor, name: str, *stop_words: str) -> Field:
    """Take what follows a column's name: type, NOT NULL, COMMENT, DEFAULT, …, in any order."""
    found = Field(name, take_type(cursor))
    while True:
        if cursor.accept("NOT", "NULL"):
            found = replace(found, required=True)
        elif cursor.accept("NULL"):
            found = replace(found, required=False)
        elif cursor.accept("COMMENT"):
            found = replace(found, comment=cursor.string("a comment"))
        elif cursor.accept("DEFAULT"):
            text = cursor.skip_expression("COMMENT", "NOT", "FIRST", "AFTER", *stop_words)
            found = replace(found, default=text)
        elif cursor.accept("GENERATED"):
            found = _take_generated(cursor, found)
        else:
            return found


def _take_generated(cursor: Cursor, found: Field) -> Field:
    """Take `ALWAYS AS (expression)` or `ALWAYS | BY DEFAULT AS IDENTITY [(…)]`."""
    by_default = cursor.accept("BY", "DEFAULT")
    if not by_default:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    if by_default or cursor.at_words("IDENTITY"):
        cursor.expect("IDENTITY")
        return replace(found, identity=_take_identity(cursor, allows_explicit=by_default))
    return replace(found, generated=cursor.bracketed()[1:-1].strip())


def _take_identity(cursor: Cursor, *, allows_explicit: bool) -> Identity:
    start, step, at = 1, 1, cursor.current
    if cursor.accept_symbol("("):
        while not cursor.accept_symbol(")"):
            if cursor.accept("START", "WITH"):
                start = _whole(cursor)
            else:
                cursor.expect("INCREMENT", "BY")
                step = _whole(cursor)
    if not step:
        cursor.fail("INCREMENT BY is 0: all values would be the same", at)
    return Identity(start, step, None, allows_explicit)


def _whole(cursor: Cursor) -> int:
    at = cursor.current
    sign = -1 if cursor.accept_symbol("-") else 1
    found = sign * cursor.integer()
    if not -(2**63) <= found < 2**63:
        cursor.fail(f"{found} does not fit into a BIGINT", at)
    return found


def spark_text(found: Type) -> str:
    """Return Spark's text of a type (`bigint`, `struct<a:int>`, …)."""
    if isinstance(found, Primitive):
        return _SPARK.get(found.name, found.name.replace(", ", ","))
    if isinstance(found, List):
        return f"array<{spark_text(found.element)}>"
    if isinstance(found, Map):
        return f"map<{spark_text(found.key)},{spark_text(found.value)}>"
    return "struct<" + ",".join(f"{f.name}:{spark_text(f.type)}" for f in found.fields) + ">"


def column_text(column: Field) -> str:
    """Return a column as CREATE TABLE writes it."""
    parts = [quote(column.name), ddl_text(column.type)]
    parts += ["NOT NULL"] * column.required
    parts += [f"DEFAULT {column.default}"] if column.default is not None else []
    if column.generated is not None:
        parts.append(f"GENERATED ALWAYS AS ({column.generated})")
    if column.identity is not None:
        parts.append(identity_clause(column.identity))
    parts += [f"COMMENT {string_literal(column.comment)}"] if column.comment is not None else []
    return " ".join(parts)


def identity_clause(found: Identity) -> str:
    """Return how CREATE TABLE makes a column an identity column."""
    how = "BY DEFAULT" if found.allows_explicit else "ALWAYS"
    return f"GENERATED {how} AS IDENTITY (START WITH {found.start} INCREMENT BY {found.step})"


def ddl_text(found: Type) -> str:
    """Return a type as CREATE TABLE and CAST write it, names in backticks."""
    if isinstance(found, Struct):
        return "STRUCT<" + ", ".join(map(_field_text, found.fields)) + ">"
    if isinstance(found, List):
        return f"ARRAY<{ddl_text(found.element)}>"
    if isinstance(found, Map):
        return f"MAP<{ddl_text(found.key)}, {ddl_text(found.value)}>"
    return spark_text(found).upper()


def _field_text(found: Field) -> str:
    text = column_text(found)
    name = quote(found.name)
    return f"{name}:{text[len(name) :]}"
