"""Delta tables on storage that fails at every single call, or loses the answer of a commit.

A table is as before or as after, no file lies around that its log does not name, and what comes
after a commit (checksum, checkpoint) never fails it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import Lake, connect
from rowlake.errors import CommitConflictError, CommitStateUnknownError, RowlakeError
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.files import Storage
from tests.any_format import changing, referenced_files
from tests.lakes import SALES, rows_of, sales
from tests.parts.failing import READS, WRITES, Faults, PulledPlugError, failing, files_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.table import Table

MOST_CALLS = 200
# Every commit but the first has a checkpoint: its faults are faults after a commit.
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1"}
MARK, REWRITE = "merge-on-read", "copy-on-write"
IN_STORE = Leaf(("store",), Op.EQ, (1,))


def add_column(table: Table) -> None:
    with changing(table, "schema") as schema:
        schema.add_column("more", "string")


OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "append": lambda table: table.append(sales(8, 100)),
    "overwrite": lambda table: table.overwrite(sales(4, 100)),
    "overwrite by filter": lambda table: table.overwrite(sales(4, 100), where=IN_STORE),
    "dynamic overwrite": lambda table: table.overwrite(sales(2, 100), dynamic=True),
    "truncate": lambda table: table.truncate(),
    "delete by vectors": lambda table: table.delete("id < 3", mode=MARK),
    "delete by rewrites": lambda table: table.delete("id < 3", mode=REWRITE),
    "upsert": lambda table: table.upsert(sales(4, 14), ["id"], mode=MARK),
    "compaction": lambda table: table.rewrite_data_files(options={"rewrite-all": "true"}),
    "set properties": lambda table: table.set_properties({"a": "b"}),
    "add column": add_column,
}
CHANGES_ROWS = [name for name in OPERATIONS if name not in ("set properties", "add column")]


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    return "delta", str(tmp_path / "t")


@pytest.fixture
def lake(tmp_path: Path, place: tuple[str, str]) -> Iterator[Lake]:
    with connect(str(tmp_path / "lake")) as found:
        table = found.create_table(place, SALES, partition_by=["store"], properties=PROPERTIES)
        table.append(sales(8))
        table.append(sales(8, 8))
        yield found


def state_of(lake: Lake, place: tuple[str, str]) -> tuple[Any, ...]:
    """Return what is read of a table that is opened anew."""
    table = lake.table(place)
    return rows_of(table.arrow()), table.handle.version, str(table.schema), table.properties


def versions_of(place: tuple[str, str]) -> list[int]:
    names = [one.stem for one in Path(place[1], "_delta_log").glob("*.json")]
    return sorted(int(name) for name in names if name.isdigit())


def data_files(place: tuple[str, str]) -> set[str]:
    """Return the files of a table but those of its log."""
    return {one for one in files_below(Path(place[1])) if not one.startswith("_delta_log")}


def strays_of(lake: Lake, place: tuple[str, str]) -> set[str]:
    known = referenced_files(lake.table(place))
    return {one.location for one in Storage({}).list(place[1])} - known


def error_of(run: Callable[[Table], Any], lake: Lake, place: tuple[str, str]) -> Exception | None:
    try:
        run(lake.table(place))
    except RowlakeError as error:
        return error
    return None


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_failed_call_leaves_the_table_as_before_or_after(
    lake: Lake, place: tuple[str, str], monkeypatch, operation: str, after: bool
) -> None:
    """Each call fails once, before or after its effect, until the commit gets through."""
    before, files, versions = state_of(lake, place), data_files(place), versions_of(place)
    names = WRITES if after else READS + WRITES
    for at in range(1, MOST_CALLS):
        with failing(monkeypatch, Faults(at, after=after), names) as faults:
            raised = error_of(OPERATIONS[operation], lake, place)
        if raised is None or isinstance(raised, CommitStateUnknownError):
            break
        where = f"call {at}: {faults.calls[at - 1]}: {raised!r}"
        assert versions_of(place) == versions, where
        assert data_files(place) == files, where
    assert raised is None or not after, "the answer was lost, but the commit can be found"
    if raised is None:
        assert state_of(lake, place) != before
        assert strays_of(lake, place) == set()
    assert versions_of(place) == list(range(len(versions_of(place))))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_fails_after_a_commit_does_not_fail_it(
    lake: Lake, place: tuple[str, str], monkeypatch, operation: str
) -> None:
    """Every write after that of the commit file fails."""
    before, create = state_of(lake, place), Storage.create
    landed: list[str] = []

    def no_more(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
        if landed:
            raise PulledPlugError(location, "unplugged")
        if location.endswith(".json"):
            landed.append(location)
        return create(storage, location, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "create", no_more)
        OPERATIONS[operation](lake.table(place))
    assert state_of(lake, place) != before
    assert strays_of(lake, place) == set()
    if operation != "add column":
        rows = lake.table(place).arrow().num_rows
        lake.table(place).append(sales(1, 500))
        assert lake.table(place).arrow().num_rows == rows + 1


@pytest.mark.parametrize("operation", CHANGES_ROWS)
@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_of_unknown_outcome_removes_no_file(
    lake: Lake, place: tuple[str, str], monkeypatch, operation: str, lands: bool
) -> None:
    """Neither the answer to the put nor any look at the log comes back."""
    versions, files = versions_of(place), data_files(place)
    before = state_of(lake, place)[0]
    create, read = Storage.create, Storage.read
    lost: list[str] = []

    def putting(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
        if "_delta_log" not in location or not location.endswith(".json"):
            return create(storage, location, *args, **kwargs)
        lost.append(location)
        if lands:
            create(storage, location, *args, **kwargs)
        raise PulledPlugError(location, "504")

    def reading(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
        if location in lost:
            raise PulledPlugError(location, "504")
        return read(storage, location, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "create", putting)
        patch.setattr(Storage, "read", reading)
        with pytest.raises(CommitStateUnknownError):
            OPERATIONS[operation](lake.table(place))
    assert versions_of(place) == [*versions, *([len(versions)] if lands else [])]
    assert files <= data_files(place)
    # Reads every file that the log names.
    assert (state_of(lake, place)[0] != before) == (lands and operation != "compaction")


@pytest.mark.parametrize("operation", CHANGES_ROWS)
def test_a_commit_that_loses_twice_lands_with_two_retries(
    lake: Lake, place: tuple[str, str], monkeypatch, operation: str
) -> None:
    lake.table(place).set_properties({"commit.retry.min-wait-ms": "1"})
    create, calls = Storage.create, []

    def taken(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
        if location.endswith(".json"):
            calls.append(location)
            if len(calls) <= 2:
                return False
        return create(storage, location, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "create", taken)
        OPERATIONS[operation](lake.table(place))
    assert len(calls) == 3
    assert strays_of(lake, place) == set()
    assert versions_of(place) == list(range(len(versions_of(place))))


@pytest.mark.parametrize("operation", ["append", "overwrite", "truncate", "delete by vectors"])
def test_an_attempt_that_is_lost_for_ever_leaves_no_file(
    lake: Lake, place: tuple[str, str], monkeypatch, operation: str
) -> None:
    retries = {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"}
    lake.table(place).set_properties(retries)
    before, files = state_of(lake, place), data_files(place)
    create = Storage.create

    def taken(storage: Storage, location: str, *args: Any, **kwargs: Any) -> Any:
        is_commit = "_delta_log" in location and location.endswith(".json")
        return False if is_commit else create(storage, location, *args, **kwargs)

    with monkeypatch.context() as patch, pytest.raises(CommitConflictError, match="3 attempts"):
        patch.setattr(Storage, "create", taken)
        OPERATIONS[operation](lake.table(place))
    assert state_of(lake, place) == before
    assert data_files(place) == files
