"""Metadata files: read, made for new tables, changed by updates, written as JSON.

Invariant: what is written has every field that the spec requires of its format version, and a
table with something in its metadata that would get lost is refused before any change.
"""

from __future__ import annotations

import gzip
import json
import uuid
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError as PydanticValidationError
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV1, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    update_table_metadata,
)

from rowlake.errors import CorruptTableError, MissingFileError, UnsupportedFeatureError
from rowlake.iceberg._compat import metadata_after, next_row_id
from rowlake.iceberg.metadata_checks import ADVICE, validate_metadata
from rowlake.model.schema import MAX_NESTING_READ
from rowlake.secrets import redacted_repr
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.storage.files import Storage

FORMAT_VERSION = "format-version"
COMPRESSION = "write.metadata.compression-codec"
METADATA_PATH = "write.metadata.path"
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
FORMAT_VERSIONS = (1, 2, 3)
_GZIP_MAGIC = b"\x1f\x8b"
_ADVICE = ADVICE
# What compressed metadata may unpack to: real one shrinks to a tenth, rarely to a fiftieth.
RATIO = 100
LEAST_LIMIT_BYTES = 64 * 1024 * 1024  # below this any ratio will do
MOST_BYTES = 1024 * 1024 * 1024
_UNREADABLE = (
    ValidationError,
    PydanticValidationError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True)
class Definition:
    """What a new table is made of; field ids are assigned again."""

    schema: Schema
    spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC
    sort_order: SortOrder = UNSORTED_SORT_ORDER
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None

    __repr__ = redacted_repr


def new_metadata(definition: Definition, location: str) -> TableMetadata:
    """Return the metadata of a new table at a location."""
    properties = dict(definition.properties)
    _check_format_version(properties.get(FORMAT_VERSION, "2"))
    made = new_table_metadata(
        schema=definition.schema,
        partition_spec=definition.spec,
        sort_order=definition.sort_order,
        location=location.rstrip("/"),
        properties=properties,
    )
    return _complete(made)


def _check_format_version(text: str) -> None:
    if not text.strip().isdigit() or int(text) not in FORMAT_VERSIONS:
        raise UnsupportedFeatureError(
            f"Unsupported format version {text} "
            f"(supported: {', '.join(map(str, FORMAT_VERSIONS))})."
        )


def apply_updates(
    base: TableMetadata, base_location: str | None, updates: Sequence[TableUpdate]
) -> TableMetadata:
    """Return the metadata after the updates; its log names the file it came from.

    Raises CommitFailedException for a snapshot made before another took its place in order.
    """
    _check_order(base, updates)
    return _complete(metadata_after(base, tuple(_lenient(base, updates)), base_location))


def _check_order(base: TableMetadata, updates: Sequence[TableUpdate]) -> None:
    """Check that new snapshots follow those of all branches (PyIceberg does it for v2 only).

    Spec: sequence numbers grow by commit, and row ids are given once.
    """
    if isinstance(base, TableMetadataV1):
        return
    last = base.last_sequence_number
    for update in updates:
        if not isinstance(update, AddSnapshotUpdate):
            continue
        added = update.snapshot
        if added.parent_snapshot_id is not None and (added.sequence_number or 0) <= last:
            raise CommitFailedException(
                f"snapshot {added.snapshot_id} has the sequence number {added.sequence_number}, "
                f"but the table is at {last} already"
            )
        taken = next_row_id(base)
        if taken is not None and added.first_row_id is not None and added.first_row_id < taken:
            raise CommitFailedException(
                f"snapshot {added.snapshot_id} starts at the row id {added.first_row_id}, but the "
                f"table is at {taken} already"
            )


def from_nothing(updates: Sequence[TableUpdate]) -> TableMetadata:
    """Return the metadata that a whole list of creating updates makes."""
    empty = TableMetadataV1.model_construct(last_column_id=-1, schema=Schema())  # type: ignore[call-arg]
    return _complete(update_table_metadata(empty, tuple(updates), enforce_validation=True))


def _lenient(base: TableMetadata, updates: Sequence[TableUpdate]) -> Iterable[TableUpdate]:
    # Taking away a property that is not set is no error in any engine.
    for update in updates:
        if isinstance(update, RemovePropertiesUpdate):
            yield RemovePropertiesUpdate(
                removals=[key for key in update.removals if key in base.properties]
            )
        else:
            yield update


def validate(requirements: Sequence[TableRequirement], base: TableMetadata | None) -> None:
    """Check the requirements; a failed one raises PyIceberg's CommitFailedException."""
    for requirement in requirements:
        if not _is_of_a_new_ref(requirement, base):
            requirement.validate(base)


def _is_of_a_new_ref(requirement: TableRequirement, base: TableMetadata | None) -> bool:
    """Return whether a ref is required not to be there, and is not.

    PyIceberg lets the first snapshot of a table go to main only; Java begins branches with it.
    """
    return (
        base is not None
        and isinstance(requirement, AssertRefSnapshotId)
        and requirement.snapshot_id is None
        and requirement.ref not in base.refs
    )


def _complete(metadata: TableMetadata) -> TableMetadata:
    if metadata.format_version >= 3:
        return metadata.model_copy(update={"next_row_id": next_row_id(metadata)})
    if metadata.format_version == 1:
        # v1 has the current schema and spec a second time, and old readers look there.
        fields = [part.model_dump() for part in metadata.spec().fields]
        return metadata.model_copy(update={"schema_": metadata.schema(), "partition_spec": fields})
    return metadata


