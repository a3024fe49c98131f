"""Writes one manifest whose entries are in memory. Arguments: system, target, entries.

The entries are those of java/IcebergCore.java: one partition field, five columns of statistics.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.children.report import timed
from bench.data import DATES, FIRST_DATE

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = {
    "ss_ticket_number": "long",
    "ss_item_sk": "long",
    "ss_sold_date_sk": "int",
    "ss_quantity": "int",
    "ss_note": "string",
}

SPEC_FIELDS = [
    {"source-id": 3, "field-id": 1000, "name": "ss_sold_date_sk", "transform": "identity"}
]


def bounds(i: int, date: int) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return the lower and upper bounds of file i, encoded as the spec says."""
    long, integer = struct.Struct("<q").pack, struct.Struct("<i").pack
    lower = {1: long(i * 1000), 2: long(i % 997), 3: integer(date), 4: integer(1)}
    upper = {1: long(i * 1000 + 999), 2: long(204000 - i % 991), 3: integer(date), 4: integer(100)}
    return lower | {5: b"aa%d" % (i * 7919)}, upper | {5: b"zz%d" % (i * 104729)}


def file_values(i: int, n: int) -> dict[str, Any]:
    """Return the columns of data file i of n."""
    date = FIRST_DATE + i * DATES // n
    lower, upper = bounds(i, date)
    return {
        "location": f"file:/bench/data/ss_sold_date_sk={date}/00000-{i}-5f6c1e0a.parquet",
        "date": date,
        "record_count": 10_000,
        "file_size_in_bytes": 200_000 + i % 4096,
        "column_sizes": {field: 40_000 + i % 5_000 + field for field in range(1, 6)},
        "value_counts": dict.fromkeys(range(1, 6), 10_000),
        "null_value_counts": dict.fromkeys(range(1, 6), 0),
        "lower_bounds": lower,
        "upper_bounds": upper,
    }


def pyiceberg_writer(target: Path, n: int) -> Callable[[], None]:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
        write_manifest,
    )
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import NestedField

    fields = [
        NestedField(field_id=number, name=name, field_type=kind, required=False)
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    ]
    schema = Schema(*fields)
    spec = PartitionSpec(
        PartitionField(
            source_id=3, field_id=1000, transform=IdentityTransform(), name="ss_sold_date_sk"
        )
    )

    def entry(i: int) -> ManifestEntry:
        values = file_values(i, n)
        data_file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=values.pop("location"),
            file_format=FileFormat.PARQUET,
            partition=Record(values.pop("date")),
            **values,
        )
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=7, data_file=data_file
        )

    entries = [entry(i) for i in range(n)]
    output = PyArrowFileIO().new_output(str(target))

    def write() -> None:
        with write_manifest(2, spec, schema, output, 7, "deflate") as writer:
            for one in entries:
                writer.add_entry(one)

    return write


def rowlake_writer(target: Path, n: int) -> Callable[[], None]:
    import pyarrow as pa

    from rowlake.iceberg.manifest_writer import ManifestHeader, write_manifest
    from rowlake.model.files import files_schema
    from rowlake.storage.files import Storage

    date = pa.field("ss_sold_date_sk", pa.int32(), metadata={"PARQUET:field_id": "1000"})
    layout = files_schema(pa.struct([date]))
    header = ManifestHeader(2, 0, 7, 0, json.dumps(iceberg_schema()), json.dumps(SPEC_FIELDS))
    entries = pa.Table.from_pylist([entry_row(i, n) for i in range(n)], schema=layout)
    storage = Storage({})

    def write() -> None:
        write_manifest(str(target), entries, header, storage)

    return write


def entry_row(i: int, n: int) -> dict[str, Any]:
    """Return an added entry with the columns of rowlake's layout; absent ones are null."""
    values = file_values(i, n)
    maps = {
        key: list(value.items()) if isinstance(value, dict) else value
        for key, value in values.items()
        if key != "date"
    }
    partition = {"ss_sold_date_sk": values["date"]}
    return {
        **maps,
        "status": 1,
        "snapshot_id": 7,
        "content": 0,
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": partition,
    }


def iceberg_schema() -> dict[str, Any]:
    fields = [
        {"id": number, "name": name, "type": kind, "required": False}
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def main(system: str, target: str, entries: str) -> None:
    makers = {"pyiceberg": pyiceberg_writer, "rowlake": rowlake_writer}
    write = makers[system](Path(target), int(entries))
    cost, _ = timed(write)
    print(json.dumps(cost))


if __name__ == "__main__":
    main(*sys.argv[1:])
