"""New Delta tables: version 0 of a log, written now or with the first rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.delta.actions import Actions
from rowlake.delta.commit_file import validate_storage
from rowlake.delta.definition import Defined, new_definition
from rowlake.delta.handle import DeltaHandle
from rowlake.delta.load import folder_of
from rowlake.delta.log_files import LOG_FOLDER, LogFiles, Segment, list_log
from rowlake.delta.new_version import Saying, new_token, new_version, token_text
from rowlake.delta.operations import Told
from rowlake.delta.state import PendingState
from rowlake.delta.swap import swap
from rowlake.errors import CommitStateUnknownError, InvalidStatementError
from rowlake.model.names import quoted
from rowlake.model.outcome import Landed, Unknown
from rowlake.storage.files import Storage
from rowlake.storage.filesystems import io_properties
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.model.metadata_change import TableDefinition
    from rowlake.model.names import Identifier


def create(
    catalog: Any, identifier: Identifier, definition: TableDefinition, *, staged: bool
) -> DeltaHandle:
    """Create an empty table at its location; `staged` leaves the creating to the first commit."""
    if definition.location is None:
        raise InvalidStatementError(f"The Delta table {quoted(identifier)} has no location.")
    defined = new_definition(definition)
    handle = staged_table(catalog, identifier, definition.location, defined)
    if staged:
        return handle
    metadata = defined.metadata
    parameters = {
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": [".".join(one) for one in definition.cluster_by],
        "properties": dict(metadata.configuration),
        "description": metadata.description,
        "isManaged": False,
    }
    saying = Saying(Told("CREATE TABLE", parameters, {}), token_text(new_token()))
    return first_version(handle, defined.actions, saying)


def first_version(
    handle: DeltaHandle, actions: Sequence[Mapping[str, Any]], saying: Saying
) -> DeltaHandle:
    """Write the first version of a table that is staged."""
    outcome = swap(handle, new_version(handle, actions, saying))
    if isinstance(outcome, Landed):
        return outcome.handle  # type: ignore[return-value]
    if isinstance(outcome, Unknown):
        raise CommitStateUnknownError(handle.name, None, outcome.cause)
    raise InvalidStatementError(f"There is a Delta table at {handle.folder} already.")


def staged_table(
    catalog: Any,
    identifier: Identifier,
    path: str,
    defined: Defined,
    *,
    needs_empty_folder: bool = True,
) -> DeltaHandle:
    """Return a table that its first commit creates, in a folder that can take it."""
    handle = _staged(catalog, identifier, path, defined)
    validate_storage(handle.folder, handle.storage)
    _validate_place(handle, needs_empty_folder=needs_empty_folder)
    return handle


def _staged(catalog: Any, identifier: Identifier, path: str, defined: Defined) -> DeltaHandle:
    folder = folder_of(path)
    properties = io_properties(catalog.properties)
    storage = Storage(properties)
    log = join(folder, LOG_FOLDER)
    changed = Actions(
        protocol=defined.protocol, metadata=defined.metadata, domains=dict(defined.domains)
    )
    pending = PendingState(folder, Segment(log, -1, None, ()), storage, changed)
    return DeltaHandle(identifier, catalog, folder, LogFiles(log), properties, pending)


def _validate_place(handle: DeltaHandle, *, needs_empty_folder: bool) -> None:
    """Refuse a folder that holds files already: they would look like the table's own."""
    if not list_log(handle.folder, handle.storage).is_empty:
        raise InvalidStatementError(f"There is a Delta table at {handle.folder} already.")
    if not needs_empty_folder:
        return
    if handle.storage.folders(handle.folder) or handle.storage.children(handle.folder):
        raise InvalidStatementError(
            f"Cannot create a table at {handle.folder}: the folder holds files that are of no "
            "Delta table. Choose an empty one."
        )
