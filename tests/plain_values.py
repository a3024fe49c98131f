"""Rows as plain values that JSON keeps and that two readers can be compared by."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Return a value of Spark, Arrow or DuckDB in one form."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(timespec="microseconds")
    if isinstance(value, (datetime.date, Decimal)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list) and value and all(_is_pair(one) for one in value):
        return {str(key): plain(one) for key, one in value}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in plain values, in an order of their own."""
    return sorted(map(plain, rows), key=lambda row: json.dumps(row, sort_keys=True))
