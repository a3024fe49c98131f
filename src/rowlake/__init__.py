"""Row-level work on lakehouse tables (Iceberg and Delta Lake), in Python, on Spark, with no jars.

    from decimal import Decimal
    import rowlake

    with rowlake.connect() as lake:                      # SQLite catalog and files in ./lakehouse
        lake.create_namespace("shop", if_not_exists=True)
        lake.sql("CREATE TABLE shop.sales (id bigint, amount decimal(9, 2))")
        lake.table("shop.sales").append([{"id": 1, "amount": Decimal("9.90")}])
        lake.sql("SELECT sum(amount) FROM shop.sales").show()

Names are loaded at their first use, so that importing rowlake is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rowlake.version import __version__ as __version__

if TYPE_CHECKING:
    from rowlake.attached.session import attach
    from rowlake.connection import connect
    from rowlake.errors import (
        CardinalityError,
        CommitConflictError,
        CommitStateUnknownError,
        CorruptTableError,
        EngineError,
        InternalError,
        InvalidStatementError,
        RowlakeError,
        SchemaMismatchError,
        StorageError,
        TableNotFoundError,
        UnsupportedFeatureError,
    )
    from rowlake.lake import Lake
    from rowlake.model.health import Health
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.table import Table
    from rowlake.transaction import Transaction


__all__ = [
    "CardinalityError",
    "CommitConflictError",
    "CommitStateUnknownError",
    "CorruptTableError",
    "EngineError",
    "Health",
    "InternalError",
    "InvalidStatementError",
    "Lake",
    "Plan",
    "Result",
    "RowlakeError",
    "SchemaMismatchError",
    "StorageError",
    "Table",
    "TableNotFoundError",
    "Transaction",
    "UnsupportedFeatureError",
    "attach",
    "connect",
]

_HOMES = {
    "Health": "rowlake.model.health",
    "Lake": "rowlake.lake",
    "Plan": "rowlake.model.plan",
    "Result": "rowlake.model.result",
    "Table": "rowlake.table",
    "Transaction": "rowlake.transaction",
    "attach": "rowlake.attached.session",
    "connect": "rowlake.connection",
    "load_ipython_extension": "rowlake.notebook",  # what %load_ext looks for
}


def __getattr__(name: str) -> Any:
    if name not in __all__ and name not in _HOMES:
        raise AttributeError(f"module 'rowlake' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES.get(name, "rowlake.errors")), name)
    globals()[name] = found
    return found
