"""Files of a table that are no files: an error that says what they are, never a hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, StorageError
from rowlake.iceberg.cache import default_cache
from tests.in_time import failure_in_time
from tests.lakes import SALES, sales
from tests.unit.test_corrupt import file_of

NAME = "shop.sales"


@pytest.fixture(params=[None, "filesystem"], ids=["sqlite", "filesystem"])
def lake(tmp_path, request):
    with connect(str(tmp_path), request.param) as opened:
        opened.create_namespace("shop")
        opened.create_table(NAME, SALES).append(sales(8))
        yield opened


@pytest.mark.parametrize("kind", ["metadata", "manifest list", "manifest", "data file"])
def test_a_pipe_in_place_of_a_file_is_named(lake, kind) -> None:
    path = file_of(lake.table(NAME), kind)
    path.unlink()
    os.mkfifo(path)
    default_cache().clear()
    error = failure_in_time(lambda: lake.table(NAME).arrow())
    assert isinstance(error, (CorruptTableError, StorageError))
    assert str(path) in str(error)
    assert "named pipe" in str(error)


def test_a_pipe_in_place_of_the_version_hint_does_not_hang(tmp_path) -> None:
    with connect(str(tmp_path), "filesystem") as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES)
        table.append(sales(8))
        hint = Path(table.location) / "metadata" / "version-hint.text"
        hint.unlink()
        os.mkfifo(hint)
        error = failure_in_time(lambda: lake.table(NAME).arrow())
        assert error is None or isinstance(error, StorageError)