def read_metadata(location: str, storage: Storage) -> TableMetadata:
    """Read a metadata file.

    Raises CorruptTableError where it is missing or damaged, UnsupportedFeatureError where it
    needs what is not there yet.
    """
    try:
        data = storage.read(location)
    except MissingFileError as error:
        raise CorruptTableError(location, "the metadata file is missing", advice=_ADVICE) from error
    return parse_metadata(data, location)


def parse_metadata(data: bytes, location: str) -> TableMetadata:
    """Return the metadata in these bytes, compressed or not."""
    try:
        text = _unpacked(data, location) if data.startswith(_GZIP_MAGIC) else data
        metadata = _parsed(text, location)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CorruptTableError(
            location, f"not a text of JSON ({error})", advice=_ADVICE
        ) from error
    except _UNREADABLE as error:
        raise unreadable(text, location, error) from error
    if b'"encryption-keys"' in text and json.loads(text).get("encryption-keys"):
        raise UnsupportedFeatureError(
            f"Cannot read {location}: the table is encrypted, which is not supported."
        )
    return metadata


def _unpacked(data: bytes, location: str) -> bytes:
    """Return the text of compressed metadata, as long as it is no bomb."""
    limit = min(max(LEAST_LIMIT_BYTES, RATIO * len(data)), MOST_BYTES)
    with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
        text = stream.read(limit + 1)
    if len(text) > limit:
        cause = f"it has {len(data):,} bytes and unpacks to more than {limit:,}"
        raise CorruptTableError(location, cause, advice=_ADVICE)
    return text


class _Recent:
    """What the texts seen last hold: a statement looks at a table several times."""

    _MOST = 8

    def __init__(self) -> None:
        self._found: dict[bytes, TableMetadata] = {}
        self._lock = Lock()

    def get(self, text: bytes) -> TableMetadata | None:
        with self._lock:
            return self._found.get(text)

    def put(self, text: bytes, metadata: TableMetadata) -> None:
        with self._lock:
            self._found.pop(text, None)
            self._found[text] = metadata
            if len(self._found) > self._MOST:
                self._found.pop(next(iter(self._found)))


_RECENT = _Recent()


def _parsed(text: bytes, location: str) -> TableMetadata:
    found = _RECENT.get(text)
    if found is None:
        found = TableMetadataUtil.parse_raw(text.decode())
        validate_metadata(found, location)
    _RECENT.put(text, found)
    return found


def unreadable(
    text: bytes, location: str, error: Exception
) -> CorruptTableError | UnsupportedFeatureError:
    """Return why metadata cannot be read: damage, or something from a later version."""
    if isinstance(error, RecursionError) or "recursion limit" in str(error):
        return _too_deep(location)
    try:
        raw = json.loads(text)
    except RecursionError:
        return _too_deep(location)
    except ValueError as cause:
        return CorruptTableError(location, f"not valid JSON ({cause})", advice=_ADVICE)
    if not isinstance(raw, dict) or not isinstance(raw.get(FORMAT_VERSION), int):
        return CorruptTableError(location, "not the metadata of a table", advice=_ADVICE)
    if raw[FORMAT_VERSION] not in FORMAT_VERSIONS:
        return UnsupportedFeatureError(
            f"Cannot read {location}: the table has format version {raw[FORMAT_VERSION]}, and "
            f"rowlake knows {', '.join(map(str, FORMAT_VERSIONS))}."
        )
    if '"variant"' in json.dumps(raw.get("schemas", [])):
        return UnsupportedFeatureError(
            f"Cannot read {location}: a column has the type variant, which is not supported yet."
        )
    short = " ".join(str(error).split())[:300]
    return CorruptTableError(location, f"invalid metadata ({short})", advice=_ADVICE)


def _too_deep(location: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Cannot read {location}: its JSON is nested too deep. Columns may be nested "
        f"{MAX_NESTING_READ} levels deep."
    )


def to_bytes(metadata: TableMetadata, location: str) -> bytes:
    """Return the JSON of metadata, compressed where the file's name says so."""
    text = metadata.model_dump_json().encode()
    _RECENT.put(text, metadata)
    return gzip.compress(text) if is_compressed(location) else text


def is_compressed(location: str) -> bool:
    """Return whether a metadata file is compressed, by its name (both of Java's forms)."""
    return location.endswith((".gz.metadata.json", ".metadata.json.gz"))


def extension(properties: Mapping[str, Any]) -> str:
    """Return the ending of new metadata files."""
    codec = str(properties.get(COMPRESSION, "none")).lower()
    if codec == "gzip":
        return ".gz.metadata.json"
    if codec in {"none", "uncompressed"}:
        return ".metadata.json"
    raise UnsupportedFeatureError(f"{COMPRESSION} must be none or gzip, not {codec}.")


def new_location(metadata: TableMetadata, version: int, folder: str | None = None) -> str:
    """Return a fresh location for a metadata file of a catalog that keeps the pointer.

    Without a folder it goes where the metadata says: that is for new tables only.
    """
    if folder is None:
        folder = metadata.properties.get(METADATA_PATH) or join(metadata.location, "metadata")
    return join(folder, f"{version:05d}-{uuid.uuid4()}{extension(metadata.properties)}")


def version_of(location: str | None) -> int:
    """Return the version in the name of a metadata file, -1 where there is none."""
    name = (location or "").rpartition("/")[2]
    number = name.removeprefix("v").partition("-")[0].partition(".")[0]
    return int(number) if number.isdigit() else -1
