"""Translate failures of reading a table's file to rowlake's errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from rowlake.errors import (
    CorruptTableError,
    MissingFileError,
    RowlakeError,
    StorageError,
    missing_file,
)
from rowlake.secrets import cause_without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)

# What readers raise for unreadable content; pyarrow's errors are of many kinds.
UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, MemoryError, OverflowError)
_NO_MEMORY = "Give the process more memory where the file is sound."


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Turn failures of this block into `CorruptTableError` or `StorageError` of the location."""
    try:
        yield
    except MissingFileError as error:
        raise missing_file(location) from error
    except RowlakeError:
        raise
    except UNREADABLE as error:
        raise read_failure(location, error) from cause_without_secrets(error)


def read_failure(location: str, error: Exception) -> RowlakeError:
    """Return rowlake's error for a failed read of this location.

    An operating system error number means that storage failed; without one, the content could not
    be parsed. Damaged lengths are the usual reason for running out of memory.
    """
    cause = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return missing_file(location)
    if isinstance(error, MemoryError):
        cause = f"it claims to need more memory than is available ({cause})"
        return CorruptTableError(location, cause, advice=_NO_MEMORY)
    if isinstance(error, OSError) and error.errno is not None:
        return StorageError(location, cause)
    return CorruptTableError(location, cause)


def guarded(location: str, batches: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the batches; failures of the producer name the location.

    Failures of the consumer pass unchanged.
    """
    iterator = iter(batches)
    while True:
        with reading(location):
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch
