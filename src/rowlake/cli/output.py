"""Rows on a terminal: tables for people, JSON and CSV for programs.

Comes in: an Arrow table, or plain `Rows`. Goes out: text on standard output. Progress and messages
go to standard error, so that output can be piped. Plain rows are for commands that should start
quickly: making Arrow arrays of Python values loads pandas, which takes longer than they do.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import enum
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


class Output(str, enum.Enum):
    """How rows are shown."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


SHOWN_ROWS = 200


@dataclass(frozen=True)
class Rows:
    """Rows of Python values, with the Arrow types of their columns."""

    schema: pa.Schema
    values: list[tuple[Any, ...]]

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        names = self.schema.names
        return pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in self.values], self.schema
        )


def show(rows: pa.Table | Rows, output: Output) -> None:
    """Print rows; Parquet goes to standard output as bytes."""
    if output is Output.PARQUET:
        _show_parquet(rows.to_arrow() if isinstance(rows, Rows) else rows)
        return
    found = rows if isinstance(rows, Rows) else _rows_of(rows)
    if output is Output.TABLE:
        _show_table(found)
    elif output is Output.JSON:
        names = found.schema.names
        objects = [dict(zip(names, row, strict=True)) for row in found.values]
        _write(json.dumps(objects, default=plain, indent=2, ensure_ascii=False) + "\n")
    else:
        _write(_csv_text(found))


def _rows_of(table: pa.Table) -> Rows:
    columns = [column.to_pylist() for column in table.columns]
    if not columns:
        return Rows(table.schema, [() for _ in range(table.num_rows)])
    return Rows(table.schema, list(zip(*columns, strict=True)))


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, datetime.timedelta)):
        return str(value)
    return str(value)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _csv_text(rows: Rows) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows.schema.names)
    for row in rows.values:
        writer.writerow([_cell(value, empty="") for value in row])
    return buffer.getvalue()


def _show_parquet(rows: pa.Table) -> None:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    sys.stdout.buffer.write(sink.getvalue())
    sys.stdout.buffer.flush()


def _show_table(rows: Rows) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        right = is_number or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if right else "left", overflow="fold")
    count = len(rows.values)
    for row in rows.values[:SHOWN_ROWS]:
        table.add_row(*[_cell(value, empty="NULL") for value in row])
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table, markup=False)
    if count > SHOWN_ROWS:
        console.print(f"first {SHOWN_ROWS} of {count:,} rows", markup=False)
    else:
        console.print(f"{count:,} row{'' if count == 1 else 's'}", markup=False)


def _cell(value: Any, *, empty: str) -> str:
    if value is None:
        return empty
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return str(plain(value)) if isinstance(value, bytes) else str(value)
