"""Small files and tasks for tests of the scan room."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from rowlake.codecs import deletion_vector, position_delete, puffin
from rowlake.model.files import Content, DeleteFile
from rowlake.model.schema import FIELD_ID, INITIAL_DEFAULT, TYPE_NAME, Schema, children, field_id
from rowlake.model.task import FileTask, ScanContext, ScanTask
from rowlake.scan import scan_kernel
from rowlake.scan.shape import with_children
from rowlake.storage.files import Storage

STORAGE = Storage({})


def field(
    name: str,
    arrow_type: pa.DataType,
    key: int | None,
    *,
    required: bool = False,
    default: Any = None,
    type_name: str | None = None,
) -> pa.Field:
    metadata = {} if key is None else {FIELD_ID: str(key)}
    if default is not None:
        metadata[INITIAL_DEFAULT] = json.dumps(default)
    if type_name is not None:
        metadata[TYPE_NAME] = type_name
    return pa.field(name, arrow_type, not required, metadata=metadata)


def schema(*fields: pa.Field) -> Schema:
    return Schema(pa.schema(list(fields)))


def table_of(found: Schema | pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    arrow = found.arrow if isinstance(found, Schema) else found
    return pa.Table.from_pylist(rows, schema=arrow)


def write_parquet(path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, path, **options)
    return str(path)


def write_orc(path: Path, table: pa.Table, **options: Any) -> str:
    orc.write_table(table.cast(_orc_schema(table.schema)), str(path), **options)
    return str(path)


def _orc_schema(arrow: pa.Schema) -> pa.Schema:
    return pa.schema([_orc_field(one) for one in arrow])


def _orc_field(one: pa.Field) -> pa.Field:
    key = field_id(one)
    below = [_orc_field(child) for child in children(one.type)]
    arrow_type = with_children(one.type, below) if below else one.type
    if pa.types.is_time(arrow_type):
        arrow_type = pa.int64()
    if pa.types.is_fixed_size_binary(arrow_type):
        arrow_type = pa.binary()
    metadata = {} if key is None else {"iceberg.id": str(key)}
    return pa.field(one.name, arrow_type, one.nullable, metadata=metadata)


def write_avro(path: Path, avro: dict[str, Any], rows: list[dict[str, Any]], **options: Any) -> str:
    data = io.BytesIO()
    fastavro.writer(data, avro, rows, **options)
    path.write_bytes(data.getvalue())
    return str(path)


def file_task(location: str, file_format: str = "PARQUET", **facts: Any) -> FileTask:
    size = Path(location).stat().st_size if Path(location).exists() else 0
    given: dict[str, Any] = {
        "file_size_in_bytes": size,
        "record_count": 0,
        "start": 0,
        "length": size,
        "spec_id": 0,
        "partition": {},
    }
    return FileTask(location, file_format, **{**given, **facts})


def context(table: Schema, projection: Schema | None = None, **facts: Any) -> ScanContext:
    return ScanContext(table, projection or table, **{"specs": {}, **facts})


def scan(table: Schema, *files: FileTask | str, **facts: Any) -> list[dict[str, Any]]:
    return scanned(table, *files, **facts).to_pylist()


def scanned(table: Schema, *files: FileTask | str, **facts: Any) -> pa.Table:
    found = context(table, facts.pop("projection", None), **facts)
    tasks = tuple(file_task(file) if isinstance(file, str) else file for file in files)
    batches = list(scan_kernel(ScanTask(found, tasks)))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def vector(path: Path, data_file: str, positions: list[int], *others: list[int]) -> DeleteFile:
    """Return the deletion vector of a data file, in a Puffin file behind some others."""
    blobs = [
        puffin.vector_blob(deletion_vector.BitMap64(one), name)
        for one, name in [*((other, "elsewhere") for other in others), (positions, data_file)]
    ]
    made = puffin.write_puffin(blobs, created_by="rowlake tests")
    path.write_bytes(made.data)
    blob = made.blobs[-1]
    return DeleteFile(
        Content.POSITION_DELETES,
        str(path),
        "PUFFIN",
        len(made.data),
        len(set(positions)),
        referenced_data_file=data_file,
        content_offset=blob.offset,
        content_size_in_bytes=blob.length,
    )


def position_deletes(path: Path, pairs: list[tuple[str, int]]) -> DeleteFile:
    positions: dict[str, list[int]] = {}
    for file, position in sorted(pairs):
        positions.setdefault(file, []).append(position)
    found = {file: np.array(held, np.int64) for file, held in positions.items()}
    made = position_delete.write_positions(str(path), found, STORAGE)
    return DeleteFile(
        Content.POSITION_DELETES, made.location, "PARQUET", made.file_size_in_bytes, len(pairs)
    )


def equality_deletes(path: Path, keys: pa.Table, ids: list[int]) -> DeleteFile:
    write_parquet(path, keys)
    return DeleteFile(
        Content.EQUALITY_DELETES,
        str(path),
        "PARQUET",
        path.stat().st_size,
        keys.num_rows,
        tuple(ids),
    )
