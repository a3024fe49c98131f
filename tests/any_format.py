"""What tests say of a table in the same words, whatever its format is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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


def read_by_others(table: Table) -> list[pa.Table]:
    """Return the rows of a table as other libraries read it: PyIceberg, where it is Iceberg's."""
    return [table.to_pyiceberg().scan().to_arrow()] if table.handle.format is ICEBERG else []


def next_row_id(table: Table) -> int:
    """Return the first row id that no row of a table has had yet."""
    handle: Any = table.handle
    state = handle.metadata if handle.format is ICEBERG else handle.table
    return int(state.next_row_id)
