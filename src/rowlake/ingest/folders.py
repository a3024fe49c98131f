"""Plain directories of data files: which files, and what Hive-style folders say of them.

Comes in: a path, a directory or a list of paths. Goes out: `SourceFile`s with the raw texts of
their `key=value` folders, and the types that Spark would infer for those. Hidden files and folders
(`_temporary`, `.crc`) and empty files are passed over in directories, as Spark does.
"""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from rowlake.errors import CorruptTableError, InvalidStatementError, MissingFileError, shown
from rowlake.storage.locations import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowlake.storage.files import Storage

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
FORMATS = ("PARQUET", "ORC", "AVRO")
_MAGIC = {b"PAR1": "PARQUET", b"ORC": "ORC", b"Obj\x01": "AVRO"}
_EXTENSIONS = {".parquet": "PARQUET", ".orc": "ORC", ".avro": "AVRO"}
_METADATA_FILE = re.compile(r"(^|/)metadata/[^/]*\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$")
_LONGEST_INT, _LONGEST_LONG = 2**31, 2**63


@dataclass(frozen=True)
class SourceFile:
    """One file to take into a table; `folders` are (key, text) of its folders, None for null."""

    location: str
    size_in_bytes: int
    file_format: str
    folders: tuple[tuple[str, str | None], ...] = ()


def source_files(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    storage: Storage,
    file_format: str | None = None,
) -> list[SourceFile]:
    """Return the data files of a source, by location."""
    if isinstance(source, (str, os.PathLike)):
        found = _below(_absolute(source), storage, file_format)
    else:
        found = [file for path in source for file in _below(_absolute(path), storage, file_format)]
    if not found:
        raise InvalidStatementError(f"There are no data files in {_shown_source(source)}.")
    locations = [file.location for file in found]
    if len(set(locations)) < len(locations):
        twice = sorted({one for one in locations if locations.count(one) > 1})
        raise InvalidStatementError(f"Files are given twice: {shown(twice)}.")
    return sorted(found, key=lambda file: file.location)


def _shown_source(source: object) -> str:
    return shown(source) if isinstance(source, (list, tuple)) else str(source)


def _absolute(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    parts = split(text)
    return str(Path(parts.path)) if parts.is_local and not parts.prefix else text.rstrip("/")


def _below(path: str, storage: Storage, file_format: str | None) -> list[SourceFile]:
    listed = list(storage.list(path)) if _is_folder(path, storage) else None
    if listed is None:
        return [_single(path, storage, file_format)]
    found = []
    for info in listed:
        inside = info.location[len(path) :].lstrip("/")
        if _METADATA_FILE.search(inside):
            raise InvalidStatementError(
                f"{path} is an Iceberg table already: use register_table with its metadata file."
            )
        *above, name = inside.split("/")
        if info.size_in_bytes and not any(map(_is_hidden, (*above, name))):
            kind = file_format or _format_of(info.location, storage)
            folders = _folder_values(above)
            found.append(SourceFile(info.location, info.size_in_bytes, kind, folders))
    return found


def _is_folder(path: str, storage: Storage) -> bool:
    filesystem, inner = storage.resolve(path)
    kind = filesystem.get_file_info(inner).type.name
    if kind == "NotFound":
        raise InvalidStatementError(f"There is no file or directory {path}.")
    return bool(kind == "Directory")


def _single(path: str, storage: Storage, file_format: str | None) -> SourceFile:
    with storage.open_input(path) as stream:
        size = int(stream.size())
    above = path.split("/")[:-1]
    while above and "=" not in above[0]:
        above = above[1:]
    folders = _folder_values(above)
    return SourceFile(path, size, file_format or _format_of(path, storage), folders)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _folder_values(names: Iterable[str]) -> tuple[tuple[str, str | None], ...]:
    pairs = (name.partition("=") for name in names if "=" in name)
    return tuple(
        (unquote(key), None if value == HIVE_NULL else unquote(value)) for key, _, value in pairs
    )


def _format_of(location: str, storage: Storage) -> str:
    """Return a file's format: by its name, else by its first bytes (Hive names have no ending)."""
    named = _EXTENSIONS.get(Path(location).suffix.lower())
    if named is not None:
        return named
    try:
        with storage.open_input(location) as stream:
            start = stream.read(4)
    except MissingFileError as error:
        raise CorruptTableError(location, "there is no such file") from error
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    raise InvalidStatementError(f"{location} is no Parquet, ORC or Avro file.")


def inferred_types(files: Sequence[SourceFile]) -> dict[str, pa.DataType]:
    """Return the partition columns of the folders, in their order, with the types of Spark.

    Int, long, decimal (of whole numbers), double, date, timestamp (without zone: folders name a
    wall clock) and string; folders that disagree on the columns are refused.
    """
    names = [key for key, _ in files[0].folders]
    for file in files:
        if [key for key, _ in file.folders] != names:
            raise InvalidStatementError(
                f"Folders disagree on the partition columns: {files[0].location} has "
                f"{shown(names) or 'none'}, {file.location} has "
                f"{shown(key for key, _ in file.folders) or 'none'}."
            )
    texts = zip(*[[value for _, value in file.folders] for file in files], strict=True)
    return {name: _type_of(set(values)) for name, values in zip(names, texts, strict=True)}


def _type_of(texts: set[str | None]) -> pa.DataType:
    found = {_type_of_text(text) for text in texts if text is not None}
    if len(found) == 1:
        return found.pop()
    numbers = [kind for kind in (pa.int32(), pa.int64(), pa.float64()) if kind in found]
    if found and len(numbers) == len(found):
        return numbers[-1]
    if found == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    return pa.string()


def _type_of_text(text: str) -> pa.DataType:
    if re.fullmatch(r"[+-]?\d+", text):
        value = int(text)
        if -_LONGEST_INT <= value < _LONGEST_INT:
            return pa.int32()
        if -_LONGEST_LONG <= value < _LONGEST_LONG:
            return pa.int64()
        digits = len(text.lstrip("+-"))
        return pa.decimal128(digits, 0) if digits <= 38 else pa.string()
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return pa.float64()
    return _time_type(text)


def _time_type(text: str) -> pa.DataType:
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            datetime.date.fromisoformat(text)
            return pa.date32()
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?", text):
            datetime.datetime.fromisoformat(text[:19])
            return pa.timestamp("us")
    except ValueError:
        pass
    return pa.string()
