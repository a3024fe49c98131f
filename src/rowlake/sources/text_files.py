"""Small CSV and JSON files, read here: columns that the table has keep the texts of the file.

A reader that guesses types loses leading zeros and decimals; here the table says what a text means
(`rowlake.sources.fit` casts it). Other columns get the type that they look like. Large files,
folders and remote ones are Spark's to read.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc_csv

from rowlake.errors import InvalidStatementError
from rowlake.sources.fit import wanted_fields
from rowlake.sources.plain_parquet import SMALL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def read_texts(path: str, kind: str, like: pa.Schema) -> pa.Table | None:
    """Return the rows of a small file of this machine; None for any other."""
    place = Path(path)
    if kind not in ("csv", "json") or "://" in path or not place.is_file():
        return None
    if place.stat().st_size > SMALL_BYTES:
        return None
    try:
        return _csv(place, like) if kind == "csv" else _json(place)
    except (pa.ArrowException, UnicodeDecodeError, ValueError) as wrong:
        raise InvalidStatementError(f"Cannot read rows from {path}: {wrong}") from wrong


def _csv(place: Path, like: pa.Schema) -> pa.Table:
    parsed = pc_csv.ParseOptions(newlines_in_values=True)
    with pc_csv.open_csv(
        place, parse_options=parsed, convert_options=pc_csv.ConvertOptions(null_values=[""])
    ) as head:
        names = head.schema.names
    known = wanted_fields(names, like)
    return pc_csv.read_csv(
        place,
        parse_options=parsed,
        convert_options=pc_csv.ConvertOptions(
            column_types={names[at]: pa.string() for at in known},
            # As Spark does: nothing is NULL, "" is an empty text.
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )


def _json(place: Path) -> pa.Table:
    text = place.read_text(encoding="utf-8-sig")
    try:
        return _table(list(_objects(text, place, Decimal)))
    except (pa.ArrowException, ArithmeticError):  # such as 1e300
        return _table(list(_objects(text, place, float)))


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_values([row.get(name) for row in rows]) for name in names]
    return pa.table(columns, names=names)


def _objects(text: str, place: Path, number: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file: one a line, or one list of them."""
    if text.lstrip().startswith("["):
        found = json.loads(text, parse_float=number)
    else:
        lines = [line for line in text.split("\n") if line.strip()]
        found = [json.loads(line, parse_float=number) for line in lines]
    for row, one in enumerate(found, start=1):
        if not isinstance(one, dict):
            raise ValueError(f"row {row:,} of {place.name} is no JSON object")
        yield one


def _values(values: list[Any]) -> pa.Array:
    """Return a column in the type that it shows; numbers with and without a point are decimals."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if any(isinstance(value, Decimal) for value in values):
            return pa.array([Decimal(v) if isinstance(v, int) else v for v in values])
        raise
