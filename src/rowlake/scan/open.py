"""Open a file of a table, whatever its format."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowlake.errors import UnsupportedFeatureError
from rowlake.scan.avro import AvroSource
from rowlake.scan.orc import OrcSource
from rowlake.scan.parquet import ParquetSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.model.schema import Schema
    from rowlake.scan.source import Source
    from rowlake.storage.files import Storage

_SOURCES: dict[str, Callable[..., Source]] = {
    "PARQUET": ParquetSource,
    "ORC": OrcSource,
    "AVRO": AvroSource,
}


@contextmanager
def opened(
    location: str,
    file_format: str,
    storage: Storage,
    table: Schema,
    name_mapping: str | None = None,
    *,
    dictionaries: Sequence[str] = (),
) -> Iterator[Source]:
    """Open a data or delete file; `table` and `name_mapping` give ids to files without any.

    The columns `dictionaries` may come as dictionaries, where that is how the file has them.
    """
    kind = _SOURCES.get(file_format.upper())
    if kind is None:
        raise UnsupportedFeatureError(f"Files of format {file_format} are not read: {location}")
    options = {"dictionaries": dictionaries} if kind is ParquetSource and dictionaries else {}
    source = kind(location, storage, table, name_mapping, **options)
    try:
        yield source
    finally:
        source.close()
