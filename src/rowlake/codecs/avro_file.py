"""Avro files of a table's metadata, wherever they are, decoded in the way that suits them.

Comes in: a location. Goes out: its rows as an Arrow table, and its header. Large files go to
DataFusion, which reads local files only: remote ones through a copy that is removed at once.
Small files, and those that DataFusion does not read right, are decoded in Python.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from rowlake.codecs.avro_container import header_bytes
from rowlake.codecs.avro_decode import AvroLayout, decode_python, extent_of, read_header
from rowlake.codecs.avro_types import pruned
from rowlake.errors import CorruptTableError, MissingFileError, missing_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rowlake.codecs.avro_decode import Header
    from rowlake.storage.files import Storage

# Below this a file (some hundred entries) is decoded in Python sooner than DataFusion is loaded;
# below the second, sooner than DataFusion starts. After so many bytes of files in between, to
# have loaded it would have taken less time.
SMALL_FILE_BYTES = 64 * 1024
TINY_FILE_BYTES = 12 * 1024
SMALL_PLAIN_BYTES = 8 * 1024 * 1024  # more than any honest file of that size unpacks to
SMALL_FILES_BYTES = 1024 * 1024
DATAFUSION_BATCH_ROWS = 1 << 16
PATIENCE_SECONDS = 5.0
PATIENCE_BYTES_PER_SECOND = 1024 * 1024
_STUCK: set[str] = set()
_SMALL_FILES_READ: list[int] = []  # their sizes, while DataFusion is not loaded


def decode_file(
    location: str,
    storage: Storage,
    *,
    keep: Collection[int] | None = None,
    length: int | None = None,
) -> tuple[pa.Table, Header]:
    """Return the rows of an Avro file; `keep` has the ids of wanted fields, None means all.

    `length` is what the file must have at least. Raises CorruptTableError for a damaged file.
    """
    try:
        data = storage.read(location)
    except MissingFileError as error:
        raise missing_file(location) from error
    if length is not None and len(data) < length:
        raise CorruptTableError(
            location, f"it has {len(data)} bytes where the manifest list says {length}"
        )
    header = read_header(data, location)
    extent = extent_of(data, header, location)
    is_small = len(data) < _small_file_bytes() and extent.plain_bytes < SMALL_PLAIN_BYTES
    if is_small and len(data) >= TINY_FILE_BYTES:
        _SMALL_FILES_READ.append(len(data))
    if is_small or header.layout.has_plain_fixed:
        return decode_python(data, header, location, keep), header
    table = None
    if location not in _STUCK:
        plain, plain_header = _without_empty_records(data, header)
        with _local_path(plain, location, storage, is_copy=plain is not data) as path:
            table = _try_datafusion(path, plain_header, keep, _patience(len(data)), location)
    if table is None:
        # Names that Avro forbids, or real damage: Python reads the first and names the second.
        return decode_python(data, header, location, keep), header
    if table.num_rows != extent.rows:
        raise CorruptTableError(location, f"{table.num_rows} of {extent.rows} rows can be decoded")
    return table, header


def _try_datafusion(
    path: str, header: Header, keep: Collection[int] | None, seconds: float, location: str
) -> pa.Table | None:
    """Return what DataFusion decodes, None where it fails or takes far too long.

    DataFusion loops forever over rows that run beyond their block. It cannot be stopped then,
    so it runs in a thread of its own that is left behind, and the file is not given to it again.
    """
    import_module("datafusion")  # which may take long by itself, on a busy machine
    answers: SimpleQueue[pa.Table | None] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(decode_datafusion(path, header, location, keep))
        except CorruptTableError:
            answers.put(None)

    Thread(target=run, name="rowlake-avro", daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except Empty:
        _STUCK.add(location)
        return None


def _patience(size: int) -> float:
    """Return a hundred times the seconds that decoding should take."""
    return PATIENCE_SECONDS + size / PATIENCE_BYTES_PER_SECOND


def _without_empty_records(data: bytes, header: Header) -> tuple[bytes, Header]:
    """Return a file without its fields of no parts: the partition of an unpartitioned table.

    DataFusion refuses them. They take no bytes, so that only the header is another one.
    """
    schema = _with_parts(header.schema)
    if schema == header.schema:
        return data, header
    metadata = {**header.metadata, "avro.schema": json.dumps(schema)}
    head = header_bytes(metadata, header.codec, header.sync)
    return head + data[header.end :], replace(header, layout=AvroLayout(schema))


def _with_parts(record: dict[str, Any]) -> dict[str, Any]:
    fields = []
    for field in record["fields"]:
        below = field["type"]
        if isinstance(below, dict) and below["type"] == "record":
            below = _with_parts(below)
            if not below["fields"]:
                continue
        fields.append({**field, "type": below})
    return {**record, "fields": fields}


@contextmanager
def _local_path(
    data: bytes, location: str, storage: Storage, *, is_copy: bool = False
) -> Iterator[str]:
    """Give the path of a file on this machine; of a remote file, a copy that is removed."""
    filesystem, path = storage.resolve(location)
    if is_local(filesystem) and not is_copy:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rowlake-") as folder:
        copy = Path(folder) / "file.avro"
        copy.write_bytes(data)
        yield str(copy)


def is_local(filesystem: fs.FileSystem) -> bool:
    """Return whether paths of a file system are paths of this machine."""
    return isinstance(filesystem, fs.LocalFileSystem)


def _small_file_bytes() -> int:
    pays = "datafusion" in sys.modules or sum(_SMALL_FILES_READ) > SMALL_FILES_BYTES
    return TINY_FILE_BYTES if pays else SMALL_FILE_BYTES


def decode_datafusion(
    path: str, header: Header, location: str, keep: Collection[int] | None = None
) -> pa.Table:
    """Decode a local file with DataFusion; its columns may come in several chunks."""
    # Heavy, and not needed where manifests are few and small: loaded at first use.
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(1).with_batch_size(DATAFUSION_BATCH_ROWS)
    context = SessionContext(config)
    ending = "." + path.rpartition(".")[2]
    try:
        if keep is None:
            return context.read_avro(path, file_extension=ending).to_arrow_table()
        inferred = context.read_avro(path, file_extension=ending).schema()
        wanted = _like(inferred, pruned(header.schema, keep))
        return context.read_avro(
            path, schema=pa.schema(wanted), file_extension=ending
        ).to_arrow_table()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # DataFusion raises bare Exceptions, and panics beyond them
        raise CorruptTableError(location, f"it cannot be decoded ({error})") from error


def _like(inferred: Any, record: dict[str, Any]) -> list[pa.Field]:
    """Return the Arrow fields of a record that a pruned schema still has."""
    kept = []
    for field in record["fields"]:
        arrow_field, below = inferred.field(field["name"]), field["type"]
        if isinstance(below, dict) and below["type"] == "record":
            arrow_field = arrow_field.with_type(pa.struct(_like(arrow_field.type, below)))
        kept.append(arrow_field)
    return kept
