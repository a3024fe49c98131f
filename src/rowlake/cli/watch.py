"""`rowlake optimize --watch`: runs until Ctrl-C, one line per round.

Failures that may pass (a conflict, an unknown outcome, storage or catalog out of reach) do not end
it: the pause doubles after each one, until a round succeeds.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from rowlake.cli.json_rows import plain
from rowlake.cli.output import Output
from rowlake.errors import CommitConflictError, CommitStateUnknownError, EngineError, StorageError
from rowlake.model.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable

TRANSIENT = (CommitConflictError, CommitStateUnknownError, StorageError, EngineError)
LONGEST_PAUSE = 600.0


def keep_watch(
    run: Callable[[], Any],
    interval: float,
    output: Output,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Run rounds until Ctrl-C, which ends it cleanly: commits stay."""
    failures = 0
    try:
        while True:
            try:
                report = run()
            except TRANSIENT as error:
                failures += 1
                _say(f"failed, will try again: {error}", None, output)
            else:
                failures = 0
                _say(report.summary(), report, output)
            sleep(pause(interval, failures))
    except KeyboardInterrupt:
        print("rowlake: stopped watching; commits are kept", file=sys.stderr)


def pause(interval: float, failures: int) -> float:
    """Return how long to wait: twice as long after each failure, up to ten minutes."""
    if not failures:
        return interval
    return max(interval, min(interval * 2.0 ** min(failures, 32), LONGEST_PAUSE))


def _say(text: str, report: Any, output: Output) -> None:
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    if output is Output.JSON:
        told = {"at": now, "said": text, "report": None if report is None else report.to_dict()}
        line = printable_json(json.dumps(told, default=plain, ensure_ascii=False))
    else:
        line = f"{now}  {printable_lines(text)}"
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
