"""Small lakes for tests that need no Spark: tables, rows, and what a table holds."""

from __future__ import annotations

import datetime
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake import Lake, connect
from rowlake.catalog.open import open_catalog
from rowlake.connection import statements
from rowlake.storage.files import Storage
from rowlake.workspace import Workspace
from tests.delta_lake import delta_lake
from tests.memory_format.lake import forget_stores, memory_lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowlake.engine.spark import Engine

SALES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("store", pa.int32()),
        pa.field("sold_on", pa.date32()),
        pa.field("amount", pa.decimal128(9, 2)),
        pa.field("note", pa.string()),
    ]
)


_format = "iceberg"


def make_lake(folder: Path, *, catalog: str | None = None, engine: Engine | None = None) -> Lake:
    """Open the lake of a folder; `using_format` says of which format its tables are."""
    if _format == "delta" and catalog is None:
        return delta_lake(str(folder), engine)
    if _format == "memory" and catalog is None:
        return memory_lake(str(folder), engine)
    if engine is None:
        return connect(str(folder), catalog)
    return Lake(Workspace(open_catalog(str(folder), catalog), engine), statements)


@contextmanager
def using_format(name: str) -> Iterator[None]:
    """Have lakes of this table format made inside the block."""
    global _format
    before, _format = _format, name
    try:
        yield
    finally:
        _format = before
        forget_stores()


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
