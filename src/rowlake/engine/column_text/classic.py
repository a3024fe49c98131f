"""Columns of classic sessions as SQL texts, by Spark's own tree of them (`ColumnNode`).

Literals are written by Catalyst. Imports pyspark, which is loaded by now: the column is of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from rowlake.engine.column_text import rendering
from rowlake.engine.column_text.names import SourceNames, no_text, quoted

if TYPE_CHECKING:
    from collections.abc import Callable


def names_of(frame: Any, fresh: str) -> SourceNames:
    """Return how the columns of a DataFrame are named: by its one alias, or a fresh one."""
    output = _items(frame._jdf.queryExecution().analyzed().output())
    owners = {tuple(map(str, _items(each.qualifier()))) for each in output}
    owner = owners.pop() if len(owners) == 1 else ()
    ids = frozenset(str(each.exprId().id()) for each in output)
    return SourceNames(owner[-1] if owner else fresh, ids)


def text_of(column: Any, source: SourceNames, *, internal: bool = False) -> str:
    """Return the text of a column; `internal` functions are partition transforms."""
    return _Reader(source, internal).text(column._jc.node())


class _Reader:
    def __init__(self, source: SourceNames, internal: bool) -> None:
        self._source, self._internal = source, internal

    def text(self, node: Any) -> str:
        kind = str(node.getClass().getSimpleName())
        reader = _READERS.get(kind)
        if reader is None:
            raise no_text(_SAID.get(kind, f"{kind} in it"))
        return reader(self, node)

    def texts(self, nodes: Any) -> list[str]:
        return [self.text(each) for each in _items(nodes)]

    def attribute(self, node: Any) -> str:
        return ".".join(quoted(str(part)) for part in _items(node.nameParts()))

    def literal(self, node: Any) -> str:
        jvm = SparkContext._active_spark_context._jvm
        column = jvm.org.apache.spark.sql.Column(node)
        return str(SparkSession.active()._jsparkSession.expression(column).sql())

    def function(self, node: Any) -> str:
        name = str(node.functionName())
        if node.isInternal() and not self._internal:
            raise no_text(f"{name}(…), a function inside Spark,")
        return rendering.function_text(
            name, self.texts(node.arguments()), distinct=bool(node.isDistinct())
        )

    def case(self, node: Any) -> str:
        parts = []
        for branch in _items(node.branches()):
            parts += [self.text(branch._1()), self.text(branch._2())]
        otherwise = node.otherwise()
        return rendering.case_text([*parts, *self._given(otherwise)])

    def _given(self, option: Any) -> list[str]:
        return [self.text(option.get())] if option.isDefined() else []

    def cast(self, node: Any) -> str:
        mode = node.evalMode()
        name = str(mode.get().getClass().getSimpleName()).rstrip("$") if mode.isDefined() else None
        return rendering.cast_text(self.text(node.child()), str(node.dataType().sql()), name)

    def alias(self, node: Any) -> str:
        return self.text(node.child())

    def extract(self, node: Any) -> str:
        return f"{self.text(node.child())}[{self.text(node.extraction())}]"

    def lambda_function(self, node: Any) -> str:
        return rendering.lambda_text(self.texts(node.arguments()), self.text(node.function()))

    def lambda_variable(self, node: Any) -> str:
        return quoted(str(node.name()))

    def expression(self, node: Any) -> str:
        return rendering.expression_text(str(node.expression()))

    def resolved(self, node: Any) -> str:
        return self._catalyst(node.expression())

    def _catalyst(self, found: Any) -> str:
        """Return the text of what Spark has resolved already: a column of a DataFrame, or in it."""
        kind = str(found.getClass().getSimpleName())
        if kind == "AttributeReference":
            return self._source.written(quoted(str(found.name())), str(found.exprId().id()))
        if kind == "Alias":
            return self._catalyst(found.child())
        if kind == "GetStructField":
            return f"{self._catalyst(found.child())}.{quoted(str(found.extractFieldName()))}"
        raise no_text(_SAID.get(kind, f"{kind} in it"))


def _items(seq: Any) -> list[Any]:
    return [seq.apply(index) for index in range(seq.size())]


_READERS: dict[str, Callable[[_Reader, Any], str]] = {
    "Alias": _Reader.alias,
    "CaseWhenOtherwise": _Reader.case,
    "Cast": _Reader.cast,
    "ExpressionColumnNode": _Reader.resolved,
    "LambdaFunction": _Reader.lambda_function,
    "Literal": _Reader.literal,
    "SqlExpression": _Reader.expression,
    "UnresolvedAttribute": _Reader.attribute,
    "UnresolvedExtractValue": _Reader.extract,
    "UnresolvedFunction": _Reader.function,
    "UnresolvedNamedLambdaVariable": _Reader.lambda_variable,
}
_SAID = {
    "InvokeInlineUserDefinedFunction": "a function of the user's",
    "PythonUDF": "a function of Python's",
    "PythonUDAF": "a function of Python's",
    "SubqueryExpression": "a subquery",
    "UnresolvedStar": "a star",
    "UpdateFields": "a field replaced (withField, dropFields)",
    "Window": "a window",
}
