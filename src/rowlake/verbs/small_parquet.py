"""Small Parquet sources, read in the driver: no Spark job, and no session, for a few megabytes.

Comes in: a path. Goes out: its rows, or None where Spark should read them: what is large, elsewhere
than on this machine, laid out in folders (Spark makes columns of their names), of several schemas,
or holds timestamps of 96 bits, which Spark takes for instants.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MAX_BYTES = 32 * 1024 * 1024
MAX_FILES = 64


def small_parquet(path: str | Path) -> pa.Table | None:
    """Return the rows of a small Parquet file, or of a folder of such files; None for all else."""
    if "://" in str(path):
        return None
    files = _files(Path(path))
    if (
        not files
        or len(files) > MAX_FILES
        or sum(each.stat().st_size for each in files) > MAX_BYTES
    ):
        return None
    try:
        opened = [pq.ParquetFile(each) for each in files]
    except (pa.ArrowInvalid, OSError):
        return None  # not Parquet, or damaged: Spark says what is wrong
    plain = [each.schema_arrow.remove_metadata() for each in opened]
    if any(not schema.equals(plain[0]) for schema in plain) or _has_int96(opened[0]):
        return None
    return pa.concat_tables([each.read().replace_schema_metadata() for each in opened])


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() in ("", ".parquet") else []
    if not path.is_dir():
        return []
    found = sorted(each for each in path.iterdir() if not each.name.startswith(("_", ".")))
    is_flat = all(each.is_file() and each.suffix.lower() == ".parquet" for each in found)
    return found if is_flat else []


def _has_int96(file: pq.ParquetFile) -> bool:
    columns = file.schema
    return any(columns.column(place).physical_type == "INT96" for place in range(len(columns)))
