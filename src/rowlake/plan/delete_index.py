"""Which deletes apply to which data files (spec, Scan Planning).

Comes in: tables of live delete files by spec (`files_schema`, native partitions). Goes out, for a
table of data files: the delete files to apply to each. Invariant, per kind of delete:

- deletion vector: to its referenced data file, where that is not newer than the vector; position
  delete files then no longer apply;
- position delete file: to data files of its partition (and its referenced file, if it has one)
  that are not newer;
- equality delete file: to strictly older data files of its partition, or of the whole table
  where its spec is unpartitioned.

Deletes whose metrics show that they cannot touch a data file are left out. A vector or a position
delete that refers to a data file of another partition is a corrupt table, not a delete to skip.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError
from rowlake.model.files import Content, DeleteFile, are_vectors
from rowlake.plan.delete_overlap import equality_overlap, path_overlap, single_paths
from rowlake.prune.metrics import one_array
from rowlake.prune.row_ranges import Keyed, Ranges, partition_keys, path_codes, ranges_by_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowlake.model.partition import PartitionSpec
    from rowlake.model.schema import Schema

    Numbers = np.ndarray[Any, Any]

# What of an entry a `DeleteFile` is made from.
FACTS = (
    "content",
    "location",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


@dataclass(frozen=True)
class Applied:
    """The deletes of a table of data files, as ranges of rows of the index's `files`."""

    size: int
    groups: tuple[Ranges, ...] = ()

    @cached_property
    def counts(self) -> Numbers:
        """How many delete files apply to each data file."""
        counts = np.zeros(self.size, dtype=np.int64)
        for group in self.groups:
            counts += group.counts
        return counts

    @property
    def clean(self) -> Numbers:
        """True for each data file without deletes."""
        return np.asarray(self.counts == 0)

    def rows_of(self, data_row: int) -> list[int]:
        """Return the index rows of one data file's deletes: positions first, then equality."""
        found: list[int] = []
        for group in self.groups:
            found += group.members[group.starts[data_row] : group.ends[data_row]].tolist()
        return found

    def used(self) -> Numbers:
        """Return the index rows that apply to any data file, in order."""
        covered = [np.unique(group.members[_covered(group)]) for group in self.groups]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *covered]))


def _covered(group: Ranges) -> Numbers:
    """Return which members lie in some range."""
    depth = np.zeros(len(group.members) + 1, dtype=np.int64)
    held = group.ends > group.starts
    np.add.at(depth, group.starts[held], 1)
    np.add.at(depth, group.ends[held], -1)
    return np.asarray(np.cumsum(depth)[:-1] > 0)


