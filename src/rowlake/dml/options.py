"""The options of a write, as callers give them: checked, with the session's settings for WAP."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.model.change import Isolation
from rowlake.verbs.wap import audited
from rowlake.verbs.write import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle


def for_write(
    handle: TableHandle, engine: Engine, given: Mapping[str, Any]
) -> tuple[TableHandle, WriteOptions]:
    """Return the table and the options of a write, as the session's settings for WAP ask."""
    return audited(handle, engine, write_options(given), names_branch="branch" in given)


def write_options(given: Mapping[str, Any]) -> WriteOptions:
    """Return options as every write takes them, or say which is unknown."""
    options = known_options(given, WriteOptions)
    if options.get("isolation") is not None:
        options["isolation"] = _isolation(options["isolation"])
    return WriteOptions(**options)


def known_options(given: Mapping[str, Any], kind: type, *more: str) -> dict[str, Any]:
    """Return options, all of which are fields of a dataclass or named here."""
    known = [*(item.name for item in fields(kind)), *more]
    for name in given:
        if name not in known:
            raise InvalidStatementError(
                f"Unknown option {name} (expected one of: {', '.join(sorted(known))})."
            )
    return dict(given)


def _isolation(text: Any) -> Isolation:
    try:
        return Isolation(text)
    except ValueError as error:
        raise InvalidStatementError(
            f"Unknown isolation level {text!r} (expected one of: serializable, snapshot)."
        ) from error
