"""Identity columns: values for rows that lack them, and how far these have come.

Each value is used once: beyond the high-water mark that the view has, and the mark moves in the
commit that adds the rows. Who loses a race to another writer's values is planned again, with new
ones. Rows of the driver are numbered in their order; rows of Spark in as many interleaved rows of
numbers as there are tasks, so that some numbers may be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.engine.failures import REFUSED_ROW
from rowlake.errors import SchemaMismatchError, UnsupportedFeatureError
from rowlake.model.change import MovedMark
from rowlake.model.column_rules import identity_columns
from rowlake.model.schema import field_id
from rowlake.model.values import decode
from rowlake.sources.rows import ArrowSource, SparkSource
from rowlake.sqltext.lexer import quote, string_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.column_rules import Identity
    from rowlake.model.view import TableView
    from rowlake.sources.rows import Source

_LEAST, _MOST = -(2**63), 2**63 - 1
# The lower bits of Spark's `monotonically_increasing_id` count the rows of a partition.
_ROW_BITS = (1 << 33) - 1


def missing_identities(view: TableView, given: Iterable[str]) -> dict[str, Identity]:
    """Return the identity columns that rows lack; refuse values that users must not give."""
    names, found = set(given), identity_columns(view.schema.arrow)
    for name, identity in found.items():
        if name in names and not identity.allows_explicit:
            raise SchemaMismatchError(
                f"Cannot write values to column {name} of {view.name}: it is GENERATED ALWAYS AS "
                "IDENTITY. Leave the column out.",
                column=name,
            )
    return {name: identity for name, identity in found.items() if name not in names}


def numbered(source: Source, missing: Mapping[str, Identity], engine: Engine) -> Source:
    """Return rows with values for the identity columns that they lack."""
    if not missing:
        return source
    if not isinstance(source, ArrowSource):
        return SparkSource(numbered_frame(source.frame, missing, engine))
    fields = [*source.schema, *(pa.field(name, pa.int64()) for name in missing)]
    schema = pa.schema(fields)
    return ArrowSource(schema, _numbered(source.batches, missing, schema))


def _numbered(
    batches: Iterator[pa.RecordBatch], missing: Mapping[str, Identity], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        columns = [_values(name, one, done, len(batch)) for name, one in missing.items()]
        done += len(batch)
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)


def _values(name: str, identity: Identity, done: int, count: int) -> pa.Array:
    first = identity.following + done * identity.step
    last = first + max(count - 1, 0) * identity.step
    if not _LEAST <= first <= _MOST or not _LEAST <= last <= _MOST:
        raise SchemaMismatchError(f"Identity column {name} has no values left.", column=name)
    return pa.array(first + np.arange(count, dtype=np.int64) * np.int64(identity.step))


def numbered_frame(frame: Any, missing: Mapping[str, Identity], engine: Engine) -> Any:
    """Return a DataFrame with one more column for each identity column."""
    if not missing:
        return frame
    parts = max(1, engine.parallelism)
    row = f"CAST((monotonically_increasing_id() & {_ROW_BITS}L) * {parts}L + spark_partition_id()"
    counted = frame.repartition(parts).selectExpr(
        "*", f"{row} AS DECIMAL(38, 0)) AS {quote(_COUNT)}"
    )
    values = [f"{_value(name, identity)} AS {quote(name)}" for name, identity in missing.items()]
    return counted.selectExpr(*[quote(name) for name in frame.columns], *values)


_COUNT = "__rowlake_count"


def _value(name: str, identity: Identity) -> str:
    value = f"({identity.following}BD + {identity.step}BD * {quote(_COUNT)})"
    told = string_literal(f"{REFUSED_ROW}identity column {name} has no values left")
    return (
        f"CASE WHEN {value} BETWEEN {_LEAST}BD AND {_MOST}BD THEN CAST({value} AS BIGINT) "
        f"ELSE CAST(raise_error({told}) AS BIGINT) END"
    )


def moved_marks(
    written: pa.Table, made: Mapping[str, Identity], view: TableView
) -> tuple[MovedMark, ...]:
    """Return the high-water marks after data files were written; only those that move."""
    found = []
    for name, identity in made.items():
        side = "upper_bounds" if identity.step > 0 else "lower_bounds"
        number = field_id(view.schema.arrow.field(name))
        bounds = [dict(one or ()).get(number) for one in written[side].to_pylist()]
        encoded = pa.array([one for one in bounds if one is not None], pa.binary())
        if written.num_rows and not len(encoded):
            raise UnsupportedFeatureError(
                f"Cannot write to {view.name}: nobody can tell how far its identity column {name} "
                "has come. Nothing was written."
            )
        mark = identity.furthest(decode(encoded, pa.int64()).to_pylist())
        if mark is not None and mark != identity.mark:
            found.append(MovedMark(name, identity.mark, mark))
    return tuple(found)
