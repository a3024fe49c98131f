"""Puffin files: blobs with a JSON footer.

Layout: magic `PFA1`, the blobs, then the footer: magic, payload (JSON), payload length (4 bytes,
little-endian, signed), flags (4 bytes; bit 0 of byte 0: payload is LZ4-compressed), magic.
Comes in: blobs with what the footer says of them; goes out: file bytes, and back.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.codecs import deletion_vector
from rowlake.errors import CorruptTableError
from rowlake.model.task import POS_COLUMN_ID
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyroaring import BitMap64

    from rowlake.storage.files import Storage

MAGIC = b"PFA1"
_TAIL = 12  # payload length, flags, magic
_COMPRESSED = 1
_FIRST_READ = 64 * 1024
# What a compressed footer may unpack to.
RATIO = 100
LEAST_LIMIT_BYTES = 4 * 1024 * 1024
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    OSError,
    pa.ArrowException,
)


@dataclass(frozen=True)
class Blob:
    """One blob and its footer entry; `offset` and `length` are set once it is in a file."""

    type: str
    data: bytes = b""
    fields: tuple[int, ...] = ()
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    length: int = 0
    compression_codec: str | None = None


@dataclass(frozen=True)
class PuffinFile:
    """What `write_puffin` made: all bytes, and the blobs with their places."""

    data: bytes
    blobs: tuple[Blob, ...]


def vector_blob(positions: BitMap64, data_file: str) -> Blob:
    """Return the deletion vector of a data file as a blob; ids are inherited, hence -1."""
    return Blob(
        type=deletion_vector.BLOB_TYPE,
        data=deletion_vector.encode(positions),
        fields=(POS_COLUMN_ID,),
        properties={"referenced-data-file": data_file, "cardinality": str(len(positions))},
    )


def write_puffin(blobs: Sequence[Blob], *, created_by: str) -> PuffinFile:
    """Return the bytes of a Puffin file with these blobs, uncompressed, in this order."""
    parts, placed, offset = [MAGIC], [], len(MAGIC)
    for blob in blobs:
        parts.append(blob.data)
        placed.append(_placed(blob, offset))
        offset += len(blob.data)
    parts.append(_footer(placed, created_by))
    return PuffinFile(b"".join(parts), tuple(placed))


def described_anew(data: bytes, blobs: Sequence[Blob], *, created_by: str) -> bytes:
    """Return a Puffin file with the same blobs in the same places, and another footer."""
    end = max((blob.offset + blob.length for blob in blobs), default=len(MAGIC))
    return data[:end] + _footer(blobs, created_by)


def _footer(blobs: Sequence[Blob], created_by: str) -> bytes:
    said = {"blobs": [_entry(blob) for blob in blobs], "properties": {"created-by": created_by}}
    payload = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    return b"".join([MAGIC, payload, struct.pack("<ii", len(payload), 0), MAGIC])


def read_footer(location: str, storage: Storage) -> list[Blob]:
    """Return the blobs of a Puffin file, without their data."""
    with storage.open_input(location) as stream:
        size = stream.size()
        tail = stream.read_at(min(size, _FIRST_READ), max(0, size - _FIRST_READ))
        length, flags = _footer_tail(tail, size, location)
        if length + _TAIL + len(MAGIC) > len(tail):
            wanted = length + _TAIL + len(MAGIC)
            tail = stream.read_at(wanted, size - wanted)
    payload = tail[len(tail) - _TAIL - length : len(tail) - _TAIL]
    try:
        entries = json.loads(_plain(payload, flags))["blobs"]
        blobs = [_from_entry(entry) for entry in entries]
    except _DAMAGE as error:
        raise CorruptTableError(location, f"the Puffin footer is damaged ({error})") from error
    for blob in blobs:
        _validate_place(blob.offset, blob.length, size, location)
    return blobs


def read_blob(location: str, offset: int, length: int, storage: Storage) -> bytes:
    """Return the stored bytes of one blob; nothing else of the file is read."""
    with storage.open_input(location) as stream:
        try:
            _validate_place(offset, length, stream.size(), location)
            data: bytes = stream.read_at(length, offset)
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(location, f"the blob at {offset}: {error}") from error
    if len(data) != length:
        cause = f"the blob at {offset} has {len(data)} of {length} bytes"
        raise CorruptTableError(location, cause)
    count_read(length)
    return data


def _validate_place(offset: int, length: int, size: int, location: str) -> None:
    """Refuse a blob outside the file, before anything is allocated for it."""
    if offset < 0 or length < 0 or offset + length > size:
        cause = f"the blob at {offset} of {length} bytes does not fit its {size} bytes"
        raise CorruptTableError(location, cause)


def _placed(blob: Blob, offset: int) -> Blob:
    return Blob(
        blob.type,
        blob.data,
        blob.fields,
        blob.snapshot_id,
        blob.sequence_number,
        blob.properties,
        offset,
        len(blob.data),
        blob.compression_codec,
    )


def _entry(blob: Blob) -> dict[str, object]:
    entry: dict[str, object] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.compression_codec:
        entry["compression-codec"] = blob.compression_codec
    if blob.properties:
        entry["properties"] = dict(blob.properties)
    return entry


def _from_entry(entry: Mapping[str, object]) -> Blob:
    return Blob(
        type=str(entry["type"]),
        fields=tuple(entry["fields"]),  # type: ignore[arg-type]
        snapshot_id=int(entry["snapshot-id"]),  # type: ignore[call-overload]
        sequence_number=int(entry["sequence-number"]),  # type: ignore[call-overload]
        properties=dict(entry.get("properties") or {}),  # type: ignore[call-overload]
        offset=int(entry["offset"]),  # type: ignore[call-overload]
        length=int(entry["length"]),  # type: ignore[call-overload]
        compression_codec=entry.get("compression-codec"),  # type: ignore[arg-type]
    )


def _footer_tail(tail: bytes, size: int, location: str) -> tuple[int, int]:
    if len(tail) < _TAIL or tail[-4:] != MAGIC:
        raise CorruptTableError(location, "it does not end as a Puffin file does")
    length, flags = struct.unpack_from("<iI", tail, len(tail) - _TAIL)
    if length < 0 or length + _TAIL + 2 * len(MAGIC) > size:
        raise CorruptTableError(location, f"its footer length is {length}, its size {size}")
    if flags & ~_COMPRESSED:
        raise CorruptTableError(location, f"its footer flags are {flags:#010x}")
    return length, flags


def _plain(payload: bytes, flags: int) -> bytes:
    if not flags & _COMPRESSED:
        return payload
    limit = max(LEAST_LIMIT_BYTES, RATIO * len(payload))
    with pa.input_stream(pa.py_buffer(payload), compression="lz4") as stream:
        data: bytes = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it unpacks to more than {limit:,} bytes")
    return data
