"""What racing processes do; in a module of its own, so that other processes can import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier


def create_versions(
    number: int, start: Barrier, folder: str, properties: Mapping[str, str], versions: int
) -> list[int]:
    """Try to make each version, all racers at once; return those that this one made."""
    from rowlake.storage.files import Storage

    storage = Storage(properties)
    storage.exists(folder)
    won = []
    for version in range(versions):
        start.wait()
        if storage.create(f"{folder}/v{version}", f"{number}".encode() * 5000):
            won.append(version)
    return won


def add_properties(
    number: int, start: Barrier, warehouse: str | None, catalog: Any, table: str, commits: int
) -> int:
    """Set properties of one's own, one per commit; return how many conflicts there were."""
    from pyiceberg.table.update import SetPropertiesUpdate

    from rowlake.catalog.commit import commit_updates
    from rowlake.catalog.open import open_catalog
    from rowlake.catalog.tables import load_table
    from rowlake.model.outcome import Conflict, Landed

    start.wait()
    opened = open_catalog(warehouse, catalog)
    handle = load_table(opened, table)
    conflicts = 0
    for commit in range(commits):
        updates = [SetPropertiesUpdate(updates={f"w{number}.{commit}": "here"})]
        outcome = commit_updates(handle, updates, [])
        while isinstance(outcome, Conflict):
            conflicts += 1
            outcome = commit_updates(handle, updates, [])
        assert isinstance(outcome, Landed), outcome
        handle = outcome.handle
    return conflicts


def create_same_table(
    number: int, start: Barrier, warehouse: str | None, catalog: Any, table: str
) -> bool:
    """Create one table; return whether this process did."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    from rowlake.catalog.open import open_catalog
    from rowlake.catalog.tables import create_namespace, create_table
    from rowlake.errors import InvalidStatementError
    from rowlake.iceberg.metadata_files import Definition

    start.wait()
    opened = open_catalog(warehouse, catalog)
    create_namespace(opened, "race", exist_ok=True)
    definition = Definition(Schema(NestedField(1, "x", LongType())), properties={"by": str(number)})
    try:
        create_table(opened, table, definition)
    except InvalidStatementError:
        return False
    return True


def append_batches(
    number: int, start: Barrier, warehouse: str | None, catalog: Any, table: str, commits: int
) -> int:
    """Append ten rows of one's own per commit; return how often a commit was tried again."""
    import pyarrow as pa

    import rowlake

    with rowlake.connect(warehouse, catalog=catalog) as lake:
        mine = lake.table(table)
        start.wait()
        retries = 0
        for commit in range(commits):
            ids = range((number * commits + commit) * 10, (number * commits + commit + 1) * 10)
            retries += mine.append(pa.table({"id": pa.array(ids, pa.int64())})).retries
    return retries


def append_rows(
    number: int, start: Barrier, warehouse: str, catalog: Any, table: Any, commits: int
) -> int:
    """Append one row of one's own per commit; return how many retries that took."""
    import pyarrow as pa

    from rowlake import connect

    with connect(warehouse, catalog) as lake:
        opened = lake.table(table)
        start.wait()
        retries = 0
        for commit in range(commits):
            retries += opened.append(pa.table({"id": [number * 1000 + commit]})).retries
        return retries


def delete_own_rows(
    number: int, start: Barrier, warehouse: str, catalog: Any, table: Any, commits: int
) -> int:
    """Delete one row of one's own per commit; return how many retries that took."""
    from rowlake import connect

    with connect(warehouse, catalog) as lake:
        opened = lake.table(table)
        start.wait()
        retries = 0
        for commit in range(commits):
            result = opened.delete(f"id = {number * 1000 + commit}", mode="merge-on-read")
            assert result.rows_deleted == 1
            retries += result.retries
        return retries


def append_and_tell(
    answers: Connection, warehouse: str, catalog: Any, table: str, first: int
) -> None:
    """Append rows one by one, and tell each that landed, until somebody kills this process."""
    import pyarrow as pa

    from rowlake import connect

    with connect(warehouse, catalog) as lake:
        opened = lake.table(table)
        answers.send("ready")
        for number in range(first, first + 1000):
            opened.append(pa.table({"id": [number]}))
            answers.send(number)


def append_to_both(
    number: int,
    start: Barrier,
    warehouse: str | None,
    catalog: Any,
    names: tuple[str, str],
    commits: int,
) -> tuple[set[int], set[int]]:
    """Append one row of one's own to two tables per transaction.

    Returns the ids that landed, and those of whose transactions nobody can tell.
    """
    import pyarrow as pa

    from rowlake import connect
    from rowlake.errors import CommitStateUnknownError

    landed, unknown = set(), set()
    with connect(warehouse, catalog) as lake:
        start.wait()
        for mine in range((number + 1) * 1000, (number + 1) * 1000 + commits):
            try:
                with lake.transaction() as tx:
                    # Half of them in the other order: nobody may lock another out.
                    for name in names if number % 2 else names[::-1]:
                        tx.table(name).append(pa.table({"id": [mine]}))
                landed.add(mine)
            except CommitStateUnknownError:  # noqa: PERF203  (each is counted)
                unknown.add(mine)
    return landed, unknown
