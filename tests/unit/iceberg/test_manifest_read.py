"""Manifests that tasks read are those that the driver reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.engine.worker import as_table, pack, unpack
from rowlake.errors import CorruptTableError
from rowlake.iceberg import manifest_read as module
from rowlake.iceberg.cache import default_cache
from rowlake.iceberg.listing import live_manifests
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.metadata import view_of
from rowlake.model.predicate import Leaf, Op
from rowlake.plan.files import DELETE_COLUMNS, FILE_COLUMNS, plan_files
from rowlake.storage.files import Storage
from tests.lakes import SALES, make_lake, sales

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMITS = 12


class TaskEngine:
    """Runs tasks one after another, each shipped as Spark would ship it."""

    has_session = True
    slots = 2

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def run(self, kernel: Any, tasks: Any, output: pa.Schema, *, label: str) -> pa.Table:
        self.tasks += tasks
        batches = [batch for task in tasks for batch in unpack(pack(kernel))(unpack(pack(task)))]
        return as_table([pa.Table.from_batches([batch]) for batch in reversed(batches)], output)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A table of many small manifests, of two specs, some with removed files."""
    monkeypatch.setattr(module, "MANY_MANIFESTS", 3)
    with make_lake(tmp_path) as lake:
        lake.create_namespace("db")
        made = lake.create_table(
            "db.t",
            SALES,
            partition_by=["months(sold_on)"],
            properties={"commit.manifest-merge.enabled": "false"},
        )
        for commit in range(COMMITS):
            if commit == COMMITS // 2:
                with made.evolve().update_spec() as update:
                    update.add_identity("store")
            made.append(sales(40, commit * 40))
        made.overwrite(sales(5, 10_000), where="sold_on >= DATE'2024-03-01'")
        default_cache().clear()
        yield made


def reference(table: Any, columns: tuple[str, ...] | None) -> tuple[Any, ...]:
    view = view_of(table.handle)
    storage = Storage(view.io_properties)
    manifests = live_manifests(view, storage)
    expected = read_manifests(manifests, view, storage, columns=columns)
    default_cache().clear()
    return manifests, view, storage, expected


@pytest.mark.parametrize("columns", [FILE_COLUMNS, DELETE_COLUMNS, None], ids=["f", "d", "all"])
def test_tasks_find_what_the_driver_finds(table: Any, columns: tuple[str, ...] | None) -> None:
    manifests, view, storage, expected = reference(table, columns)
    assert set(expected) == {0, 1}
    engine = TaskEngine()
    found = module.read_live_entries(manifests, view, storage, columns=columns, runner=engine)
    assert 1 < len(engine.tasks) <= 4
    assert sum(task.manifests.num_rows for task in engine.tasks) == manifests.num_rows
    assert {key: rows.to_pylist() for key, rows in found.items()} == {
        key: rows.to_pylist() for key, rows in expected.items()
    }
    assert {key: rows.schema for key, rows in found.items()} == {
        key: rows.schema for key, rows in expected.items()
    }


def test_what_tasks_found_is_not_read_again(table: Any) -> None:
    view = view_of(table.handle)
    storage = Storage(view.io_properties)
    engine = TaskEngine()
    first = plan_files(view, None, storage, runner=engine)
    before = len(engine.tasks)
    assert before
    # The process that runs the tests runs the tasks too; what they cached is not the driver's.
    again = plan_files(view, None, storage, runner=engine)
    assert len(engine.tasks) == before
    assert again.file_count == first.file_count == plan_files(view, None, storage).file_count


def test_columns_that_are_not_cached_are_read(table: Any) -> None:
    view = view_of(table.handle)
    storage = Storage(view.io_properties)
    engine = TaskEngine()
    plan_files(view, None, storage, runner=engine)
    before = len(engine.tasks)
    few = plan_files(view, Leaf(("id",), Op.LT, (40,)), storage, runner=engine)
    assert len(engine.tasks) > before
    assert few.record_count <= 40
    assert few.files_pruned > 0


def test_few_manifests_and_no_session_stay_with_the_driver(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests, view, storage, expected = reference(table, FILE_COLUMNS)
    engine = TaskEngine()
    engine.has_session = False
    found = module.read_live_entries(manifests, view, storage, columns=FILE_COLUMNS, runner=engine)
    assert {key: rows.num_rows for key, rows in found.items()} == {
        key: rows.num_rows for key, rows in expected.items()
    }
    engine.has_session = True
    monkeypatch.setattr(module, "MANY_MANIFESTS", 1000)
    default_cache().clear()
    module.read_live_entries(manifests, view, storage, columns=FILE_COLUMNS, runner=engine)
    assert engine.tasks == []
    monkeypatch.setattr(module, "MANY_BYTES", 1000)
    default_cache().clear()
    module.read_live_entries(manifests, view, storage, columns=FILE_COLUMNS, runner=engine)
    assert engine.tasks


def test_tables_too_large_for_the_cache_are_planned(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests, view, storage, expected = reference(table, FILE_COLUMNS)
    monkeypatch.setattr(default_cache(), "memory_bytes", 1)
    engine = TaskEngine()
    found = module.read_live_entries(manifests, view, storage, columns=FILE_COLUMNS, runner=engine)
    assert default_cache().held_bytes == 0
    assert {key: rows.to_pylist() for key, rows in found.items()} == {
        key: rows.to_pylist() for key, rows in expected.items()
    }


def test_a_damaged_manifest_is_named(table: Any) -> None:
    view = view_of(table.handle)
    storage = Storage(view.io_properties)
    location = live_manifests(view, storage)["location"][4].as_py()
    storage.write(location, b"Obj\x01 and nothing more")
    with pytest.raises(CorruptTableError) as caught:
        plan_files(view, None, storage, runner=TaskEngine())
    assert location in str(caught.value)