class DeleteIndex:
    """All delete files of a plan; `files` has them as one table, without partitions."""

    def __init__(
        self, tables: Mapping[int, pa.Table], specs: Mapping[int, PartitionSpec], schema: Schema
    ) -> None:
        self._specs, self._schema = specs, schema
        self._tables = {spec_id: table for spec_id, table in tables.items() if table.num_rows}
        plain = [_with_spec(table, spec_id) for spec_id, table in self._tables.items()]
        self.files = pa.concat_tables(plain) if plain else pa.table({})
        self._made: dict[int, DeleteFile] = {}

    @property
    def is_empty(self) -> bool:
        """True where nothing is deleted."""
        return not self._tables

    @property
    def equality_ids(self) -> frozenset[int]:
        """The columns by which any equality delete deletes."""
        if self.is_empty:
            return frozenset()
        listed = pc.list_flatten(self.files.column("equality_ids")).unique().to_pylist()
        return frozenset(number for number in listed if number is not None)

    def applied_to(self, data: pa.Table, spec_id: int) -> Applied:
        """Return the deletes of data files of one spec."""
        if self.is_empty or not data.num_rows:
            return Applied(data.num_rows)
        found = _Search(self, data, spec_id)
        vectors = found.vectors()
        covered = vectors.counts > 0
        positions = [found.of_paths().without(covered), found.of_partitions().without(covered)]
        groups = [vectors, *positions, *found.equality()]
        return Applied(data.num_rows, tuple(group for group in groups if group.counts.any()))

    def delete_files(self, rows: Iterable[int]) -> tuple[DeleteFile, ...]:
        """Return delete files of index rows; each is made once."""
        wanted = list(rows)
        missing = [row for row in dict.fromkeys(wanted) if row not in self._made]
        if missing:
            facts = self.files.select(FACTS).take(missing).to_pylist()
            self._made |= dict(zip(missing, map(delete_file, facts), strict=True))
        return tuple(self._made[row] for row in wanted)

    @cached_property
    def _sequence_numbers(self) -> Numbers:
        return _sequence_numbers(self.files)

    @cached_property
    def _kinds(self) -> dict[str, Numbers]:
        """The rows of each kind of delete."""
        content = np.asarray(one_array(self.files.column("content")))
        position = content == Content.POSITION_DELETES
        vector = np.asarray(one_array(are_vectors(self.files.column("file_format"))))
        named = np.asarray(self._paths.is_valid())
        return {
            "vector": np.flatnonzero(position & vector),
            "path": np.flatnonzero(position & ~vector & named),
            "partition": np.flatnonzero(position & ~vector & ~named),
            "equality": np.flatnonzero(content == Content.EQUALITY_DELETES),
        }

    @cached_property
    def _paths(self) -> pa.Array:
        """The one data file that a position delete is about, null where there may be more."""
        named = one_array(self.files.column("referenced_data_file"))
        return pc.coalesce(named, single_paths(self.files))

    @cached_property
    def _offsets(self) -> dict[int, int]:
        """The first row of each spec's delete files."""
        sizes = [table.num_rows for table in self._tables.values()]
        return dict(zip(self._tables, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    @cached_property
    def _equality_sets(self) -> list[tuple[tuple[int, ...], Numbers]]:
        """Equality deletes by the columns that they compare."""
        rows = self._kinds["equality"]
        listed = one_array(self.files.column("equality_ids")).take(pa.array(rows))
        words = pc.binary_join(listed.cast(pa.list_(pa.string())), ",").fill_null("")
        encoded = words.dictionary_encode()
        places = np.asarray(encoded.indices)
        return [
            (tuple(int(word) for word in text.split(",") if word), rows[places == number])
            for number, text in enumerate(encoded.dictionary.to_pylist())
        ]

    @cached_property
    def _is_global(self) -> Numbers:
        """True for each delete file of an unpartitioned spec."""
        found = [each.spec_id for each in self._specs.values() if each.is_unpartitioned]
        return np.isin(np.asarray(one_array(self.files.column("spec_id"))), found)


class _Search:
    """One table of data files being looked up in an index."""

    def __init__(self, index: DeleteIndex, data: pa.Table, spec_id: int) -> None:
        self.index, self.data, self.spec_id = index, data, spec_id
        self.sequence_numbers = _sequence_numbers(data)
        self.data_keys, self.delete_keys = self._partition_keys()

    def _partition_keys(self) -> tuple[Numbers, Numbers]:
        """Return a key per data file and per delete file; -1 for deletes of other specs."""
        keys = np.full(self.index.files.num_rows, -1, dtype=np.int64)
        deletes = self.index._tables.get(self.spec_id)
        if deletes is None:
            return np.zeros(self.data.num_rows, dtype=np.int64), keys
        sides = (one_array(table.column("partition")) for table in (self.data, deletes))
        data_keys, delete_keys = partition_keys(*sides)
        first = self.index._offsets[self.spec_id]
        keys[first : first + len(delete_keys)] = delete_keys
        return data_keys, keys

    @cached_property
    def locations(self) -> pa.Array:
        return one_array(self.data.column("location"))

    def vectors(self) -> Ranges:
        found = self._by_path(self.index._kinds["vector"])
        several = found.counts > 1
        if several.any():
            location = self.locations[int(np.flatnonzero(several)[0])].as_py()
            raise CorruptTableError(location, "it has more than one deletion vector")
        return found

    def of_paths(self) -> Ranges:
        return self._by_path(self.index._kinds["path"])

    def _by_path(self, rows: Numbers) -> Ranges:
        paths = self.index._paths.take(pa.array(rows))
        wanted = paths.unique()
        deletes = self._keyed_deletes(rows, path_codes(paths, wanted))
        keys = path_codes(self.locations, wanted)
        found = ranges_by_key(deletes, self._keyed_data(keys), newer=False)
        self._validate_partitions(found)
        return found

    def _validate_partitions(self, found: Ranges) -> None:
        for data, deletes in found.pairs():
            wrong = np.flatnonzero(self.data_keys[data] != self.delete_keys[deletes])
            if len(wrong):
                delete = self.index.files.column("location")[int(deletes[wrong[0]])].as_py()
                location = self.locations[int(data[wrong[0]])].as_py()
                cause = f"it deletes from {location}, which is in another partition"
                raise CorruptTableError(delete, cause)

    def of_partitions(self) -> Ranges:
        rows = self.index._kinds["partition"]
        found = self._by_partition(rows, newer=False)
        return found.kept(path_overlap(self.locations, self.index.files, rows))

    def equality(self) -> list[Ranges]:
        """Return ranges of equality deletes: of the partition, then of the whole table."""
        groups = []
        for ids, rows in self.index._equality_sets:
            everywhere = self.index._is_global[rows]
            test = equality_overlap(self.data, self.index.files, rows, ids, self.index._schema)
            local = self._by_partition(rows[~everywhere], newer=True)
            groups += [local.kept(test), self._everywhere(rows[everywhere]).kept(test)]
        return groups

    def _by_partition(self, rows: Numbers, *, newer: bool) -> Ranges:
        rows = rows[self.delete_keys[rows] >= 0]
        deletes = self._keyed_deletes(rows, self.delete_keys[rows])
        return ranges_by_key(deletes, self._keyed_data(self.data_keys), newer=newer)

    def _everywhere(self, rows: Numbers) -> Ranges:
        deletes = self._keyed_deletes(rows, np.zeros(len(rows), dtype=np.int64))
        same = np.zeros(self.data.num_rows, dtype=np.int64)
        return ranges_by_key(deletes, self._keyed_data(same), newer=True)

    def _keyed_deletes(self, rows: Numbers, keys: Numbers) -> Keyed:
        return Keyed(rows, keys, self.index._sequence_numbers[rows])

    def _keyed_data(self, keys: Numbers) -> Keyed:
        return Keyed(np.arange(len(keys)), keys, self.sequence_numbers)


def _sequence_numbers(files: pa.Table) -> Numbers:
    """Return data sequence numbers; what v1 wrote has none, which means 0."""
    return np.asarray(one_array(files.column("data_sequence_number")).fill_null(0))


def _with_spec(table: pa.Table, spec_id: int) -> pa.Table:
    """Return delete files without partitions, with the id of their spec."""
    plain = table.drop_columns(
        [name for name in ("partition", "spec_id") if name in table.column_names]
    )
    return plain.append_column("spec_id", pa.array(np.full(table.num_rows, spec_id), pa.int32()))


def delete_file(facts: dict[str, Any]) -> DeleteFile:
    """Return a delete file of its `FACTS`."""
    return DeleteFile(
        content=Content(facts["content"]),
        location=facts["location"],
        file_format=facts["file_format"],
        file_size_in_bytes=facts["file_size_in_bytes"],
        record_count=facts["record_count"],
        equality_ids=tuple(facts["equality_ids"] or ()),
        referenced_data_file=facts["referenced_data_file"],
        content_offset=facts["content_offset"],
        content_size_in_bytes=facts["content_size_in_bytes"],
    )
