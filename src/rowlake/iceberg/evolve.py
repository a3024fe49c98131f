"""Schema and spec changes through PyIceberg's builders, which hold the rules of evolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.tables import load_table
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.secrets import cause_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.catalog.handle import IcebergHandle

# PyIceberg's own errors for changes that it refuses.
REFUSALS = frozenset({"ValidationError", "ValidationException", "ResolveError"})


def evolve(handle: IcebergHandle, what: str, change: Callable[[Any], None]) -> IcebergHandle:
    """Change the schema or the spec in one commit; the builders' complaints become ours."""
    try:
        with _builder(handle, what) as builder:
            change(builder)
    except RowlakeError:
        raise
    except Exception as error:
        cause = cause_without_secrets(error, handle.catalog.properties)
        text = without_secrets(str(error), handle.catalog.properties)
        if isinstance(error, (ValueError, TypeError)) or type(error).__name__ in REFUSALS:
            raise InvalidStatementError(f"Cannot change {handle.name}: {text}") from cause
        raise
    return load_table(handle.catalog, handle.identifier)


def _builder(handle: IcebergHandle, what: str) -> Any:
    table = handle.to_pyiceberg()
    build = table.update_schema if what == "schema" else table.update_spec
    return build(case_sensitive=False)
