"""Schema and spec changes through PyIceberg's builders, which hold the rules of evolution."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyiceberg.types import IcebergType

from rowlake.catalog.tables import load_table
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.iceberg.evolution import validate_promotion
from rowlake.iceberg.schema import type_from_json
from rowlake.model.names import quoted
from rowlake.model.reserved_columns import validate_column_name
from rowlake.secrets import cause_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.catalog.handle import IcebergHandle

# Errors of what PyIceberg stands on, for changes that it refuses.
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
        if isinstance(error, (ValueError, TypeError)) or _is_refusal(error):
            raise InvalidStatementError(f"Cannot change {handle.name}: {text}") from cause
        raise
    return load_table(handle.catalog, handle.identifier)


def _is_refusal(error: Exception) -> bool:
    kind = type(error)
    return kind.__name__ in REFUSALS or kind.__module__.startswith("pyiceberg")


@contextmanager
def _builder(handle: IcebergHandle, what: str) -> Iterator[Any]:
    table = handle.to_pyiceberg()
    if what == "spec":
        with table.update_spec(case_sensitive=False) as builder:
            yield builder
        return
    with table.update_schema(case_sensitive=False) as builder:
        yield SchemaBuilder(handle, builder)


class SchemaBuilder:
    """PyIceberg's schema builder that takes types as the spec's JSON, and checks promotions."""

    def __init__(self, handle: IcebergHandle, builder: Any) -> None:
        self._handle = handle
        self._builder = builder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)

    def add_column(self, path: Any, kind: Any, *more: Any, **others: Any) -> None:
        """Add a column or a field of a struct."""
        levels = (path,) if isinstance(path, str) else tuple(path)
        if len(levels) == 1:
            validate_column_name(levels[0])
        self._builder.add_column(path, _type(kind), *more, **others)

    def rename_column(self, path: Any, name: str) -> None:
        """Rename a column or a field of a struct."""
        levels = path.split(".") if isinstance(path, str) else tuple(path)
        if len(levels) == 1:
            validate_column_name(name)
        self._builder.rename_column(path, name)

    def update_column(self, path: Any, kind: Any = None, doc: str | None = None) -> None:
        """Change the type or the comment of a column; a type that loses values is refused."""
        wanted = None if kind is None else _type(kind)
        if wanted is not None:
            levels = (path,) if isinstance(path, str) else tuple(path)
            metadata = self._handle.metadata
            found = metadata.schema().find_type(".".join(levels))
            validate_promotion(quoted(levels), found, wanted, metadata.format_version)
        self._builder.update_column(path, wanted, doc=doc)


def _type(kind: Any) -> IcebergType:
    return kind if isinstance(kind, IcebergType) else type_from_json(kind)
