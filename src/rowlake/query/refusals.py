"""What Spark refuses as it analyses a statement, as rowlake's errors.

Spark's own errors are kept as the cause. Its positions are offsets in the text that it was given,
which rowlake makes of parts of the user's statement: positions are those in the statement, and
there is none where the part cannot be found in it for sure.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rowlake.conditions.column_lookup import no_such_column
from rowlake.engine.failures import is_spark_error, translated
from rowlake.engine.parser import parse_error
from rowlake.engine.quiet import quiet_refusals
from rowlake.errors import EngineError, InvalidStatementError, RowlakeError, TableNotFoundError
from rowlake.model.reserved_columns import RESERVED_COLUMNS
from rowlake.secrets import cause_without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.workspace import Workspace

_ANALYSIS = ("AnalysisException", "ParseException", "TempTableAlreadyExistsException")
_OF_ROWS = (
    "ArithmeticException",
    "ArrayIndexOutOfBoundsException",
    "DateTimeException",
    "IllegalArgumentException",
    "NumberFormatException",
    "SparkNoSuchElementException",
    "SparkRuntimeException",
)
_PLACE = re.compile(r"\(?line (\d+), pos (\d+)\)?|line (\d+) pos (\d+)")
_TABLE = re.compile(r"table or view (\S+) cannot be found", re.IGNORECASE)
_COLUMN = re.compile(r"\[UNRESOLVED_COLUMN\.\w+\].*? with name (`.+?`) cannot be resolved", re.S)
_TOO_COMPLEX = re.compile(
    r"\A\s*\[FAILED_TO_PARSE_TOO_COMPLEX\]|"
    r"\A(An error occurred while calling [\w.]+\n: |\()?java\.lang\.StackOverflowError"
)
_NEAR = re.compile(r" Did you mean one of the following\? \[(.*?)\]\.")
_HEAD = 300
_SAID = 8_000
_CLASS = re.compile(r"\[([A-Z_]+)[.\]]")
_CALLED = re.compile(r"\AAn error occurred while calling [\w.]+\.\s*: ")
# The statement that is being run, as its user wrote it.
_running: ContextVar[str | None] = ContextVar("rowlake_statement", default=None)
_is_statement: ContextVar[bool] = ContextVar("rowlake_is_statement", default=False)


@contextmanager
def told_plainly(
    workspace: Workspace | None, text: str, *, moved: bool, columns: Sequence[str] = ()
) -> Iterator[None]:
    """Turn Spark's refusals into rowlake's errors; `moved`: Spark's text is not the user's.

    Errors show the statement that is being run, where there is one, else the text. With `columns`
    an unknown column is told with the nearest of them: Spark may have been given others than the
    user knows.
    """
    running = _running.get()
    written = text if running is None else running
    moved = moved or written != text
    try:
        with quiet_refusals():
            yield
    except RowlakeError:
        raise
    except Exception as error:
        if is_too_complex(error):
            raise _too_complex(written) from error
        if not is_refusal(error):
            raise
        unknown = _COLUMN.search(_beginning(error)) if columns else None
        if unknown is not None:
            place = _place_of_fragment(written, error)
            said = no_such_column(_parts(unknown[1]), columns, written, place)
            raise said from cause_without_secrets(error)
        raise _plain(workspace, written, error, moved=moved) from cause_without_secrets(error)


def is_refusal(error: Exception) -> bool:
    """Return whether Spark refused a statement or a name as it analysed it."""
    return type(error).__name__ in _ANALYSIS


def _beginning(error: Exception) -> str:
    """Return what an error says first; further on it quotes the statement, however long."""
    return str(error)[:_SAID]


@contextmanager
def refusing_too_complex(text: str | None = None) -> Iterator[None]:
    """Turn what Spark raises for a statement that is too complex for it into rowlake's error."""
    try:
        yield
    except RowlakeError:
        raise
    except Exception as error:
        if is_too_complex(error):
            raise _too_complex(text) from error
        raise


def is_too_complex(error: Exception) -> bool:
    """Return whether a statement was nested too deep for Spark's stack, or for Python's.

    Only the beginning of the text is looked at: further on it may quote values.
    """
    if isinstance(error, RecursionError):
        return True
    head = str(error)[:_HEAD]
    return bool(_TOO_COMPLEX.search(head))


def _too_complex(text: str | None) -> InvalidStatementError:
    return InvalidStatementError(
        "The statement is nested too deep for Spark: use fewer brackets, subqueries and operators "
        "in one another, or give Java more stack (-Xss in spark.driver.extraJavaOptions).",
        statement=text,
    )


