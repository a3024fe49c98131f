"""How files of Delta tables hold rows (PROTOCOL.md, "Data Files", "Column Mapping").

Partition columns are in the log, not in files. Columns have their physical names, with field ids
only where columns are mapped. Files are in the table's folder, below folders that are named as Hive
names them; no reader takes a meaning from those names.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.delta.features import CHANGE_FEED
from rowlake.delta.vector_file import FRAME_BYTES, vector_content
from rowlake.errors import InvalidStatementError
from rowlake.model.column_rules import identity_columns
from rowlake.model.file_layout import FileLayout, PackedVectors, operation_mark
from rowlake.model.files import DELTA_VECTOR
from rowlake.model.view import DATA_PATH
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyroaring import BitMap64

    from rowlake.delta.metadata import Metadata
    from rowlake.delta.schema import TableColumns

CHANGE_DATA = "_change_data"
CODEC, TARGET_SIZE = "delta.parquet.compression.codec", "delta.targetFileSize"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_CODECS = {"none": "uncompressed", "lz4_raw": "lz4"}
# Delta's writers keep 32 characters of texts; counts of all columns cost nothing.
_STATISTICS = {"write.metadata.metrics.default": "truncate(32)"}


@dataclass(frozen=True)
class VectorBinaries:
    """Vectors in files `deletion_vector_<uuid>.bin`; the UUID begins with the operation's mark."""

    file_format: str = DELTA_VECTOR

    def name(self, operation_id: str) -> str:
        """Return a new file name."""
        fresh = str(uuid.uuid4())
        mark = operation_mark(operation_id)
        return f"deletion_vector_{mark + fresh[len(mark) :]}.bin"

    def pack(self, vectors: Sequence[tuple[str, BitMap64]]) -> PackedVectors:
        """Return a file with these vectors."""
        content, found = vector_content(dict(vectors), uuid.uuid4())
        places = [found[location] for location, _ in vectors]
        return PackedVectors(
            content, tuple((one.offset or 0, one.size + FRAME_BYTES) for one in places)
        )


def layout_of(location: str, metadata: Metadata, columns: TableColumns) -> FileLayout:
    """Return how files of a table hold its rows."""
    is_mapped = metadata.column_mapping != "none"
    return FileLayout(
        settings={
            DATA_PATH: location,
            "write.format.default": "parquet",
            "write.object-storage.enabled": "false",
            **_STATISTICS,
            **_settings_in(metadata.configuration),
            # The high-water mark of an identity column is found by what files tell.
            **{
                f"write.metadata.metrics.column.{name}": "full"
                for name in identity_columns(columns.schema.arrow)
            },
        },
        name_prefix="part-",
        has_hive_folders=True,
        stored_names={**(columns.file_names if is_mapped else {}), **columns.row_id_names},
        unstored=frozenset(one.source_id for one in columns.spec.fields),
        # Elements, keys and values have ids of ours alone, which a new column may get.
        ids=frozenset(columns.file_names) if is_mapped else frozenset(),
        vectors=VectorBinaries(),
        images_folder=join(location, CHANGE_DATA) if metadata.is_set(CHANGE_FEED) else None,
    )


def _settings_in(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return Delta's properties of how files are written under the names that writing knows."""
    found = {}
    if CODEC in configuration:
        codec = configuration[CODEC].lower()
        found["write.parquet.compression-codec"] = _CODECS.get(codec, codec)
    if TARGET_SIZE in configuration:
        found["write.target-file-size-bytes"] = str(size_in_bytes(configuration[TARGET_SIZE]))
    return found


def size_in_bytes(text: str) -> int:
    """Return a size as Delta's properties write it: `104857600`, `100mb`, `1g`."""
    plain = text.strip().lower()
    digits = plain.rstrip("bkmg")
    unit = plain[len(digits) :].removesuffix("b") if plain != digits else ""
    if not digits.isdecimal() or unit not in _UNITS or not int(digits):
        raise InvalidStatementError(f"Cannot read {text[:40]!r} as a size: expected 100mb or 1g.")
    return int(digits) * _UNITS[unit]
