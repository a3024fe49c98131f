"""`df.mergeInto` into a table of a lake: PySpark's builder, whose MERGE rowlake runs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from rowlake.engine.attachments.drop_in import MergeAction, MergeRequest
from rowlake.engine.column_text import column_text, source_names
from rowlake.engine.jobs import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.attachments.drop_in import DropIn
    from rowlake.engine.column_text.names import SourceNames

_FRESH = "__source"


def merge_writer(lake: DropIn, frame: Any, table: str, condition: Any) -> Any:
    """Return the builder; nothing is read or written before its `merge`."""
    return _kind(remote=is_remote(frame.sparkSession))(lake, frame, table, condition)


@cache
def _kind(*, remote: bool) -> type:
    if remote:
        from pyspark.sql.connect.merge import MergeIntoWriter as ConnectWriter

        return type("LakeMergeIntoWriter", (LakeMerge, ConnectWriter), {})
    from pyspark.sql.merge import MergeIntoWriter

    return type("LakeMergeIntoWriter", (LakeMerge, MergeIntoWriter), {})


class LakeMerge:
    """A MERGE being put together."""

    def __init__(self, lake: DropIn, frame: Any, table: str, condition: Any) -> None:
        self._lake, self._frame, self._table = lake, frame, table
        self._names = source_names(frame, _FRESH)
        self._on = text_of(condition, self._names)
        self._actions: list[MergeAction] = []
        self._evolves = False

    def whenMatched(self, condition: Any = None) -> Any:
        return _When(self, "matched", condition)

    def whenNotMatched(self, condition: Any = None) -> Any:
        return _WhenNotMatched(self, "not matched", condition)

    def whenNotMatchedBySource(self, condition: Any = None) -> Any:
        return _When(self, "not matched by source", condition)

    def withSchemaEvolution(self) -> Any:
        self._evolves = True
        return self

    def merge(self) -> None:
        self._lake.merge(
            MergeRequest(
                self._frame,
                self._table,
                str(self._names.alias),
                self._on,
                tuple(self._actions),
                self._evolves,
            )
        )


def text_of(column: Any, names: SourceNames) -> str:
    """Return a condition or a value as text; a name alone is a column."""
    return column_text(functions.col(column) if isinstance(column, str) else column, names)


class _Clause:
    def __init__(self, writer: LakeMerge, when: str, condition: Any) -> None:
        self._writer, self._when = writer, when
        names = writer._names
        self._condition = None if condition is None else text_of(condition, names)

    def _add(self, action: str, assignments: Mapping[str, Any] | None) -> Any:
        names = self._writer._names
        written = assignments
        if assignments is not None:
            written = {key: text_of(each, names) for key, each in assignments.items()}
        self._writer._actions.append(MergeAction(self._when, action, self._condition, written))
        return self._writer


class _When(_Clause):
    """What happens to rows of the target."""

    def updateAll(self) -> Any:
        return self._add("update", None)

    def update(self, assignments: Mapping[str, Any]) -> Any:
        return self._add("update", assignments)

    def delete(self) -> Any:
        return self._add("delete", {})


class _WhenNotMatched(_Clause):
    """What happens to rows of the source that match none."""

    def insertAll(self) -> Any:
        return self._add("insert", None)

    def insert(self, assignments: Mapping[str, Any]) -> Any:
        return self._add("insert", assignments)
