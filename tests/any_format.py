"""What tests say of a table in the same words, whatever its format is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from rowlake.delta.format import DELTA
from rowlake.delta.vectors import vector_columns
from rowlake.iceberg.format import ICEBERG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from rowlake.table import Table


@contextmanager
def changing(table: Table, what: str) -> Iterator[Any]:
    """Change the `schema` or the partition `spec` of a table in one commit, at the block's end.

    What the block calls of the builder (PyIceberg's names) is called of the format's own.
    """
    steps = _Steps()
    yield steps
    table.handle.format.evolve(table.handle, what, steps.replay)


@dataclass
class _Steps:
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))

    def replay(self, builder: Any) -> None:
        for name, args, kwargs in self.calls:
            getattr(builder, name)(*args, **kwargs)


def commit_count(table: Table) -> int:
    """Return how many commits a table has, without the one that created it."""
    return len(table.snapshots()) - (table.handle.format is DELTA)


def read_by_others(table: Table) -> list[pa.Table]:
    """Return the rows of a table as other libraries read it: PyIceberg, where it is Iceberg's."""
    return [table.to_pyiceberg().scan().to_arrow()] if table.handle.format is ICEBERG else []


def referenced_files(table: Table) -> set[str]:
    """Return the data and delete files that any version of a table refers to, and Delta's log."""
    handle: Any = table.handle
    if handle.format is not DELTA:
        return set(table.inspect("all_files")["file_path"].to_pylist())
    known = {one.location for one in handle.storage.list(handle.log.folder)}
    for version in handle.times.versions:
        files = handle.times.read(version).files
        known |= set(files["location"].to_pylist())
        marked = files.filter(pc.is_valid(files["storage_type"]))
        if marked.num_rows:
            known |= set(vector_columns(marked, table.location)["location"].to_pylist())
    return known


def next_row_id(table: Table) -> int:
    """Return the first row id that no row of a table has had yet."""
    handle: Any = table.handle
    state = handle.metadata if handle.format is ICEBERG else handle.table
    return int(state.next_row_id)
