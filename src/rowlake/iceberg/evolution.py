"""Which types a column may change to (spec, Schema Evolution); PyIceberg lets more through."""

from __future__ import annotations

from pyiceberg import types as iceberg

from rowlake.errors import InvalidStatementError

_PROMOTED = {
    (iceberg.IntegerType, iceberg.LongType),
    (iceberg.FloatType, iceberg.DoubleType),
}
_PROMOTED_IN_V3 = {
    (iceberg.DateType, iceberg.TimestampType),
    (iceberg.DateType, iceberg.TimestampNanoType),
}


def validate_promotion(
    column: str, found: iceberg.IcebergType, wanted: iceberg.IcebergType, format_version: int
) -> None:
    """Refuse a change of type that would not keep every value."""
    if found == wanted:
        return
    pair = (type(found), type(wanted))
    is_wider_decimal = (
        isinstance(found, iceberg.DecimalType)
        and isinstance(wanted, iceberg.DecimalType)
        and found.scale == wanted.scale
        and found.precision <= wanted.precision
    )
    is_v3 = format_version >= 3 and (
        pair in _PROMOTED_IN_V3 or isinstance(found, iceberg.UnknownType)
    )
    if not (pair in _PROMOTED or is_wider_decimal or is_v3):
        raise InvalidStatementError(
            f"Cannot change column {column} from {found} to {wanted}: only int to long, float to "
            "double and decimals to a higher precision keep every value."
        )
