"""Storage that fails at the n-th call, and tables looked at from outside after it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake import connect
from rowlake.errors import StorageError
from rowlake.iceberg.cache import default_cache
from rowlake.iceberg.format import ICEBERG
from rowlake.storage.files import Storage
from tests.any_format import referenced_files
from tests.lakes import make_lake, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rowlake.lake import Lake
    from rowlake.table import Table

READS = ("open_input", "exists", "_find")
WRITES = ("open_output", "write", "create")
CATALOGS = (None, "filesystem")


class PulledPlugError(StorageError):
    """What a call that was chosen to fail raises."""


@dataclass
class Faults:
    """Counts storage calls; the one of number `at` fails, before or after its effect."""

    at: int
    after: bool = False
    error: Callable[[str], BaseException] = lambda location: PulledPlugError(location, "unplugged")
    calls: list[str] = field(default_factory=list)

    @property
    def has_struck(self) -> bool:
        return len(self.calls) >= self.at

    def wrap(self, name: str) -> Callable[..., Any]:
        method = getattr(Storage, name)

        def call(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(f"{name} {location}")
            strikes = len(self.calls) == self.at
            if strikes and not self.after:
                raise self.error(location)
            answer = method(storage, location, *args, **kwargs)
            if strikes:
                if hasattr(answer, "close"):
                    answer.close()
                raise self.error(location)
            return answer

        return call


@contextmanager
def failing(monkeypatch: Any, faults: Faults, names: tuple[str, ...] = READS + WRITES) -> Iterator:
    """Let storage fail inside the block, with no manifest remembered from before it."""
    default_cache().clear()
    with monkeypatch.context() as patch:
        for name in names:
            patch.setattr(Storage, name, faults.wrap(name))
        yield faults


@dataclass(frozen=True)
class State:
    """A table seen from outside: its rows by branch, its refs and its snapshots."""

    rows: tuple[Any, ...]
    snapshots: tuple[int, ...]
    schema: str
    properties: tuple[tuple[str, str], ...]


def state_of(warehouse: Path, catalog: str | None, name: str) -> State | None:
    """Return what a new connection reads, None where there is no such table."""
    default_cache().clear()
    with connect(str(warehouse), catalog) as lake:
        if not lake.exists(name):
            return None
        table = lake.table(name)
        refs = sorted(table.handle.metadata.refs)
        rows = tuple((ref, tuple(rows_of(table.arrow(ref=ref)))) for ref in refs)
        snapshots = tuple(sorted(one.snapshot_id for one in table.snapshots()))
        properties = tuple(sorted(table.properties.items()))
        return State(rows, snapshots, str(table.schema), properties)


def pointer_of(lake: Lake, name: str) -> str | None:
    """Return which metadata file a table is, None where there is no such table."""
    return lake.table(name).handle.metadata_location if lake.exists(name) else None


def files_below(folder: Path) -> set[str]:
    """Return every file of a warehouse but the catalog's database."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("catalog.db")
    }


def stray_files(warehouse: Path, catalog: str | None, name: str) -> set[str]:
    """Return the files below a table that none of its snapshots refers to."""
    with make_lake(warehouse, catalog=catalog) as lake:
        table = lake.table(name)
        known = referenced_files(table)
        if table.handle.format is ICEBERG:
            known |= _metadata_files(table)
        found = {one.location for one in Storage({}).list(table.location)}
    return {one for one in found - known if not one.endswith("version-hint.text")}


def _metadata_files(table: Table) -> set[str]:
    metadata = table.handle.metadata
    known = {entry.metadata_file for entry in metadata.metadata_log}
    known.add(str(table.handle.metadata_location))
    known |= {str(one.manifest_list) for one in metadata.snapshots}
    return known | set(table.inspect("all_manifests")["path"].to_pylist())
