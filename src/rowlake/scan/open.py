"""Open a file of a table in any format."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from rowlake.errors import UnsupportedFeatureError
from rowlake.scan.avro import AvroSource
from rowlake.scan.orc import OrcSource
from rowlake.scan.parquet import ParquetSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping
    from rowlake.scan.source import DataFileSource
    from rowlake.storage.files import Storage

_here = threading.local()

_SOURCES: dict[str, Callable[..., DataFileSource]] = {
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
    name_mapping: NameMapping | None = None,
    *,
    dictionaries: Sequence[str] = (),
    shares_footer: bool = False,
) -> Iterator[DataFileSource]:
    """Open a data or delete file; `table` and `name_mapping` give ids to files without any.

    The columns `dictionaries` may come as dictionaries, if the file stores them so. With
    `shares_footer`, a Parquet footer is parsed once per process: for data files of tables, which
    never change.
    """
    kind = _SOURCES.get(file_format.upper())
    if kind is None:
        raise UnsupportedFeatureError(
            f"Cannot read {location}: unsupported file format {file_format}"
        )
    options: dict[str, Any] = {}
    if kind is ParquetSource:
        options = {"dictionaries": dictionaries, "shares_footer": shares_footer}
    kept: _KeptOpen | None = getattr(_here, "kept", None)
    if kept is not None and not dictionaries:
        key = (location, id(table), name_mapping)
        yield kept.source(key, lambda: kind(location, storage, table, name_mapping, **options))
        return
    source = kind(location, storage, table, name_mapping, **options)
    try:
        yield source
    finally:
        source.close()


@contextmanager
def keeping_open() -> Iterator[None]:
    """Keep files that this thread opens inside the block open until its end, to be reused.

    Footers are parsed once. Not for blocks that open many files.
    """
    before = getattr(_here, "kept", None)
    with ExitStack() as closing:
        _here.kept = _KeptOpen(closing)
        try:
            yield
        finally:
            _here.kept = before


class _KeptOpen:
    """Open files by location and the schema that they were opened with."""

    def __init__(self, closing: ExitStack) -> None:
        self._closing = closing
        self._sources: dict[tuple[object, ...], DataFileSource] = {}

    def source(self, key: tuple[object, ...], make: Callable[[], DataFileSource]) -> DataFileSource:
        """Return the open file of a key, opened on first use."""
        if key not in self._sources:
            made = self._sources[key] = make()
            self._closing.callback(made.close)
        return self._sources[key]
