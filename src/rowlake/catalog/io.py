"""PyIceberg's file access on rowlake's storage.

So both open every location alike, odd characters included, and loading a table does not import
PyIceberg's own reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, OutputFile
from pyiceberg.typedef import EMPTY_DICT

from rowlake.errors import MissingFileError, StorageError
from rowlake.iceberg._compat import OWN_FILE_IO
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from pyiceberg.typedef import Properties

# The property of a PyIceberg catalog that names the class, and its value.
IMPLEMENTATION = PY_IO_IMPL
OURS = OWN_FILE_IO


class StorageFile(InputFile, OutputFile):
    """One file, to read or to write."""

    def __init__(self, location: str, storage: Storage) -> None:
        super().__init__(location)
        self._storage = storage

    def __len__(self) -> int:
        with self.open() as stream:
            return int(stream.size())

    def exists(self) -> bool:
        """Return whether the file is there."""
        return self._storage.exists(self.location)

    def open(self, seekable: bool = True) -> Any:  # noqa: ARG002
        """Open the file for reading; FileNotFoundError where there is none."""
        try:
            return self._storage.open_input(self.location)
        except MissingFileError as error:
            raise FileNotFoundError(str(error)) from error

    def create(self, overwrite: bool = False) -> Any:
        """Open the file for writing; not atomic against others without `overwrite`."""
        if not overwrite and self.exists():
            raise FileExistsError(f"Cannot create {self.location}: it exists already.")
        return self._storage.open_output(self.location)

    def to_input_file(self) -> StorageFile:
        """Return the same file, for reading."""
        return self


class StorageFileIO(FileIO):
    """All files that the properties open."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties=properties)
        self._storage = Storage(properties)

    def new_input(self, location: str) -> StorageFile:
        """Return a file for reading."""
        return StorageFile(location, self._storage)

    def new_output(self, location: str) -> StorageFile:
        """Return a file for writing."""
        return StorageFile(location, self._storage)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file; OSError where that fails, as PyIceberg expects."""
        place = location if isinstance(location, str) else location.location
        try:
            left = self._storage.delete([place])
        except StorageError as error:
            raise OSError(str(error)) from error
        if left:
            raise OSError(f"Cannot delete {place}.")
