"""Manifests of a table, rewritten: what others may have put into them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro

from rowlake.iceberg.cache import default_cache

if TYPE_CHECKING:
    from collections.abc import Callable


def change_entries(table: Any, change: Callable[[dict[str, Any]], Any]) -> None:
    """Let `change` alter every data or delete file that the newest manifests of a table list."""
    for location in table.inspect("manifests")["path"].to_pylist():
        path = Path(location)
        with path.open("rb") as stream:
            reader = fastavro.reader(stream)
            entries, schema, metadata = list(reader), reader.writer_schema, reader.metadata
        for entry in entries:
            change(entry["data_file"])
        own = {key: value for key, value in metadata.items() if not key.startswith("avro.")}
        with path.open("wb") as stream:  # uncompressed: not shorter than the manifest list says
            fastavro.writer(stream, schema, entries, metadata=own, codec="null")
    default_cache().clear()
