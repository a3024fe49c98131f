"""Files of one table -> the same files for its mirror (`WRITTEN_FILES`).

Ids of columns become those of the mirror, partition values those of its spec, and a vector keeps
its place under the name that the mirror's format has for its container. What the mirror cannot hold
is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.errors import InternalError, UnsupportedFeatureError
from rowlake.model.files import (
    ENCODED_PARTITION,
    INLINE_VECTOR,
    PUFFIN,
    WRITTEN_FILES,
    Content,
    are_vectors,
)
from rowlake.model.schema import field_id
from rowlake.model.values import encode_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.format import FilesBySpec
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

_MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
_LOCAL = r"^(?i:file):/+"
# What belongs to one table alone.
_LEFT_OUT = ("key_metadata", "equality_ids", "sort_order_id", "first_row_id")


@dataclass(frozen=True)
class Translation:
    """From a table to its mirror, each as it is seen now."""

    source: TableView
    target: TableView
    storage: Storage

    @cached_property
    def ids(self) -> dict[int, int]:
        """The ids of the mirror's columns by those of the table."""
        found = {}
        for path, one in self.source.schema.walk():
            twin = self.target.schema.find(path, case_sensitive=True)
            if twin is not None:
                found[int(field_id(one) or 0)] = int(field_id(twin) or 0)
        return found

    @cached_property
    def _keeps_ids(self) -> bool:
        return all(number == twin for number, twin in self.ids.items())

    def data(self, files: FilesBySpec) -> pa.Table:
        """Return data files as the mirror adds them."""
        return _all([self._data(spec_id, one) for spec_id, one in files.items()])

    def vectors(self, files: FilesBySpec) -> pa.Table:
        """Return deletion vectors as the mirror adds them; other deletes are refused."""
        return _all([self._vectors(spec_id, one) for spec_id, one in files.items()])

    def _data(self, spec_id: int, files: pa.Table) -> pa.Table:
        odd = files.filter(pc.not_equal(files["file_format"], "PARQUET"))
        if odd.num_rows:
            kind, place = odd["file_format"][0].as_py(), odd["location"][0].as_py()
            raise self._refused(f"it has {kind} files ({place}); both formats read Parquet alone")
        found = {name: _one(files[name]) for name in WRITTEN_FILES.names}
        if not self._keeps_ids:
            found |= {name: _renumbered(found[name], self.ids) for name in _MAPS}
        found["record_count"] = self._counts(files)
        return self._table(spec_id, found, files)

    def _vectors(self, spec_id: int, files: pa.Table) -> pa.Table:
        self._validate_vectors(files)
        found = {name: _one(files[name]) for name in WRITTEN_FILES.names}
        container = self.target.layout.vectors
        kind = PUFFIN if container is None else container.file_format
        found["file_format"] = pa.repeat(pa.scalar(kind), files.num_rows)
        return self._table(spec_id, found, files)

    def _validate_vectors(self, files: pa.Table) -> None:
        formats = _one(files["file_format"])
        if pc.any(pc.equal(files["content"], int(Content.EQUALITY_DELETES)), min_count=0).as_py():
            raise self._refused(
                "it has equality deletes, which only Iceberg knows; convert_equality_deletes and "
                "a compaction make others of them"
            )
        if not pc.all(are_vectors(formats), min_count=0).as_py():
            raise self._refused(
                "it has position delete files; mirrors share deletion vectors (format version 3), "
                "or tables without deletes"
            )
        if pc.any(pc.equal(formats, INLINE_VECTOR), min_count=0).as_py():
            raise self._refused("it has deletion vectors that are kept in its log")

    def _table(self, spec_id: int, found: dict[str, pa.Array], files: pa.Table) -> pa.Table:
        count = files.num_rows
        found["spec_id"] = pa.repeat(pa.scalar(self.target.default_spec_id, pa.int32()), count)
        found["partition"] = self._partitions(spec_id, files)
        for name in _LEFT_OUT:
            found[name] = pa.nulls(count, WRITTEN_FILES.field(name).type)
        return pa.Table.from_arrays(
            [found[name] for name in WRITTEN_FILES.names], WRITTEN_FILES.names
        ).cast(WRITTEN_FILES)

    def _partitions(self, spec_id: int, files: pa.Table) -> pa.Array:
        """Return the values of the mirror's partition columns."""
        wanted = self.target.spec.fields
        if not wanted:
            return pa.array([[]] * files.num_rows, ENCODED_PARTITION)
        fields = self.source.specs[spec_id].fields
        places = {
            self.ids.get(one.source_id): index
            for index, one in enumerate(fields)
            if one.transform == "identity"
        }
        if not all(one.source_id in places for one in wanted):
            raise InternalError(f"Files of spec {spec_id} lack a partition value of the mirror.")
        struct = _one(files["partition"])
        values = [pc.struct_field(struct, places[one.source_id]) for one in wanted]
        return encode_partitions(pa.StructArray.from_arrays(values, [one.name for one in wanted]))

    def _counts(self, files: pa.Table) -> pa.Array:
        """Return the rows of files; counted in the file where nobody has."""
        known = _one(files["record_count"])
        if not known.null_count:
            return known
        pairs = zip(known.to_pylist(), files["location"].to_pylist(), strict=True)
        return pa.array([self._count(at) if n is None else n for n, at in pairs], pa.int64())

    def _count(self, location: str) -> int:
        with self.storage.open_input(location) as stream:
            return int(pq.read_metadata(stream).num_rows)

    def _refused(self, cause: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"Cannot mirror {self.source.name}: {cause}. The mirror stays as it was."
        )


