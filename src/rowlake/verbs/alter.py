"""Changes to a table's metadata: properties, schema, partition spec, sort order.

Comes in: a table handle. Goes out: the handle after the commit. Schema and spec changes go through
PyIceberg's builders, which hold the rules of evolution; their complaints become ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.tables import load_table
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.iceberg import updates
from rowlake.model.properties import validate_no_secrets
from rowlake.secrets import cause_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import OrderBy


# PyIceberg's own errors for changes that it refuses.
REFUSALS = frozenset({"ValidationError", "ValidationException", "ResolveError"})


def set_properties(handle: TableHandle, properties: Mapping[str, str]) -> TableHandle:
    """Set properties; `format-version` upgrades the table instead of being stored."""
    validate_no_secrets(properties)
    return commit_metadata(
        handle, "set properties", lambda found: updates.set_properties(found, properties)
    )


def unset_properties(handle: TableHandle, names: Sequence[str]) -> TableHandle:
    """Remove properties."""
    return commit_metadata(
        handle, "unset properties", lambda found: updates.unset_properties(found, names)
    )


def set_sort_order(handle: TableHandle, order: Sequence[OrderBy]) -> TableHandle:
    """Set the order that new files are written in; none means unsorted."""
    return commit_metadata(
        handle, "set sort order", lambda found: updates.set_sort_order(found, order)
    )


def change_schema(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the schema with PyIceberg's `UpdateSchema` builder, in one commit."""
    return _built(handle, lambda table: table.update_schema(case_sensitive=False), change)


def change_spec(handle: TableHandle, change: Callable[[Any], None]) -> TableHandle:
    """Change the partition spec with PyIceberg's `UpdateSpec` builder, in one commit."""
    return _built(handle, lambda table: table.update_spec(case_sensitive=False), change)


def _built(
    handle: TableHandle, builder_of: Callable[[Any], Any], change: Callable[[Any], None]
) -> TableHandle:
    try:
        with builder_of(handle.to_pyiceberg()) as builder:
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
