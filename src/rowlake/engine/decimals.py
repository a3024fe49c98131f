"""Decimals on their way from Spark to Python: as whole numbers of their last place.

Spark makes Arrow's decimals through objects and big integers, value by value. With up to 15
digits the whole number comes out exactly through a double: dividing by a power of ten and
multiplying by it again errs by less than a quarter, and rounding takes that away. Imports pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rowlake.engine.worker import DecimalColumn

MOST_DIGITS = 15


def decimal_columns(schema: Any) -> tuple[DecimalColumn, ...]:
    """Return (place, precision, scale) of the columns that can travel as whole numbers."""
    if len({field.name.lower() for field in schema.fields}) < len(schema.fields):
        return ()  # columns of one name cannot be told apart
    kinds = [(place, field.dataType) for place, field in enumerate(schema.fields)]
    return tuple(
        (place, kind.precision, kind.scale)
        for place, kind in kinds
        if kind.typeName() == "decimal"
        and kind.precision <= MOST_DIGITS
        and 0 <= kind.scale <= MOST_DIGITS
    )


def with_whole_numbers(df: DataFrame, decimals: tuple[DecimalColumn, ...]) -> DataFrame:
    """Return the rows with these columns as whole numbers (`worker.with_decimals` turns back)."""
    names = [f"`{name.replace('`', '``')}`" for name in df.columns]
    columns = [f.col(name) for name in names]
    for place, _, scale in decimals:
        places = f.lit(float(10**scale))
        whole = f.rint(columns[place].cast("double") * places).cast("bigint")
        columns[place] = whole.alias(df.columns[place])
    return df.select(*columns)