def is_unknown_column(error: Exception) -> bool:
    """Return whether Spark refused a name of a column."""
    return is_refusal(error) and _COLUMN.search(_beginning(error)) is not None


def _parts(quoted: str) -> list[str]:
    return [part.replace("``", "`") for part in quoted[1:-1].split("`.`")]


def _plain(
    workspace: Workspace | None, text: str, error: Exception, *, moved: bool
) -> RowlakeError:
    message = _beginning(error)
    if moved and workspace and _is_statement.get() and type(error).__name__ == "ParseException":
        own = parse_error(workspace.spark, text)
        moved, message = own is None, own or message
    missing = _TABLE.search(message)
    kind = _CLASS.search(message)
    if missing and kind and kind[1] == "TABLE_OR_VIEW_NOT_FOUND":
        name = missing[1].replace("`.`", ".").strip("`")
        known = {found.lower(): found for found in (workspace.table_names() if workspace else [])}
        near = get_close_matches(name.lower(), known, n=3)
        return TableNotFoundError(name, similar=[known[found] for found in near])
    first = _NEAR.sub(_known_columns, _first_sentence(message))
    position = _place_of_fragment(text, error) if moved else _offset(text, message)
    return InvalidStatementError(first, statement=text, position=position)


def _first_sentence(message: str) -> str:
    """Return what Spark says, without its state, the plan and the quoted statement."""
    return re.split(r"\s*SQLSTATE|\n", message.strip(), maxsplit=1)[0].strip()


def _place_of_fragment(text: str, error: Exception) -> int | None:
    """Return where the part of a statement is that Spark blames; None where that is not sure.

    Spark may have been given another text than the user wrote, with the same part in it.
    """
    context = getattr(error, "getQueryContext", None)
    found = context() if context is not None else []
    if not found or found[0].contextType().name != "SQL":
        return None
    fragment = str(found[0].fragment()).strip()
    if not fragment:
        return None
    places = list(re.finditer(rf"(?<!\w){re.escape(fragment)}(?!\w)", text))
    return places[0].start() if len(places) == 1 else None


@contextmanager
def run_plainly(
    workspace: Workspace | None, text: str, *, is_condition: bool = False
) -> Iterator[None]:
    """Turn what Spark raises as it runs a statement into rowlake's errors, and log none of it.

    `text` is the statement as its user wrote it, or its condition alone, which may be empty. What
    runs as part of a statement leaves its errors to the statement.
    """
    if _running.get() is not None:
        yield
        return
    token, kind = _running.set(text), _is_statement.set(not is_condition)
    try:
        with quiet_refusals():
            yield
    except RowlakeError:
        raise
    except Exception as error:
        found = plain_error(error, text, workspace)
        if found is None:
            raise
        raise found from cause_without_secrets(error)
    finally:
        _running.reset(token)
        _is_statement.reset(kind)


def plain_error(
    error: Exception, text: str | None = None, workspace: Workspace | None = None
) -> RowlakeError | None:
    """Return rowlake's error for one of Spark's; None where it is not Spark's.

    What rows of the user's make Spark refuse (a cast, a division by zero, an index) is an error of
    the statement; all else is one of the engine.
    """
    if is_too_complex(error):
        return _too_complex(text)
    if not is_spark_error(error):
        return None
    meant = translated(error, "running the statement")
    if isinstance(meant, RowlakeError):
        return meant
    if is_refusal(error):
        return _plain(workspace, text or "", error, moved=True)
    said = _CALLED.sub("", _beginning(error).strip())  # py4j's words before those of Java
    first = _first_sentence(said) or type(error).__name__
    if type(error).__name__ in _OF_ROWS:
        position = None if text is None else _place_of_fragment(text, error)
        return InvalidStatementError(first, statement=text, position=position)
    return EngineError(f"Spark failed while running the statement: {first}")


def _known_columns(near: re.Match[str]) -> str:
    """Return Spark's suggestion without metadata columns and names of rowlake's own."""
    names = [name for name in near[1].split(", ") if not _is_hidden(name)]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""


def _is_hidden(name: str) -> bool:
    last = name.rpartition(".")[2].strip("`")
    return last in RESERVED_COLUMNS or last.startswith("__")


def _offset(text: str, message: str) -> int | None:
    place = _PLACE.search(message)
    if place is None:
        return None
    line, column = int(place[1] or place[3]), int(place[2] or place[4])
    lines = text.splitlines(keepends=True)
    if not 1 <= line <= len(lines):
        return None
    return min(sum(map(len, lines[: line - 1])) + column, len(text))
