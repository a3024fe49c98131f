"""The catalog's swap fails before or after it took effect, and says so or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from rowlake import connect
from rowlake.catalog import commit as catalog_commit
from rowlake.catalog.filesystem_backend import FileSystemBackend
from rowlake.catalog.sql import SqlBackend
from rowlake.errors import CommitConflictError, CommitStateUnknownError
from tests.faults.operations import CREATES, NAME, OPERATIONS, make_table
from tests.parts.failing import CATALOGS, files_below, pointer_of, state_of, stray_files

if TYPE_CHECKING:
    from pathlib import Path

BACKENDS = (SqlBackend, FileSystemBackend)
WITH_SNAPSHOT = [
    name
    for name in OPERATIONS
    if name.startswith(
        ("append", "overwrite", "dynamic", "truncate", "replace", "rewrite", "create as")
    )
]
WITHOUT_SNAPSHOT = ["create branch", "create tag", "drop ref", "set properties", "rollback"]


@pytest.fixture(autouse=True)
def looks_are_quick(monkeypatch):
    monkeypatch.setattr(catalog_commit, "LOOKS", (0.0, 0.0))


@pytest.fixture(params=CATALOGS, ids=["sqlite", "filesystem"])
def catalog(request):
    return request.param


def swap_that(monkeypatch, *, lands: bool, error: Exception, times: int = 1000) -> list[str]:
    """Let the swap fail after it landed, or without landing; return a log of its calls."""
    calls: list[str] = []
    for backend in BACKENDS:
        whole = backend.commit

        def commit(self, handle, updates, requirements, whole=whole):
            calls.append(handle.name)
            if len(calls) > times:
                return whole(self, handle, updates, requirements)
            if lands:
                whole(self, handle, updates, requirements)
            raise error

        monkeypatch.setattr(backend, "commit", commit)
    return calls


def name_of(operation: str) -> str:
    return "shop.new" if operation in CREATES else NAME


@pytest.mark.parametrize("operation", WITH_SNAPSHOT)
def test_a_commit_whose_answer_is_lost_is_found_to_have_landed(
    tmp_path: Path, monkeypatch, catalog, operation
) -> None:
    make_table(tmp_path, catalog)
    name = name_of(operation)
    before = state_of(tmp_path, catalog, name)
    with connect(str(tmp_path), catalog) as lake, monkeypatch.context() as patch:
        calls = swap_that(patch, lands=True, error=CommitStateUnknownException("504"))
        OPERATIONS[operation](lake)
        assert len(calls) == 1
    assert state_of(tmp_path, catalog, name) != before
    assert stray_files(tmp_path, catalog, name) == set()


@pytest.mark.parametrize("operation", WITH_SNAPSHOT)
def test_a_commit_of_unknown_outcome_removes_nothing_and_says_where_to_look(
    tmp_path: Path, monkeypatch, catalog, operation
) -> None:
    make_table(tmp_path, catalog)
    name = name_of(operation)
    before, files = state_of(tmp_path, catalog, name), files_below(tmp_path)
    with connect(str(tmp_path), catalog) as lake, monkeypatch.context() as patch:
        swap_that(patch, lands=False, error=CommitStateUnknownException("504"))
        with pytest.raises(CommitStateUnknownError) as raised:
            OPERATIONS[operation](lake)
    assert (raised.value.table, raised.value.cause) == (name, "504")
    assert f"rowlake snapshots {name}" in str(raised.value)
    assert state_of(tmp_path, catalog, name) == before
    kept = files_below(tmp_path) - files
    assert any(f"snap-{raised.value.snapshot_id}-" in one for one in kept)


@pytest.mark.parametrize("operation", WITHOUT_SNAPSHOT)
@pytest.mark.parametrize("lands", [True, False])
def test_a_metadata_change_of_unknown_outcome_is_whole_or_absent(
    tmp_path: Path, monkeypatch, catalog, operation, lands
) -> None:
    make_table(tmp_path, catalog)
    before = state_of(tmp_path, catalog, NAME)
    with connect(str(tmp_path), catalog) as lake, monkeypatch.context() as patch:
        swap_that(patch, lands=lands, error=CommitStateUnknownException("504"))
        with pytest.raises(CommitStateUnknownError) as raised:
            OPERATIONS[operation](lake)
    assert raised.value.table == NAME
    assert (state_of(tmp_path, catalog, NAME) != before) == lands


@pytest.mark.parametrize("operation", ["append", "overwrite", "truncate", "replace as"])
def test_an_attempt_that_is_lost_for_ever_leaves_no_file(
    tmp_path: Path, monkeypatch, catalog, operation
) -> None:
    make_table(tmp_path, catalog)
    with connect(str(tmp_path), catalog) as lake:
        lake.table(NAME).set_properties(
            {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"}
        )
        before, files = state_of(tmp_path, catalog, NAME), files_below(tmp_path)
        with monkeypatch.context() as patch:
            calls = swap_that(patch, lands=False, error=CommitFailedException("taken"))
            with pytest.raises(CommitConflictError) as raised:
                OPERATIONS[operation](lake)
        assert len(calls) == 3
    assert (raised.value.table, raised.value.files) == (NAME, ())
    assert "3 attempts" in raised.value.cause
    assert state_of(tmp_path, catalog, NAME) == before
    assert files_below(tmp_path) == files


@pytest.mark.parametrize("operation", WITH_SNAPSHOT)
def test_a_swap_that_loses_twice_lands_with_two_retries_and_no_stray_file(
    tmp_path: Path, monkeypatch, catalog, operation
) -> None:
    make_table(tmp_path, catalog)
    name = name_of(operation)
    with connect(str(tmp_path), catalog) as lake:
        lake.table(NAME).set_properties({"commit.retry.min-wait-ms": "1"})
        before = pointer_of(lake, name)
        with monkeypatch.context() as patch:
            error = CommitFailedException("taken")
            calls = swap_that(patch, lands=False, error=error, times=2)
            result = OPERATIONS[operation](lake)
        assert (len(calls), result.retries) == (3, 2)
        assert pointer_of(lake, name) != before
    assert stray_files(tmp_path, catalog, name) == set()