def one_spelling(files: FilesBySpec) -> FilesBySpec:
    """Return files of this machine under plain paths: logs and manifests spell them differently."""
    return {spec_id: _spelled(one) for spec_id, one in files.items()}


def _spelled(files: pa.Table) -> pa.Table:
    for name in ("location", "referenced_data_file"):
        plain = pc.replace_substring_regex(files[name], _LOCAL, "/")
        files = files.set_column(files.schema.get_field_index(name), name, plain)
    return files


def locations_in(files: FilesBySpec) -> set[str]:
    """Return where files are."""
    return {place for one in files.values() for place in one["location"].to_pylist()}


def vector_keys(files: FilesBySpec) -> dict[tuple[str, int | None], str | None]:
    """Return the keys of delete files (`DeleteFile.key`), each with its data file."""
    found: dict[tuple[str, int | None], str | None] = {}
    names = ("location", "content_offset", "referenced_data_file")
    for one in files.values():
        rows = zip(*(one[name].to_pylist() for name in names), strict=True)
        found |= {(place, offset): of for place, offset, of in rows}
    return found


def _all(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([WRITTEN_FILES.empty_table(), *tables]).combine_chunks()


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _renumbered(maps: pa.MapArray, ids: Mapping[int, int]) -> pa.MapArray:
    """Return maps by field id with other ids; what has none is left out."""
    offsets = np.asarray(maps.offsets)
    first, last = offsets[0], offsets[-1]
    keys = np.asarray(maps.keys[first:last])
    old = np.array(sorted(ids), np.int64)
    new = np.array([ids[one] for one in old.tolist()], np.int32)
    places = np.searchsorted(old, keys).clip(max=max(len(old) - 1, 0))
    known = old[places] == keys if len(old) else np.zeros(len(keys), np.bool_)
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
    ends = counts[offsets - first].astype(np.int32)
    picked = pa.array(new[places[known]] if len(old) else [], pa.int32())
    items = maps.items[first:last].filter(pa.array(known))
    mask = maps.is_null() if maps.null_count else None
    return pa.MapArray.from_arrays(pa.array(ends), picked, items, maps.type, mask=mask)
