from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from pyiceberg.io import load_file_io

from rowlake.catalog.io import IMPLEMENTATION, OURS, StorageFileIO

if TYPE_CHECKING:
    from pathlib import Path

    from rowlake.catalog.handle import IcebergHandle


@pytest.fixture
def io() -> StorageFileIO:
    loaded = load_file_io({IMPLEMENTATION: OURS})
    assert isinstance(loaded, StorageFileIO)
    return loaded


def test_files_are_written_read_and_deleted(io: StorageFileIO, tmp_path: Path) -> None:
    location = f"file:{tmp_path}/a #b/x"
    out = io.new_output(location)
    assert not out.exists()
    with out.create() as stream:
        stream.write(b"12345")
    assert len(io.new_input(location)) == 5
    with out.to_input_file().open() as stream:
        assert stream.read() == b"12345"
    with pytest.raises(FileExistsError):
        out.create()
    with out.create(overwrite=True) as stream:
        stream.write(b"1")
    io.delete(io.new_input(location))
    assert not out.exists()


def test_failures_are_those_that_pyiceberg_expects(io: StorageFileIO, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        io.new_input(f"{tmp_path}/none").open()
    with pytest.raises(OSError, match="Cannot delete"):
        io.delete(str(tmp_path))


def test_it_travels(io: StorageFileIO) -> None:
    assert pickle.loads(pickle.dumps(io)).properties == io.properties


def test_pyicebergs_table_objects_keep_the_kind_of_their_catalog(table: IcebergHandle) -> None:
    handed_out = table.to_pyiceberg()
    assert isinstance(handed_out.catalog, type(table.catalog))
    assert handed_out.catalog.name == table.catalog.name
    assert handed_out.refresh().metadata == table.metadata
