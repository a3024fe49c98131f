"""Rows on a terminal: tables for people, JSON and CSV for programs.

Comes in: an Arrow table, or plain `Rows`. Goes out: text on standard output. Progress and messages
go to standard error, so that output can be piped. Plain rows are for commands that should start
quickly: making Arrow arrays of Python values loads pandas, which takes longer than they do.
"""

from __future__ import annotations

import csv
import datetime
import enum
import io
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.cli.json_rows import Rows, json_objects, json_text, plain, with_text_ids
from rowlake.cli.text_table import columns_that_fit, text_table
from rowlake.model.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.health import Health
    from rowlake.model.plan import Plan
    from rowlake.model.report import Report
    from rowlake.model.result import Result


class Output(str, enum.Enum):
    """How rows are shown."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


_RESULT_TYPES = {
    "operation": pa.string(),
    "ran_on": pa.string(),
    "seconds": pa.float64(),
    "skipped": pa.bool_(),
    "phases": pa.map_(pa.string(), pa.float64()),
}
SHOWN_ROWS = 200
WIDTH_OF_A_PIPE = 200


def rows_of(lake: Lake, statement: str) -> pa.Table:
    """Return the rows of a statement; what is too complex for Spark is rowlake's error."""
    from rowlake.query.refusals import refusing_too_complex

    with refusing_too_complex():
        return lake.sql(statement).toArrow()


def show(rows: pa.Table | Rows, output: Output) -> None:
    """Print rows; Parquet goes to standard output as bytes."""
    if output is Output.PARQUET:
        _show_parquet(rows.to_arrow() if isinstance(rows, Rows) else rows)
        return
    found = rows if isinstance(rows, Rows) else _rows_of(rows)
    if output is Output.TABLE:
        _show_table(found)
    elif output is Output.JSON:
        _write_json(json_text(json_objects(found)))
    else:
        text = _csv_text(found)
        _write(printable_lines(text) if sys.stdout.isatty() else text)


def show_result(result: Result, output: Output) -> None:
    """Print what a write did: what is worth knowing for people, every field for programs."""
    if output is Output.TABLE:
        _write_text(result)
        return
    fields = result.to_dict()
    schema = pa.schema([(name, _RESULT_TYPES.get(name, pa.int64())) for name in fields])
    show(Rows(schema, [tuple(fields.values())]), output)


def show_report(report: Report, output: Output, *, verbose: bool = False) -> None:
    """Print what maintenance did: what is worth knowing for people, every field for programs.

    `verbose` lists for people all that the report shows of long lists only the first of.
    """
    if output is Output.TABLE:
        _write_text(report)
        if verbose:
            _write_lists(report)
        return
    fields = {name: _listed(value) for name, value in report.to_dict().items()}
    if output is Output.JSON:
        _write_json(json_text([{name: with_text_ids(name, one) for name, one in fields.items()}]))
        return
    rows = Rows(pa.schema([(name, pa.string()) for name in fields]), [tuple(fields.values())])
    if output is Output.PARQUET:
        texts = tuple(_cell(value, empty="") for value in fields.values())
        rows = Rows(rows.schema, [texts])
    show(rows, output)


def _write_lists(report: Report) -> None:
    for name, value in report.to_dict().items():
        if isinstance(value, (tuple, list)) and value and isinstance(value[0], str):
            _write_text(f"\n{name.replace('_', ' ')}:")
            _write_text("\n".join(f"  {one}" for one in value))


def show_findings(health: Health, output: Output) -> None:
    """Print how a table is: lines for people, all of it as JSON, else a row for each finding."""
    if output is Output.TABLE:
        _write_text(health)
        return
    told = health.to_dict()
    if output is Output.JSON:
        _write_json(json_text([{name: with_text_ids(name, one) for name, one in told.items()}]))
        return
    names = list(told["findings"][0])
    kinds = {"value": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
    show(Rows(schema, [tuple(each.values()) for each in told["findings"]]), output)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value


def show_plan(plan: Plan | str, output: Output) -> None:
    """Print what a write would do: a tree for people, all fields as JSON, else one text."""
    if output is Output.TABLE:
        _write_text(plan)
    elif output is Output.JSON and not isinstance(plan, str):
        fields = plan.to_dict()
        _write_json(json_text([{name: with_text_ids(name, one) for name, one in fields.items()}]))
    else:
        show(Rows(pa.schema([("plan", pa.string())]), [(str(plan),)]), output)


def _rows_of(table: pa.Table) -> Rows:
    columns = [column.to_pylist() for column in table.columns]
    if not columns:
        return Rows(table.schema, [() for _ in range(table.num_rows)])
    return Rows(table.schema, list(zip(*columns, strict=True)))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _write_text(told: object) -> None:
    """Write a text for people; it may quote names and paths of others."""
    _write(printable_lines(str(told)) + "\n")


def _write_json(text: str) -> None:
    _write(printable_json(text) + "\n")


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
    count = len(rows.values)
    shown = rows.values[:SHOWN_ROWS]
    if rows.schema.names:
        cells = [[_cell(value, empty="NULL") for value in row] for row in shown]
        to_right = [_is_number(field.type) for field in rows.schema]
        _write_columns(rows.schema.names, cells, to_right)
    first = f"first {SHOWN_ROWS} of " if count > SHOWN_ROWS else ""
    _write(f"{first}{count:,} row{'' if count == 1 else 's'}\n")


def _write_columns(names: list[str], cells: list[list[str]], to_right: list[bool]) -> None:
    """Write a table; on a terminal only the columns that fit."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        fit = columns_that_fit(names, cells, width)
    else:
        width, fit = WIDTH_OF_A_PIPE, len(names)
    for line in text_table(names[:fit], [row[:fit] for row in cells], to_right[:fit], width):
        _write(line + "\n")
    if fit < len(names):
        _write(f"{fit} of {len(names)} columns (all with --output json or csv)\n")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def _cell(value: Any, *, empty: str) -> str:
    if value is None:
        return empty
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return str(plain(value)) if isinstance(value, bytes) else str(value)
