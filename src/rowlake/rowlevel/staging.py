"""Staging in the driver: source rows of Spark or of Arrow to `Staged`, and away again.

Staged files lie on a local disk where all tasks run on this machine, else beside the table's data.
They live as long as the operation; a driver that dies leaves them to orphan removal.
"""

from __future__ import annotations

import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import RowlakeError
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.rowlevel.one_per_key import (
    are_small,
    slices_for,
    stage_units,
    unit_tasks,
    units_of,
)
from rowlake.rowlevel.operation import Staged
from rowlake.rowlevel.staged import (
    STAGED,
    Dealing,
    StageContext,
    stage_batches,
    stage_plain,
    stage_scan,
)
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rowlake.engine.spark import Engine, Kernel
    from rowlake.model.task import ScanTask
    from rowlake.model.view import TableView
    from rowlake.rowlevel.unique import Keys
    from rowlake.scan.plain import PlainTask

# Bytes of rows in memory for each byte of a Parquet file, about.
_UNPACKED = 4


@dataclass(frozen=True)
class Shape:
    """What staged rows look like: fields in the types that tasks want, keys, how they are dealt."""

    fields: Sequence[pa.Field]
    keys: tuple[str, ...] = ()
    dealing: Dealing = field(default_factory=Dealing)
    unique: Keys | None = None

    @property
    def schema(self) -> Schema:
        """The staged columns; whether a null may stand in one is seen when it is written."""
        named = [one.with_nullable(True) for one in self.fields]
        return Schema(pa.schema([_identified(one, at) for at, one in enumerate(named, start=1)]))


def _identified(found: pa.Field, number: int) -> pa.Field:
    metadata = found.metadata or {}
    return found if FIELD_ID in metadata else found.with_metadata({FIELD_ID: str(number).encode()})


@dataclass(frozen=True)
class ScanRows:
    """Rows of a table that tasks stage as they read them: (staged column, column) pairs."""

    tasks: tuple[ScanTask, ...]
    size_in_bytes: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PlainRows:
    """Rows of plain files that tasks stage as they read them, with the staged columns."""

    tasks: tuple[PlainTask, ...]
    size_in_bytes: int


class Staging:
    """Where the rows of one operation are staged."""

    def __init__(self, engine: Engine, view: TableView, folder: str) -> None:
        self._engine, self._view, self.folder = engine, view, folder

    def stage(self, rows: Any, shape: Shape, *, progress: Any = None) -> Staged:
        """Stage a Spark DataFrame, rows of a table or of files, or batches in the driver, once."""
        schema = shape.schema
        context = StageContext(
            schema,
            shape.keys,
            shape.dealing,
            self.folder,
            dict(self._view.io_properties),
            None if shape.unique is None else replace(shape.unique, schema=schema),
        )
        kernel = partial(stage_batches, context)
        run = partial(self._run, progress=progress)
        if isinstance(rows, ScanRows):
            found = run(partial(stage_scan, context, rows.columns), rows.tasks, rows.size_in_bytes)
        elif isinstance(rows, PlainRows) and context.unique is not None:
            found = _one_per_key(context, rows, run, self._engine.parallelism)
        elif isinstance(rows, PlainRows):
            found = run(partial(stage_plain, context), rows.tasks, rows.size_in_bytes)
        elif hasattr(rows, "mapInArrow"):
            found = self._engine.consume(rows, kernel, STAGED, label=self._label, progress=progress)
        else:
            found = _local(kernel(rows))
        return replace(Staged(schema.arrow, shape.keys, shape.dealing), rows=found)

    @property
    def _label(self) -> str:
        return f"staging for {self._view.name}"

    def _run(
        self, kernel: Kernel, tasks: Sequence[Any], size_in_bytes: int, *, progress: Any
    ) -> pa.Table:
        return self._engine.run(
            kernel,
            tasks,
            STAGED,
            size_in_bytes=size_in_bytes,
            label=self._label,
            progress=progress,
        )


def _one_per_key(
    context: StageContext, rows: PlainRows, run: Callable[..., pa.Table], slots: int
) -> pa.Table:
    """Stage rows as they come, then sorted by key; a badly distributed source, again."""
    loose = replace(context, unique=None)
    slices = 1 if context.dealing.spec else slices_for(_UNPACKED * rows.size_in_bytes)
    staged = run(
        partial(stage_plain, replace(loose, slices=slices)), rows.tasks, rows.size_in_bytes
    )
    units = units_of(staged)
    if not are_small(units):
        slices *= slices_for(max(unit.size_in_bytes for unit in units))
        again = partial(stage_plain, replace(loose, slices=slices))
        units = units_of(run(again, rows.tasks, rows.size_in_bytes))
    size_in_bytes = sum(unit.size_in_bytes for unit in units)
    return run(partial(stage_units, context), unit_tasks(units, slots), size_in_bytes)


def _local(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(list(batches), STAGED)


@contextmanager
def staging(engine: Engine, view: TableView) -> Iterator[Staging]:
    """Give a place to stage rows; what was staged is removed at the end, whatever comes."""
    if engine.is_one_machine:
        with tempfile.TemporaryDirectory(prefix="rowlake-staging-") as folder:
            yield Staging(engine, view, Path(folder).as_uri())
        return
    folder = f"{view.data_folder}/staging-{uuid.uuid4()}"
    try:
        yield Staging(engine, view, folder)
    finally:
        # What cannot be removed is an orphan; it must not hide how the operation ended.
        with suppress(RowlakeError):
            storage = Storage(view.io_properties)
            storage.delete([each.location for each in storage.list(folder)])
