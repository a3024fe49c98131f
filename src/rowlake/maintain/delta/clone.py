"""CREATE TABLE … SHALLOW | DEEP CLONE: a new Delta table with the rows of another's version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow.compute as pc

from rowlake.catalog.backend import backend_of
from rowlake.catalog.foreign_names import validate_can_hold
from rowlake.catalog.formats import add_name, path_in, table_exists
from rowlake.delta.clone import clone_of, copies_of, first_actions, located
from rowlake.delta.create import first_version, staged_table
from rowlake.delta.load import folder_of
from rowlake.delta.new_version import Saying, new_token, token_text
from rowlake.delta.operations import Told
from rowlake.errors import CommitStateUnknownError, InvalidStatementError
from rowlake.maintain.delta.copy_kernel import COPIED, CopyTask, copy_kernel
from rowlake.maintain.delta.handles import delta_handle
from rowlake.model.properties import validate_no_secrets
from rowlake.model.report import Report
from rowlake.secrets import redacted_repr
from rowlake.verbs.create import already_there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.clone import Cloned
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.names import Identifier

VERB = "CLONE"
FILES_PER_TASK = 32


@dataclass(frozen=True)
class CloneTo:
    """The clone to make: of which version, where, and with which properties of its own."""

    identifier: Identifier
    shallow: bool
    version: int
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        """Refuse secrets."""
        validate_no_secrets(self.properties)


@dataclass(frozen=True)
class CloneReport(Report):
    """What cloning did; the names are those of Delta's own result."""

    always_shown: ClassVar[tuple[str, ...]] = ("source_num_of_files", "num_copied_files")

    source_table_size: int = 0
    source_num_of_files: int = 0
    num_removed_files: int = 0
    num_copied_files: int = 0
    removed_files_size: int = 0
    copied_files_size: int = 0


def clone_table(
    source: TableHandle, engine: Engine, to: CloneTo
) -> tuple[TableHandle, CloneReport]:
    """Create a table with the rows of a version of another; a deep clone has copies of its files.

    Raises InvalidStatementError where there is a table, or files, at the place of the clone.
    """
    table = delta_handle(source, VERB)
    if table_exists(table.catalog, to.identifier):
        raise already_there(to.identifier)
    cloned = clone_of(table, to.version, to.properties)
    location = _location(source, to)
    staged = staged_table(table.catalog, to.identifier, location, cloned.defined)
    copies = {} if to.shallow else copies_of(cloned, staged.folder)
    copied_bytes = _copied(engine, copies, table.io_properties, cloned)
    files = located(cloned, staged.folder, copies)
    report = _report(cloned, copies, copied_bytes)
    parameters = {
        "source": table.name,
        "sourceVersion": to.version,
        "isShallow": to.shallow,
    }
    saying = Saying(Told(VERB, parameters, _metrics(report)), token_text(new_token()))
    try:
        landed = first_version(staged, first_actions(cloned, files, staged.folder), saying)
    except CommitStateUnknownError:
        raise  # the clone may be there, with its files
    except BaseException:
        staged.storage.delete(copies.values())
        raise
    add_name(landed)
    return landed, report


def _location(source: TableHandle, to: CloneTo) -> str:
    path = path_in(to.identifier)
    if path is not None:
        if to.location is not None and folder_of(to.location) != folder_of(path):
            raise InvalidStatementError(f"LOCATION {to.location} contradicts the path {path}.")
        return path
    validate_can_hold(source.catalog, to.identifier)
    found = to.location or backend_of(source.catalog).default_location(to.identifier)
    if found is None:
        raise InvalidStatementError("The clone has no location: name one.")
    return found


def _copied(
    engine: Engine, copies: Mapping[str, str], io_properties: Mapping[str, str], cloned: Cloned
) -> int:
    """Copy files; those of a run that fails are removed."""
    pairs = list(copies.items())
    starts = range(0, len(pairs), FILES_PER_TASK)
    tasks = [CopyTask(tuple(pairs[at : at + FILES_PER_TASK]), io_properties) for at in starts]
    if not tasks:
        return 0
    try:
        done = engine.run(
            copy_kernel,
            tasks,
            COPIED,
            size_in_bytes=_bytes(cloned),
            label=f"copying {cloned.source.name}",
        )
    except BaseException:
        cloned.source.storage.delete(copies.values())
        raise
    return int(pc.sum(done["size"]).as_py() or 0)


def _report(cloned: Cloned, copies: Mapping[str, str], copied_bytes: int) -> CloneReport:
    return CloneReport(
        source_table_size=_bytes(cloned),
        source_num_of_files=cloned.files.num_rows,
        num_copied_files=len(copies),
        copied_files_size=copied_bytes,
    )


def _metrics(report: CloneReport) -> dict[str, Any]:
    return {
        "sourceTableSize": report.source_table_size,
        "sourceNumOfFiles": report.source_num_of_files,
        "numRemovedFiles": report.num_removed_files,
        "numCopiedFiles": report.num_copied_files,
        "removedFilesSize": report.removed_files_size,
        "copiedFilesSize": report.copied_files_size,
    }


def _bytes(cloned: Cloned) -> int:
    return int(pc.sum(cloned.files["size"]).as_py() or 0)
