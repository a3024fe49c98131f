"""Columns of Connect sessions as SQL texts, by the message that their client would send.

Imports pyspark, which is loaded by now: the column is of it.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from rowlake.engine.column_text import rendering
from rowlake.engine.column_text.names import SourceNames, no_text, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Plans that keep the names of the one below them, with its alias.
_KEEPING = frozenset(
    {"filter", "sort", "limit", "offset", "deduplicate", "sample", "hint", "repartition", "tail"}
)
_EPOCH = datetime.date(1970, 1, 1)
_MICROS = 1_000_000


def names_of(frame: Any, fresh: str) -> SourceNames:
    """Return how the columns of a DataFrame are named: by its alias, or a fresh one."""
    client = frame.sparkSession.client
    plan = frame._plan.to_proto(client).root
    ids = frozenset(str(each) for each in _plan_ids(plan))
    return SourceNames(_alias(plan) or fresh, ids)


def _alias(relation: Any) -> str | None:
    kind = relation.WhichOneof("rel_type")
    if kind == "subquery_alias":
        return str(relation.subquery_alias.alias)
    if kind == "with_relations":
        return _alias(relation.with_relations.root)
    if kind == "read" and relation.read.WhichOneof("read_type") == "named_table":
        name = str(relation.read.named_table.unparsed_identifier)
        return name.rpartition(".")[2].strip("`")
    if kind in _KEEPING:
        return _alias(getattr(relation, kind).input)
    return None


def _plan_ids(message: Any) -> Iterator[int]:
    """Yield the ids of a plan and of all below it."""
    for field, value in message.ListFields():
        if field.name == "common" and value.HasField("plan_id"):
            yield value.plan_id
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for each in value if field.is_repeated else [value]:
            yield from _plan_ids(each)


def text_of(column: Any, source: SourceNames, *, internal: bool = False) -> str:  # noqa: ARG001
    """Return the text of a column."""
    from pyspark.sql.connect.session import SparkSession

    return _Reader(source).text(column.to_plan(SparkSession.active().client))


class _Reader:
    def __init__(self, source: SourceNames) -> None:
        self._source = source

    def text(self, message: Any) -> str:
        kind = message.WhichOneof("expr_type")
        reader = _READERS.get(kind)
        if reader is None:
            raise no_text(_SAID.get(kind, f"{kind} in it"))
        return reader(self, getattr(message, kind))

    def texts(self, messages: Any) -> list[str]:
        return [self.text(each) for each in messages]

    def attribute(self, found: Any) -> str:
        name = str(found.unparsed_identifier)
        if found.HasField("plan_id"):
            return self._source.written(name, str(found.plan_id))
        return name

    def function(self, found: Any) -> str:
        arguments = self.texts(found.arguments)
        return rendering.function_text(
            found.function_name, arguments, distinct=bool(found.is_distinct)
        )

    def called(self, found: Any) -> str:
        return rendering.function_text(found.function_name, self.texts(found.arguments))

    def expression(self, found: Any) -> str:
        return rendering.expression_text(str(found.expression))

    def alias(self, found: Any) -> str:
        return self.text(found.expr)

    def cast(self, found: Any) -> str:
        kind = str(found.type_str)
        if found.WhichOneof("cast_to_type") == "type":
            kind = proto_schema_to_pyspark_data_type(found.type).simpleString()
        mode = found.EvalMode.Name(found.eval_mode).removeprefix("EVAL_MODE_").lower()
        return rendering.cast_text(self.text(found.expr), kind, mode.replace("unspecified", ""))

    def extract(self, found: Any) -> str:
        return f"{self.text(found.child)}[{self.text(found.extraction)}]"

    def lambda_function(self, found: Any) -> str:
        names = [self.lambda_variable(each) for each in found.arguments]
        return rendering.lambda_text(names, self.text(found.function))

    def lambda_variable(self, found: Any) -> str:
        return ".".join(quoted(part) for part in found.name_parts)

    def literal(self, found: Any) -> str:
        kind = found.WhichOneof("literal_type")
        writer = _LITERALS.get(kind)
        if writer is None:
            raise no_text(f"a literal of type {kind}")
        return writer(getattr(found, kind))


_READERS: dict[str, Callable[[_Reader, Any], str]] = {
    "alias": _Reader.alias,
    "call_function": _Reader.called,
    "cast": _Reader.cast,
    "expression_string": _Reader.expression,
    "lambda_function": _Reader.lambda_function,
    "literal": _Reader.literal,
    "unresolved_attribute": _Reader.attribute,
    "unresolved_extract_value": _Reader.extract,
    "unresolved_function": _Reader.function,
    "unresolved_named_lambda_variable": _Reader.lambda_variable,
}
_SAID = {
    "common_inline_user_defined_function": "a function of Python's",
    "subquery_expression": "a subquery",
    "unresolved_star": "a star",
    "update_fields": "a field replaced (withField, dropFields)",
    "window": "a window",
}


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _floating(kind: str) -> Callable[[float], str]:
    return lambda value: f"CAST('{value!r}' AS {kind})"


def _cast_to(kind: str) -> Callable[[int], str]:
    return lambda value: f"CAST({value} AS {kind})"


def _date(days: int) -> str:
    return f"DATE '{_EPOCH + datetime.timedelta(days=days)}'"


def _local_time(micros: int) -> str:
    seconds, rest = divmod(micros, _MICROS)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds, microseconds=rest)
    return f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'"


def _array(value: Any) -> str:
    reader = _Reader(SourceNames())
    return f"array({', '.join(reader.literal(each) for each in value.elements)})"


_LITERALS: dict[str, Callable[[Any], str]] = {
    "null": lambda _: "NULL",
    "binary": lambda value: f"X'{value.hex()}'",
    "boolean": lambda value: str(value).lower(),
    "byte": _cast_to("TINYINT"),
    "short": _cast_to("SMALLINT"),
    "integer": str,
    "long": lambda value: f"CAST({value} AS BIGINT)",
    "float": _floating("FLOAT"),
    "double": _floating("DOUBLE"),
    "decimal": lambda value: f"CAST('{value.value}' AS DECIMAL({value.precision}, {value.scale}))",
    "string": _string,
    "date": _date,
    "timestamp": lambda micros: f"timestamp_micros({micros})",
    "timestamp_ntz": _local_time,
    "array": _array,
}
