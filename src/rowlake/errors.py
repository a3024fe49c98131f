"""The whole error tree.

    RowlakeError
    ├── InvalidStatementError     fix the statement or the call (position where known)
    │   └── SchemaMismatchError   fix the data or the schema
    ├── TableNotFoundError        fix the name
    ├── UnsupportedFeatureError   the table or the statement needs what rowlake does not do
    ├── CardinalityError          make the source's keys unique
    ├── CommitConflictError       run the operation again
    ├── CommitStateUnknownError   look first; nothing was cleaned up
    ├── CorruptTableError         a file of the table is missing, damaged or unreadable
    ├── StorageError              storage or catalog could not be reached, or refused
    │   └── MissingFileError      no file where one was asked for
    ├── EngineError               Spark or Java is missing, does not start or lost the work
    └── InternalError             our bug

Each carries its facts as fields and renders its text from them: what could not be done, to
which table; the cause with values; the state of the table; the next step. No text or field shows
the password or the signature of an address, nor a secret literal of a statement.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from rowlake.secrets import statement_without_secrets, without_passwords

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OWN = str(Path(__file__).parent)
SHOWN = 3
SHOWN_LENGTH = 4_000  # characters of a message
SHOWN_WIDTH = 160  # characters of a statement's line


def shown(items: Iterable[object]) -> str:
    """Return the first few items as text, with the count of the rest."""
    all_items = [str(item) for item in items]
    rest = len(all_items) - SHOWN
    head = ", ".join(all_items[:SHOWN])
    return f"{head} and {rest} more" if rest > 0 else head


class RowlakeError(Exception):
    """The root of all errors that rowlake raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(without_passwords(_shortened(message)))

    def __reduce__(self) -> tuple[object, ...]:
        # Pools of processes pickle errors; the text is rendered already, so no constructor runs.
        return _copied, (type(self), self.args, self.__dict__)

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show: the line that called rowlake, and the message.

        IPython asks errors for this; elsewhere tracebacks are complete.
        """
        return [*_calling_line(self), f"{type(self).__name__}: {self}"]


def _calling_line(error: BaseException) -> list[str]:
    """Return the user's line that ended in an error of rowlake's, and where it is."""
    caller = None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(_OWN):
            break
        caller = frame
    if caller is None:
        return []
    return [f"{caller.filename}, line {caller.lineno}:", f"    {caller.line}", ""]


def _copied(
    kind: type[RowlakeError], args: tuple[object, ...], facts: dict[str, object]
) -> RowlakeError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class InvalidStatementError(RowlakeError):
    """A statement or an argument is wrong; `position` is the offset in the statement."""

    def __init__(
        self, message: str, *, statement: str | None = None, position: int | None = None
    ) -> None:
        shown = None if statement is None else statement_without_secrets(statement)
        self.statement, self.position = shown, position
        super().__init__(_with_position(_shortened(message), shown, position))


def _with_position(message: str, statement: str | None, position: int | None) -> str:
    if statement is None or position is None:
        return message
    before = statement[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1)
    start = position - column
    end = statement.find("\n", position)
    text, offset = _clipped(statement[start : end if end >= 0 else None], column)
    return f"{message} (line {line}, column {column + 1})\n  {text}\n  {' ' * offset}^"


def _shortened(message: str) -> str:
    """Return a message without the middle of what it quotes at absurd length."""
    if len(message) <= SHOWN_LENGTH:
        return message
    return f"{message[: SHOWN_LENGTH // 2]} … {message[-SHOWN_LENGTH // 2 :]}"


def _clipped(line: str, column: int) -> tuple[str, int]:
    """Return what is near a column of a line, and where the column is in it."""
    first = max(0, column - SHOWN_WIDTH // 2) if len(line) > SHOWN_WIDTH else 0
    text = line[first : first + SHOWN_WIDTH]
    before, after = "… " * (first > 0), " …" * (first + SHOWN_WIDTH < len(line))
    return f"{before}{text}{after}".rstrip("\r"), column - first + len(before)


class SchemaMismatchError(InvalidStatementError):
    """Data and schema do not fit; `column` names the place, `row` its number where it is known."""

    def __init__(self, message: str, *, column: str | None = None, row: int | None = None) -> None:
        self.column, self.row = column, row
        super().__init__(message)


class TableNotFoundError(RowlakeError):
    """No such table (or namespace); `similar` has near names, `hint` says what there is."""

    def __init__(
        self, name: str, *, kind: str = "table", similar: Sequence[str] = (), hint: str = ""
    ) -> None:
        self.name, self.similar = name, tuple(similar)
        near = f" Did you mean {shown(similar)}?" if similar else ""
        super().__init__(f"There is no {kind} {name}.{near}{' ' * bool(hint)}{hint}")


class UnsupportedFeatureError(RowlakeError):
    """The table or the statement needs something that rowlake does not do."""


class CardinalityError(RowlakeError):
    """Several source rows change one target row; `keys` are samples."""

    def __init__(self, message: str, *, keys: Sequence[object] = ()) -> None:
        self.keys = tuple(keys)
        super().__init__(message)


class CommitConflictError(RowlakeError):
    """A concurrent commit makes this one invalid; the table is as the other left it.

    `retryable`: planned again on what the other left, the operation may land at once. False where
    the commit was tried for as long as the table's properties say (`gave_up`), or what it was for
    is gone. `same_rows`: what stood in the way changed no rows (a compaction, an upgrade of the
    format). The next step in the text follows from these.
    """

    def __init__(
        self,
        operation: str,
        table: str,
        cause: str,
        *,
        snapshot_id: int | None = None,
        files: Sequence[str] = (),
        retryable: bool = False,
        same_rows: bool = False,
        gave_up: bool = False,
    ) -> None:
        self.operation, self.table, self.cause = operation, table, without_passwords(cause)
        self.snapshot_id, self.files = snapshot_id, tuple(files)
        self.retryable, self.same_rows, self.gave_up = retryable, same_rows, gave_up
        named = f": {shown(files)}" if files else ""
        super().__init__(
            f"Cannot commit {operation} to {table}: {cause}{named}. "
            f"Table unchanged by this operation; {self.next_step}."
        )

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.retryable or self.same_rows:
            return "run it again"
        if self.gave_up:
            return (
                "run it again when fewer others write, or raise commit.retry.num-retries and "
                "commit.retry.total-timeout-ms"
            )
        return "look at what the other left before you run it again"


class CommitStateUnknownError(RowlakeError):
    """The catalog did not say whether the commit landed; nothing was cleaned up."""

    def __init__(self, table: str, snapshot_id: int | None, cause: str) -> None:
        self.table, self.snapshot_id, self.cause = table, snapshot_id, without_passwords(cause)
        made = "" if snapshot_id is None else f" for snapshot {snapshot_id}"
        look = "describe" if snapshot_id is None else "snapshots"
        super().__init__(
            f"Commit to {table} has an unknown outcome: {cause}{made}. "
            f"No file was removed. Check with: rowlake {look} {table}."
        )


class CorruptTableError(RowlakeError):
    """A file of the table is missing, damaged or unreadable; `location` says which.

    `is_missing`: there is no such file. That is damage only where the table still needs it:
    the snapshot that was read may have been expired in the meantime.
    """

    def __init__(
        self, location: str, cause: str, *, advice: str | None = None, is_missing: bool = False
    ) -> None:
        self.location, self.cause = without_passwords(location), without_passwords(cause)
        self.is_missing = is_missing
        step = advice or "Restore the file from a backup, or roll back to a snapshot without it."
        super().__init__(f"Cannot read {location}: {cause}. {step}")


_EXPIRED_OR_LOST = (
    "If snapshots of the table were expired while this ran, run it again; otherwise restore the "
    "file from a backup, or roll back to a snapshot without it."
)


def missing_file(location: str) -> CorruptTableError:
    """Return the error of a table's file that is not there, seen by who knows no newer metadata."""
    return CorruptTableError(
        location, "there is no such file", advice=_EXPIRED_OR_LOST, is_missing=True
    )


class StorageError(RowlakeError):
    """Storage or catalog could not be reached or refused; `location` says where."""

    def __init__(self, location: str, cause: str, *, advice: str | None = None) -> None:
        self.location, self.cause = without_passwords(location), without_passwords(cause)
        step = advice or "Check the path, the permissions and the connection."
        super().__init__(f"Cannot reach {location}: {cause}. {step}")


class MissingFileError(StorageError):
    """There is no file at `location`; whoever knows the table says what that means for it."""


class EngineError(RowlakeError):
    """Spark or Java is missing, does not start, or could not finish the work."""


class InternalError(RowlakeError):
    """A promise inside rowlake did not hold: please report it with this text."""

    def _render_traceback_(self) -> list[str]:
        """Return all of the traceback: it belongs in the report."""
        return traceback.format_exception(self)
