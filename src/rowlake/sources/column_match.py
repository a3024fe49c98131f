"""Columns of incoming rows -> columns of the table, by name.

An exact name wins over one that differs in case. A column that the table lacks, two columns for
one of the table's, or a required column without a value are errors, raised before a row is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import SchemaMismatchError, shown
from rowlake.model.column_rules import is_made

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.model.view import TableView


def matched_names(names: Sequence[str], view: TableView) -> list[tuple[str, int]]:
    """Return (the table's name, index of the incoming column), in the table's order."""
    found: dict[str, int] = {}
    for index, name in enumerate(names):
        target = view.schema.find((name,))
        if target is None:
            raise SchemaMismatchError(
                f"Table {view.name} has no column {name}; it has {shown(view.schema.arrow.names)}. "
                "Add the column first (ALTER TABLE … ADD COLUMN), or leave it out.",
                column=name,
            )
        if target.name in found:
            raise SchemaMismatchError(
                f"Two incoming columns go to column {target.name} of {view.name}.",
                column=target.name,
            )
        found[target.name] = index
    for field in view.schema.arrow:
        if field.name not in found and not field.nullable and not is_made(field):
            raise SchemaMismatchError(
                f"Column {field.name} of {view.name} is required, and the rows do not have it.",
                column=field.name,
            )
    return [(name, found[name]) for name in view.schema.arrow.names if name in found]


def matched_batches(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], view: TableView
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the table's names, in the table's order."""
    pairs = matched_names(schema.names, view)
    names = [name for name, _ in pairs]
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(index) for _, index in pairs], names=names)


def matched_frame(frame: Any, view: TableView) -> Any:
    """Return a Spark DataFrame with the table's names, in the table's order."""
    pairs = matched_names(frame.columns, view)
    renamed = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
    return renamed.select(*[renamed[f"c{index}"].alias(name) for name, index in pairs])
