"""A writer that kills itself (-9) before or after its n-th step that changes anything outside.

Another writer's delete of a row lands while it commits, so that it loses a race too.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake import connect
from rowlake.catalog.filesystem_backend import FileSystemBackend
from rowlake.catalog.sql import SqlBackend
from rowlake.commit.phases import Phase
from rowlake.delta.handle import DeltaHandle
from rowlake.storage.files import Storage
from tests.any_format import referenced_files
from tests.lakes import files_in
from tests.parts.preloaded import forking
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rowlake.table import Table

DELTA = "delta"

# A step is a call that changes storage or the catalog; the process dies before or after one.
STEPS = (
    *((Storage, method) for method in ("open_output", "write", "create", "delete")),
    (SqlBackend, "commit"),
    (FileSystemBackend, "commit"),
)


@dataclass(frozen=True)
class Death:
    """The step before or after which a writer dies; none has the number 0."""

    at: int
    side: str = "before"


@dataclass(frozen=True)
class Work:
    """What a writer does to a table: `operation` is an expression of `table`.

    `overtaken` is the id of the row that another writer deletes meanwhile.
    """

    catalog: str | None
    name: str | tuple[str, ...]
    operation: str
    overtaken: int = 5


def table_of(kind: str) -> dict[str, Any]:
    """Return how a table is created: of a format version of Iceberg, or Delta's.

    Every commit to a Delta table writes a checkpoint: its steps are steps to die at.
    """
    waits = {"commit.retry.min-wait-ms": "1"}
    if kind != DELTA:
        return {"properties": {**waits, "format-version": kind}}
    given = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1"}
    return {"properties": {**waits, **given}, "format": DELTA}


def check_log(table: Table) -> None:
    """Check that a Delta log has no holes, and that VACUUM removes what the dead left behind."""
    if not isinstance(table.handle, DeltaHandle):
        return
    versions = [one.snapshot_id for one in table.snapshots()]
    assert versions == list(range(len(versions)))
    rows = table.arrow().sort_by("id")
    table.vacuum(retain_hours=0, enforce_retention_duration=False, dry_run=False)
    left = {one for one in files_in(table.location) if "/." not in one}
    assert left <= referenced_files(table), left - referenced_files(table)
    assert table.arrow().sort_by("id").equals(rows)


class Steps:
    """Steps that are counted while armed, with a death at one of them."""

    def __init__(self, death: Death) -> None:
        self.death = death
        self.count = 0
        self.armed = False

    def watch(self, owner: type, method: str) -> None:
        whole = getattr(owner, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.armed:
                return whole(*args, **kwargs)
            self.count += 1
            mine = self.count
            self._die(mine, "before")
            try:
                return whole(*args, **kwargs)
            finally:
                self._die(mine, "after")

        setattr(owner, method, call)

    def _die(self, step: int, side: str) -> None:
        if (step, side) == (self.death.at, self.death.side):
            os.kill(os.getpid(), signal.SIGKILL)


def run_writer(work: Work, warehouse: str, death: Death) -> tuple[int | None, int]:
    """Return how many steps a writer took, if it lived to tell, and its exit code."""
    context = forking()
    ours, theirs = context.Pipe(duplex=False)
    with ours:
        writer = context.Process(target=_write, args=(work, warehouse, death, theirs))
        writer.start()
        theirs.close()
        try:
            told = ours.recv()
        except EOFError:
            told = None
        writer.join()
    assert writer.exitcode is not None
    return told, writer.exitcode


def _write(work: Work, warehouse: str, death: Death, answer: Connection) -> None:
    steps = Steps(death)
    for owner, method in STEPS:
        steps.watch(owner, method)

    def overtake() -> None:
        steps.armed = False
        with connect(warehouse, work.catalog) as lake:
            lake.table(work.name).delete(f"id = {work.overtaken}", mode="merge-on-read")
        steps.armed = True

    with connect(warehouse, work.catalog) as lake, stopped_at(Phase.PRODUCED, overtake):
        steps.armed = True
        eval(work.operation, {"table": lake.table(work.name)})
        answer.send(steps.count)
