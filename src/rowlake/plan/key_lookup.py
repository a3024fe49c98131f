"""Which rows of which files can have some keys, by the files' key indexes.

Comes in: a `FilePlan` (or some files) and keys. Goes out: the same with the positions of rows that
may have the keys, without files that have none of them. Files without an index stay whole. A
look-up only happens where few keys are looked for among many rows: else to scan is cheaper.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from rowlake.codecs.key_hash import hash_keys
from rowlake.model.predicate import And, Leaf, Op, Or
from rowlake.model.properties import whole_number
from rowlake.scan.key_index import find_rows
from rowlake.storage.locations import split
from rowlake.write.key_index import index_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.plan.files import FilePlan
    from rowlake.storage.files import Storage
    from rowlake.write.key_index import IndexKeys

    Numbers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

ROWS_PER_KEY_PROPERTY = "rowlake.index.min-rows-per-key"
# With fewer rows per key, most pages hold a row: to scan them is cheaper.
ROWS_PER_KEY = 50
MOST_KEYS = 100_000
MOST_FILES = 10_000
_THREADS = 16


class IndexedName(NamedTuple):
    """A data file, as its index is checked against it."""

    location: str
    file_size_in_bytes: int
    record_count: int


@dataclass(frozen=True)
class KeyLookup:
    """How the key index was used; `reason` says why it was not.

    `files_pruned` have none of the keys, `files_narrowed` are read at `rows` positions only, and
    `files_scanned` have no index.
    """

    columns: tuple[str, ...] = ()
    keys: int = 0
    files_pruned: int = 0
    files_narrowed: int = 0
    files_scanned: int = 0
    rows: int = 0
    reason: str = ""

    @property
    def is_used(self) -> bool:
        """True where keys were looked up."""
        return bool(self.columns) and not self.reason


def reason_to_scan(properties: Mapping[str, str], keys: int, rows: int) -> str:
    """Return why a scan is cheaper than a look-up; nothing where it is not."""
    least = whole_number(properties, ROWS_PER_KEY_PROPERTY, ROWS_PER_KEY)
    if keys > MOST_KEYS:
        return f"{keys:,} keys are more than the {MOST_KEYS:,} that are looked up"
    if keys * least > rows:
        return f"{keys:,} keys among {rows:,} rows: to scan is cheaper"
    return ""


def key_hashes(predicate: Predicate, keys: IndexKeys, schema: Schema) -> Hashes | None:
    """Return the hashes of the keys that a bound predicate asks for; None unless it names them."""
    values = [_values_of(predicate, field_id) for field_id in keys.field_ids]
    found = [each for each in values if each is not None]
    if len(found) < len(values) or np.prod([float(len(each)) for each in found]) > MOST_KEYS:
        return None
    rows = list(product(*found))
    try:
        columns = [
            pa.array([row[place] for row in rows], schema.by_id[field_id].type)
            for place, field_id in enumerate(keys.field_ids)
        ]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None  # a value that the column's type has no room for
    return np.unique(hash_keys(columns))


def _values_of(predicate: Predicate, field_id: int) -> set[Any] | None:
    """Return the values that a column can have where a predicate holds; None for any."""
    if isinstance(predicate, Leaf):
        is_key = predicate.op in (Op.EQ, Op.IN) and predicate.transform is None
        return set(predicate.values) if is_key and predicate.field_id == field_id else None
    parts = [_values_of(part, field_id) for part in predicate.parts]
    known = [part for part in parts if part is not None]
    if isinstance(predicate, Or):
        return set().union(*known) if known and len(known) == len(parts) else None
    assert isinstance(predicate, And)
    return min(known, key=len, default=None)


def positions_in(
    files: Sequence[IndexedName],
    keys: IndexKeys,
    hashes_for: Callable[[int], Hashes],
    storage: Storage,
) -> list[Numbers | None]:
    """Return of each file the positions of rows that may match; None for a file without index.

    `hashes_for` takes the number of a file.
    """

    def find(number: int) -> Numbers | None:
        file = files[number]
        if not keys.is_for(file.record_count):
            return None
        return find_rows(*file, keys, hashes_for(number), storage)

    numbers = range(len(files))
    if len(files) <= 1 or split(files[0].location).is_local:
        return [find(number) for number in numbers]
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        return list(pool.map(find, numbers))


def is_sparse(positions: Numbers, record_count: int) -> bool:
    """Return whether rows are few enough to be fetched one by one."""
    return 0 < 2 * len(positions) <= record_count


def looked_up(keys: IndexKeys, count: int, found: Iterable[Numbers | None]) -> KeyLookup:
    """Return what a look-up of `count` keys came to."""
    found = list(found)
    known = [each for each in found if each is not None]
    pruned = sum(not len(each) for each in known)
    return KeyLookup(
        keys.names,
        count,
        pruned,
        len(known) - pruned,
        len(found) - len(known),
        sum(map(len, known)),
    )


def narrowed(plan: FilePlan, storage: Storage) -> FilePlan:
    """Return a plan of which files are read only where they may have the keys of its predicate."""
    view = plan.view
    keys = index_keys(view)
    if keys is None or not 0 < plan.file_count <= MOST_FILES:
        return plan
    hashes = key_hashes(plan.predicate, keys, view.schema)
    if hashes is None or reason_to_scan(view.properties, len(hashes), plan.record_count):
        return plan
    data, rows = {}, dict(plan.rows)
    for spec_id, table in plan.data.items():
        found = positions_in(names_of(table), keys, lambda _: hashes, storage)
        kept = [each is None or len(each) > 0 for each in found]
        data[spec_id] = table.filter(pa.array(kept, pa.bool_()))
        pairs = zip(names_of(table), found, strict=True)
        rows |= {
            name.location: each
            for name, each in pairs
            if each is not None and is_sparse(each, name.record_count)
        }
    return replace(plan, data={each: t for each, t in data.items() if t.num_rows}, rows=rows)


def names_of(files: pa.Table) -> list[IndexedName]:
    """Return the files of a plan as their indexes are checked against them."""
    columns = [files[name].to_pylist() for name in IndexedName._fields]
    return [IndexedName(*row) for row in zip(*columns, strict=True)]
