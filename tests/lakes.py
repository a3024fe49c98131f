"""Small lakes for tests that need no Spark: tables, rows, and what a table holds."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake import Lake, connect
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from pathlib import Path

SALES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("store", pa.int32()),
        pa.field("sold_on", pa.date32()),
        pa.field("amount", pa.decimal128(9, 2)),
        pa.field("note", pa.string()),
    ]
)


def make_lake(folder: Path) -> Lake:
    return connect(warehouse=str(folder))


def sales(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "store": pa.array([i % 4 for i in ids], pa.int32()),
            "sold_on": pa.array(
                [datetime.date(2024, 1, 1) + datetime.timedelta(days=i % 90) for i in ids]
            ),
            "amount": pa.array(ids, pa.int64())
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(9, 2)),
            "note": pa.array([None if i % 7 == 0 else f"note {i}" for i in ids]),
        },
        schema=SALES,
    )


def rows_of(table: pa.Table) -> list[tuple]:
    """Return rows as tuples, in an order that does not depend on files."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def files_in(location: str) -> set[str]:
    """Return every file below a table's location."""
    return {found.location for found in Storage({}).list(location)}
