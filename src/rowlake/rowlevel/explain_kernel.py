"""What the change kernel would do with one task's files; nothing is written.

Rows are matched as the change kernel matches them, so that counts and ways are its own. New rows
are neither read nor made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.schema import Schema
from rowlake.model.task import ScanTask
from rowlake.rowlevel.kernel import insertions, matches_of, outcome_batches, outcome_of
from rowlake.rowlevel.matches import POSITION, changes_of
from rowlake.rowlevel.source import SourceRows
from rowlake.rowlevel.strategy import Way
from rowlake.scan.deletes import load_deletes
from rowlake.scan.kernel import live_rows, scan_kernel
from rowlake.scan.open import keeping_open
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.task import FileTask
    from rowlake.rowlevel.matches import Changes
    from rowlake.rowlevel.task import ChangeTask


def explain_kernel(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the outcomes of a task, without files."""
    storage = Storage(task.context.io_properties)
    source = SourceRows(task, storage)
    found: list[dict[str, Any]] = []
    for file, parts in zip(task.files, task.parts, strict=True):
        with keeping_open():  # its keys are read first, then its rows are counted
            changes = changes_of(task, file, parts, source)
            outcome = _outcome(task, file, changes, storage) if len(changes) else None
        if outcome is not None:
            found.append(outcome)
        elif changes.unchanged:
            found.append({"source": None, "unchanged": changes.unchanged})
    for number in sorted(task.owned):
        inserted = sum(len(rows) for _, rows in insertions(task, source.part(number)))
        found.append({"part": number, "inserted": inserted})
    yield from outcome_batches([*found, *matches_of(task, source)], WRITTEN_FILES.empty_table())


def _outcome(
    task: ChangeTask, file: FileTask, changes: Changes, storage: Storage
) -> dict[str, Any]:
    deletes = load_deletes(task.context, file, storage)
    live = live_rows(task.context, file, deletes, storage)
    outcome = outcome_of(task, file, changes, live)
    if outcome["way"] == Way.REWRITE.value:
        outcome["copied"] = _visible(task, file, live) - len(changes)
    return outcome


def _visible(task: ChangeTask, file: FileTask, live: int) -> int:
    """Return how many rows of a file are read: equality deletes say so only when they are."""
    if all(old.content is not Content.EQUALITY_DELETES for old in file.deletes):
        return live
    position = Schema(pa.schema([POSITION]))
    context = replace(task.context, projection=position, predicate=None, exact=False)
    whole = replace(file, only=None)
    return sum(batch.num_rows for batch in scan_kernel(ScanTask(context, (whole,))))
