"""Ctrl-C at any point of a write: the table is as it was, or whole after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.catalog import sql as catalog_sql
from rowlake.commit import data
from rowlake.iceberg import manifest_set, producer
from rowlake.iceberg.format import IcebergFormat
from rowlake.write import output
from tests.faults.operations import NAME, OPERATIONS, make_table
from tests.lakes import rows_of, sales
from tests.parts.failing import (
    CATALOGS,
    READS,
    WRITES,
    Faults,
    failing,
    files_below,
    pointer_of,
    state_of,
)

if TYPE_CHECKING:
    from pathlib import Path

WRITING = ["append", "overwrite", "dynamic overwrite", "truncate", "create as", "replace as"]


@pytest.fixture(params=CATALOGS, ids=["sqlite", "filesystem"])
def catalog(request):
    return request.param


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (output.OpenFile, "write"),
        (output.OpenFile, "close"),
        (output.TaskFiles, "written"),
        (IcebergFormat, "prepare"),
        (manifest_set, "write_manifests"),
        (data, "find_breach"),
        (data, "resolved"),
        (IcebergFormat, "produce"),
        (producer, "write_manifest_list"),
        (producer, "summary_of"),
        (producer, "head_requirements"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__.split(".")[-1],
)
def test_ctrl_c_before_the_swap_leaves_the_table_and_its_files_as_they_were(
    tmp_path: Path, monkeypatch, catalog, place, name
) -> None:
    make_table(tmp_path, catalog)
    before, files = state_of(tmp_path, catalog, NAME), files_below(tmp_path)
    with connect(str(tmp_path), catalog) as lake:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, name, stop)
            lake.table(NAME).overwrite(sales(8, 100))
        assert state_of(tmp_path, catalog, NAME) == before
        assert files_below(tmp_path) == files
        lake.table(NAME).append(sales(1, 500))


@pytest.mark.parametrize("operation", WRITING)
def test_ctrl_c_in_any_storage_call_keeps_the_table_whole(
    tmp_path: Path, monkeypatch, catalog, operation
) -> None:
    make_table(tmp_path, catalog)
    name = "shop.new" if operation == "create as" else NAME
    with connect(str(tmp_path), catalog) as lake:
        pointer = pointer_of(lake, name)
        for at in range(1, 400):
            faults = Faults(at, error=lambda _: KeyboardInterrupt())
            with failing(monkeypatch, faults, READS + WRITES):
                is_stopped = is_interrupted(OPERATIONS[operation], lake)
            if pointer_of(lake, name) != pointer:
                break
            assert is_stopped
        # The file-system catalog brings its hint up to date after the swap.
        assert not is_stopped or "version-hint" in faults.calls[at - 1]
    state_of(tmp_path, catalog, name)  # reads every row of every branch


def is_interrupted(run, lake) -> bool:
    try:
        run(lake)
    except KeyboardInterrupt:
        return True
    return False


def test_ctrl_c_between_two_batches_of_rows_leaves_nothing(tmp_path: Path) -> None:
    make_table(tmp_path, None)
    files = files_below(tmp_path)

    def batches():
        yield from sales(10, 100).to_batches()
        raise KeyboardInterrupt

    with connect(str(tmp_path)) as lake:
        rows = pa.RecordBatchReader.from_batches(sales(1).schema, batches())
        with pytest.raises(KeyboardInterrupt):
            lake.table(NAME).append(rows)
    assert files_below(tmp_path) == files


@pytest.mark.parametrize("lands", [True, False])
def test_ctrl_c_inside_the_swap_removes_nothing_that_a_landed_commit_needs(
    tmp_path: Path, monkeypatch, lands
) -> None:
    make_table(tmp_path, None)
    swap = catalog_sql.SqlBackend.swap

    def interrupted(self, swaps):
        if lands:
            swap(self, swaps)
        raise KeyboardInterrupt

    with connect(str(tmp_path)) as lake:
        before = rows_of(lake.table(NAME).arrow())
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(catalog_sql.SqlBackend, "swap", interrupted)
            lake.table(NAME).append(sales(8, 100))
        found = rows_of(lake.table(NAME).arrow())
        expected = sorted([*before, *(rows_of(sales(8, 100)) if lands else [])], key=repr)
        assert found == expected
        lake.table(NAME).append(sales(1, 500))
        assert len(rows_of(lake.table(NAME).arrow())) == len(expected) + 1
