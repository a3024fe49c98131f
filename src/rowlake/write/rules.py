"""Rows checked against a table's rules, batch by batch, before they are in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from rowlake.errors import InternalError, SchemaMismatchError
from rowlake.scan.filter import mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rowlake.model.row_rules import RowRule


def checked(batch: pa.RecordBatch, rules: Sequence[RowRule]) -> pa.RecordBatch:
    """Return a batch all of whose rows satisfy the rules; raises SchemaMismatchError otherwise."""
    for rule in rules:
        if rule.predicate is None:
            raise InternalError(f"The {rule.name} was not read before rows were written.")
        holds = mask(batch, rule.predicate)
        broken = batch.num_rows - (pc.sum(holds).as_py() or 0)
        if broken:
            row = batch.slice(pc.index(holds, False).as_py(), 1).to_pylist()[0]
            raise SchemaMismatchError(
                f"{broken} of {batch.num_rows} rows do not satisfy the {rule.name} ({rule.text}): "
                f"{str(row)[:200]}. Nothing was written."
            )
    return batch
