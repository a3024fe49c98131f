"""Rows on a terminal: tables for people, JSON and CSV for programs.

Comes in: an Arrow table. Goes out: text on standard output. Progress and messages go to standard
error, so that output can be piped.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import enum
import io
import json
import sys
from typing import Any

import pyarrow as pa


class Output(str, enum.Enum):
    """How rows are shown."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


SHOWN_ROWS = 200


def show(rows: pa.Table, output: Output) -> None:
    """Print rows; Parquet goes to standard output as bytes."""
    if output is Output.TABLE:
        _show_table(rows)
    elif output is Output.JSON:
        _write(json.dumps(rows.to_pylist(), default=plain, indent=2, ensure_ascii=False) + "\n")
    elif output is Output.CSV:
        _write(_csv_text(rows))
    else:
        _show_parquet(rows)


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


def _csv_text(rows: pa.Table) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows.column_names)
    for row in zip(*[column.to_pylist() for column in rows.columns], strict=True):
        writer.writerow([_cell(value, empty="") for value in row])
    return buffer.getvalue()


def _show_parquet(rows: pa.Table) -> None:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    sys.stdout.buffer.write(sink.getvalue())
    sys.stdout.buffer.flush()


def _show_table(rows: pa.Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        right = is_number or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if right else "left", overflow="fold")
    shown = rows.slice(0, SHOWN_ROWS)
    for row in zip(*[column.to_pylist() for column in shown.columns], strict=True):
        table.add_row(*[_cell(value, empty="NULL") for value in row])
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table, markup=False)
    if rows.num_rows > SHOWN_ROWS:
        console.print(f"first {SHOWN_ROWS} of {rows.num_rows:,} rows", markup=False)
    else:
        console.print(f"{rows.num_rows:,} row{'' if rows.num_rows == 1 else 's'}", markup=False)


def _cell(value: Any, *, empty: str) -> str:
    if value is None:
        return empty
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return str(plain(value)) if isinstance(value, bytes) else str(value)
