"""The options of a streaming read: their names, and `Lake.read_stream`'s arguments as options."""

from __future__ import annotations

from typing import Any

from rowlake.errors import InvalidStatementError
from rowlake.times import to_ms

EARLIEST, LATEST = "earliest", "latest"
STARTING, START_TIME = "starting", "start-timestamp"
MOST_FILES, MOST_ROWS = "max-files-per-trigger", "max-rows-per-trigger"


def options_of(
    start: int | str | None, start_as_of: Any, max_files: int | None, max_rows: int | None
) -> dict[str, str]:
    """Return the options of a read."""
    if start is not None and start_as_of is not None:
        raise InvalidStatementError("Give one of start and start_as_of, not both.")
    given = {
        STARTING: start,
        START_TIME: None if start_as_of is None else to_ms(start_as_of),
        MOST_FILES: max_files,
        MOST_ROWS: max_rows,
    }
    return {name: str(value) for name, value in given.items() if value is not None}
