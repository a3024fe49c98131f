"""Who takes an operation that is ready: `change_rows` runs it, `explain_change` explains it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rowlake.engine.spark import Engine
from rowlake.model.handle import TableHandle
from rowlake.rowlevel.operation import RowChange
from rowlake.verbs.write import WriteOptions

T = TypeVar("T")
Run = Callable[[TableHandle, Engine, RowChange, WriteOptions], T]
