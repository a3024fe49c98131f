"""PySpark's entry points, wrapped while a session has a lake attached. Imports pyspark.

A wrapper of a session without a lake, or called by rowlake's own modules, is PySpark's own code.
Everything is put back when the last lake is detached.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from rowlake.engine.attachments import merging, readers, streams, writers
from rowlake.engine.attachments.registry import is_own_call, lake_of, plain_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.attachments.drop_in import DropIn

    # The lake, the object, and PySpark's method with the object bound, to what the method returns.
    Handler = Callable[..., Any]

_originals: list[tuple[type, str, Any]] = []
_installed: set[bool] = set()


def install(*, remote: bool) -> None:
    """Wrap the entry points of classic or of Connect sessions, once."""
    if remote in _installed:
        return
    session, frame = _classes(remote=remote)
    for name, handler in _SESSION_METHODS.items():
        _wrap(session, name, handler, _itself)
    for name, handler in _SESSION_PROPERTIES.items():
        _wrap_property(session, name, handler, _itself)
    for name, handler in _FRAME_METHODS.items():
        _wrap(frame, name, handler, _session_of)
    for name, handler in _FRAME_PROPERTIES.items():
        _wrap_property(frame, name, handler, _session_of)
    _installed.add(remote)


def uninstall() -> None:
    """Put PySpark's own entry points back."""
    while _originals:
        kind, name, original = _originals.pop()
        setattr(kind, name, original)
    _installed.clear()


def _classes(*, remote: bool) -> tuple[type, type]:
    if remote:
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        return ConnectSession, ConnectFrame
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.session import SparkSession

    return SparkSession, DataFrame


def _itself(session: Any) -> Any:
    return session


def _session_of(frame: Any) -> Any:
    return frame.sparkSession


def _wrap(kind: type, name: str, handler: Handler, session_of: Callable[[Any], Any]) -> None:
    original = kind.__dict__[name]

    @wraps(original)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        lake = None if is_own_call() else lake_of(session_of(self))

        def plainly(*arguments: Any, **options: Any) -> Any:
            with plain_spark():
                return original(self, *arguments, **options)

        if lake is None:
            return plainly(*arguments, **options)
        return handler(lake, self, plainly, *arguments, **options)

    _originals.append((kind, name, original))
    setattr(kind, name, method)


def _wrap_property(
    kind: type, name: str, handler: Handler, session_of: Callable[[Any], Any]
) -> None:
    original = kind.__dict__[name]

    def found(self: Any) -> Any:
        lake = None if is_own_call() else lake_of(session_of(self))
        plain = original.__get__(self, type(self))
        return plain if lake is None else handler(lake, self, plain)

    _originals.append((kind, name, original))
    setattr(kind, name, property(found, doc=original.__doc__))


# --- what the entry points do in a session with a lake


def _sql(
    lake: DropIn, session: Any, plainly: Handler, sqlQuery: str, args: Any = None, **given: Any
) -> Any:
    if not isinstance(sqlQuery, str) or (args is not None and not isinstance(args, (dict, list))):
        return plainly(sqlQuery, args, **given)  # which raises
    text, frames = readers.formatted(session, sqlQuery, given)
    return lake.sql(text, args, frames)


def _table(lake: DropIn, _session: Any, plainly: Handler, tableName: str) -> Any:
    found = lake.table(tableName, {}) if isinstance(tableName, str) else None
    return plainly(tableName) if found is None else found


def _merge_into(lake: DropIn, frame: Any, plainly: Handler, table: str, condition: Any) -> Any:
    if not isinstance(table, str) or not lake.has_table(table):
        return plainly(table, condition)
    return merging.merge_writer(lake, frame, table, condition)


def _write_to(lake: DropIn, frame: Any, plainly: Handler, table: str) -> Any:
    return writers.table_writer(lake, frame, table, plainly(table))


_SESSION_METHODS: dict[str, Handler] = {"sql": _sql, "table": _table}
_SESSION_PROPERTIES: dict[str, Handler] = {
    "catalog": readers.session_catalog,
    "read": readers.frame_reader,
    "readStream": streams.stream_reader,
}
_FRAME_METHODS: dict[str, Handler] = {"mergeInto": _merge_into, "writeTo": _write_to}
_FRAME_PROPERTIES: dict[str, Handler] = {
    "write": writers.frame_writer,
    "writeStream": streams.stream_writer,
}
