"""`spark.readStream`, `df.writeStream` and `foreachBatch` in an attached session."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.attached import owners
from rowlake.attached.reading import named_by
from rowlake.engine.attachments.recording import refuse_other
from rowlake.errors import InvalidStatementError, StorageError, UnsupportedFeatureError
from rowlake.model.names import quoted
from rowlake.query.lookup import TableLookup, new_name
from rowlake.storage.files import Storage
from rowlake.stream.source_options import MOST_FILES, MOST_ROWS, START_TIME, STARTING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.engine.attachments.drop_in import StreamRequest
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name

# Options of Iceberg's and Delta's own sources, by their names in rowlake.
_SAME = {
    "stream-from-timestamp": START_TIME,
    "streaming-max-files-per-micro-batch": MOST_FILES,
    "streaming-max-rows-per-micro-batch": MOST_ROWS,
    "maxfilespertrigger": MOST_FILES,
    "readchangefeed": "changes",
}
_OURS = (STARTING, START_TIME, MOST_FILES, MOST_ROWS, "changes", "branch")
_CHECKPOINT = "checkpointLocation"


def read_stream(
    lake: Lake, name: str, options: Mapping[str, str], provider: str | None
) -> Any | None:
    """Return a table of the lake as a streaming DataFrame; None where it is not the lake's."""
    parts = owners.parts_of(name) if provider is None else named_by(provider, name)
    target = None if parts is None else TableLookup(lake.workspace).target(parts)
    if target is None:
        return None
    if not target.is_current:
        raise InvalidStatementError(f"{name} is not a table or a branch, and cannot be streamed.")
    chosen = {key: value for key, value in _named(options).items() if key in _OURS}
    if target.branch:
        chosen["branch"] = target.branch
    reader = lake.spark.readStream.format("rowlake").options(**chosen)
    return reader.load(quoted(lake.workspace.full_name(target.table)))


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by their names in rowlake."""
    found = {_SAME.get(key.lower(), key.lower()): value for key, value in options.items()}
    version = found.pop("startingversion", None)
    if version is None:
        return found
    if version == "latest":
        return {**found, STARTING: version}
    if not version.isdecimal():
        raise InvalidStatementError(f"startingVersion is a version or 'latest', not {version!r}.")
    # Delta's begins with the version, rowlake's after it.
    return {**found, STARTING: str(int(version) - 1)} if int(version) else found


def write_stream(lake: Lake, asked: StreamRequest) -> Any | None:
    """Start a query that appends to a table, exactly once; None where it is not the lake's."""
    name = owners.parts_of(asked.name)
    if name is None:
        return None
    lookup = TableLookup(lake.workspace)
    known = lookup.stored(name) is not None
    if not known and not _may_create(lake, asked, name):
        return None
    refuse_other(asked.other, quoted(name))
    if (asked.output_mode or "append").lower() != "append":
        raise UnsupportedFeatureError(
            f"toTable({quoted(name)}) in output mode {asked.output_mode} is not supported: a "
            "table takes append. Use foreachBatch with MERGE for rows that change."
        )
    checkpoint = _checkpoint(lake, asked)
    if not known:
        _create(lake, asked, name)
    table = lake.table(lookup.need(name).identifier if known else new_name(lake.workspace, name))
    return table.stream_append(
        asked.frame,
        app_id=app_id_of(checkpoint),
        checkpoint=checkpoint,
        trigger=asked.trigger,
        query_name=asked.query_name,
    )


def _may_create(lake: Lake, asked: StreamRequest, name: Name) -> bool:
    if (asked.provider or "iceberg").lower() not in owners.LAKE_PROVIDERS:
        return False
    return not owners.is_new_in_spark(lake.workspace, name)


def _create(lake: Lake, asked: StreamRequest, name: Name) -> None:
    lake.create_table(
        new_name(lake.workspace, name),
        asked.frame.schema,
        partition_by=asked.partitioned_by,
        format="delta" if (asked.provider or "").lower() == "delta" else "",
        if_not_exists=True,
    )


def _checkpoint(lake: Lake, asked: StreamRequest) -> str:
    """Return where the query keeps its progress: its own option, or the session's setting."""
    found = {key.lower(): value for key, value in asked.options.items()}.get(_CHECKPOINT.lower())
    if found:
        return found
    root = lake.engine.setting("spark.sql.streaming.checkpointLocation")
    if not root:
        raise InvalidStatementError(
            f"toTable({asked.name}) needs a checkpoint: .option('{_CHECKPOINT}', 'a folder')."
        )
    return f"{root.rstrip('/')}/{asked.query_name or uuid.uuid4()}"


def app_id_of(checkpoint: str) -> str:
    """Return the id of the query that a checkpoint belongs to, which is made where it is new.

    It is Spark's own id of the query: a folder that was removed and made again is another query.
    Where only Spark can open the folder, the path stands for it.
    """
    location, storage = f"{checkpoint.rstrip('/')}/metadata", Storage()
    try:
        if not storage.exists(location):
            storage.create(location, json.dumps({"id": str(uuid.uuid4())}).encode())
        return f"query-{json.loads(storage.read(location))['id']}"
    except (StorageError, UnsupportedFeatureError, ValueError, KeyError):
        return f"checkpoint-{hashlib.sha256(checkpoint.encode()).hexdigest()[:32]}"


@dataclass(frozen=True)
class Batches:
    """A function of `foreachBatch` for the session of its batches, which is a copy of the user's.

    `attached` attaches the lake to that session, in the process that runs the batches.
    """

    function: Callable[[Any, int], None]
    attached: Callable[[Any], Any]

    def __call__(self, frame: Any, number: int) -> None:
        """Run the function with the lake attached."""
        with self.attached(frame.sparkSession):
            self.function(frame, number)
