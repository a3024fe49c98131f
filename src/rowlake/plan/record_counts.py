"""Row counts of files that metadata says nothing about: Delta logs need not have statistics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.errors import CorruptTableError

if TYPE_CHECKING:
    from rowlake.plan.files import FilePlan
    from rowlake.storage.files import Storage

THREADS = 16
COLUMN = "record_count"


def with_record_counts(plan: FilePlan, storage: Storage) -> FilePlan:
    """Return the plan with the row count of every file; footers say those that are missing."""
    data = {spec_id: _counted(table, storage) for spec_id, table in plan.data.items()}
    return replace(plan, data=data)


def _counted(table: pa.Table, storage: Storage) -> pa.Table:
    counts = table[COLUMN].combine_chunks()
    if not counts.null_count:
        return table
    unknown = pc.is_null(counts)
    places = table["location"].filter(unknown).to_pylist()
    with ThreadPoolExecutor(min(THREADS, len(places))) as pool:
        found = list(pool.map(partial(_rows_in, storage=storage), places))
    filled = pc.replace_with_mask(counts, unknown, pa.array(found, counts.type))
    index = table.schema.get_field_index(COLUMN)
    return table.set_column(index, table.schema.field(index), filled)


def _rows_in(location: str, storage: Storage) -> int:
    with storage.open_input(location) as stream:
        try:
            return int(pq.read_metadata(stream).num_rows)
        except (pa.ArrowException, OSError) as error:
            raise CorruptTableError(location, f"it is no Parquet file ({error})") from error
