"""How the changes of one data file are materialised; decided per file, at run time.

- every live row goes: the file is removed, nothing is written;
- copy-on-write: the file is rewritten without the rows;
- merge-on-read: a deletion vector (format version 3) or a position delete file (version 2).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Protocol

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.format import Capabilities
    from rowlake.model.view import TableView
    from rowlake.verbs.write import WriteOptions

# With `auto`, a file of which at least this share goes is rewritten: what is left is then cheap to
# copy beside what every later read would have to skip.
REWRITTEN_SHARE = 0.3


class Mode(str, enum.Enum):
    """What was asked for (`write.delete.mode` and its siblings, or the argument `mode`)."""

    AUTO = "auto"
    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


class Deletes(str, enum.Enum):
    """The kind of delete files that was asked for (the argument `deletes`)."""

    AUTO = "auto"
    POSITION = "position"
    EQUALITY = "equality"
    VECTOR = "vector"


# The versions of Iceberg that have each kind, for messages.
_VERSIONS = {Deletes.POSITION: (2,), Deletes.EQUALITY: (2, 3), Deletes.VECTOR: (3,)}


class Holds(Protocol):
    """A view or a handle: what the table may hold."""

    @property
    def can(self) -> Capabilities:
        """What may be written."""


class Way(str, enum.Enum):
    """What is done with one file."""

    REMOVE = "remove"
    REWRITE = "rewrite"
    DELETE_FILE = "delete-file"


def mode_of(asked: str | None, properties: Mapping[str, str], operation: str) -> Mode:
    """Return the mode: the argument, else the table property, else auto."""
    text = asked or properties.get(f"write.{operation}.mode") or Mode.AUTO.value
    try:
        return Mode(text.strip().lower())
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise InvalidStatementError(f"Unknown mode {text!r} (expected one of: {known}).") from None


def deletes_of(asked: str | None, table: Holds, mode: str | None = None) -> Deletes:
    """Return the kind of delete files that an operation asked for, checked against the table.

    Version 1 has none; version 3 has vectors in place of position delete files.
    """
    text = asked or Deletes.AUTO.value
    try:
        found = Deletes(text)
    except ValueError:
        known = ", ".join(kind.value for kind in Deletes)
        raise InvalidStatementError(
            f"Unknown kind of deletes {text!r} (expected one of: {known})."
        ) from None
    if found is Deletes.AUTO:
        return found
    if mode == Mode.COPY_ON_WRITE.value:
        raise InvalidStatementError(
            f"mode={mode!r} writes no delete files, and deletes={text!r} asks for some."
        )
    if not _can_hold(table.can, found):
        versions = " or ".join(str(version) for version in _VERSIONS[found])
        raise UnsupportedFeatureError(
            f"deletes={text!r} needs an Iceberg table of format version {versions}; this table "
            "holds no such deletes. Leave it out, or upgrade an Iceberg table by its property "
            "format-version."
        )
    return found


def _can_hold(can: Capabilities, kind: Deletes) -> bool:
    held = {
        Deletes.POSITION: can.position_deletes,
        Deletes.VECTOR: can.deletion_vectors,
        Deletes.EQUALITY: can.equality_deletes,
    }
    return held[kind]


def mode_for(options: WriteOptions, view: TableView, operation: str) -> Mode:
    """Return the mode of an operation that reads the rows it changes.

    Asking for a kind of delete files asks for them to be written; format version 1 has none.
    """
    mode = mode_of(options.mode, view.properties, operation)
    asked = deletes_of(options.deletes, view, options.mode)
    if asked is Deletes.EQUALITY:
        raise UnsupportedFeatureError(
            f"deletes='equality' is for delete and upsert by key; {operation} reads the rows that "
            "it changes, so it knows their positions."
        )
    if not view.can.row_level_deletes:
        if options.mode == Mode.MERGE_ON_READ.value:
            raise UnsupportedFeatureError(
                f"mode={options.mode!r} needs format version 2 or 3; {view.name} has version 1. "
                "Set the table property format-version, or use copy-on-write."
            )
        return Mode.COPY_ON_WRITE
    return mode if asked is Deletes.AUTO else Mode.MERGE_ON_READ


def granularity_of(properties: Mapping[str, str]) -> str:
    """Return `write.delete.granularity`: one delete file per data file, or per partition."""
    found: Any = properties.get("write.delete.granularity", "file").lower()
    if found not in ("file", "partition"):
        raise InvalidStatementError(
            f"write.delete.granularity is {found!r}; it can be file or partition."
        )
    return str(found)


def way_for(mode: Mode, *, matched: int, live: int) -> Way:
    """Return what to do with a file of which `matched` of `live` rows go."""
    if matched >= live:
        return Way.REMOVE
    if mode is Mode.AUTO:
        return Way.REWRITE if matched >= REWRITTEN_SHARE * live else Way.DELETE_FILE
    return Way.REWRITE if mode is Mode.COPY_ON_WRITE else Way.DELETE_FILE
