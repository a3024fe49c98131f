"""Where facts come from: tables of data files, of delete files, and of manifests.

Each source collects the facts of a column once, at the first leaf that asks for them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from rowlake.model.files import Content
from rowlake.model.schema import Schema, children
from rowlake.model.schema import field_id as id_of
from rowlake.model.transform import partition_type
from rowlake.prune.column_facts import Facts, add_metrics, add_partitions, add_summaries, no_facts
from rowlake.prune.metrics import one_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.partition import PartitionSpec


class FactSource(Protocol):
    """Facts of columns, for `size` files or manifests."""

    @property
    def size(self) -> int:
        """How many files or manifests."""

    def facts(self, field_id: int) -> Facts:
        """Return what is known of the column."""


class _Collected:
    """Facts by field id, each collected at its first use."""

    def __init__(self, table: pa.Table, spec: PartitionSpec, schema: Schema) -> None:
        self.table, self.spec, self.schema = table, spec, schema
        self.size: int = table.num_rows
        self._facts: dict[int, Facts] = {}

    def facts(self, field_id: int) -> Facts:
        """Return what is known of the column."""
        if field_id not in self._facts:
            column = self.schema.by_id[field_id]
            facts = no_facts(self.size, column)
            if field_id in self.outside_lists:
                self.collect(facts, column, field_id)
            self._facts[field_id] = facts
        return self._facts[field_id]

    @cached_property
    def outside_lists(self) -> dict[int, bool]:
        """The fields with one value per row, and whether a parent of theirs may be null."""
        return fields_outside_lists(self.schema)

    def collect(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add what the table says of a column."""
        raise NotImplementedError

    def add_partitions(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add what the partition values say."""
        if any(each.source_id == field_id for each in self.spec.fields):
            partitions = one_array(self.table.column("partition"))
            add_partitions(facts, partitions, self.spec, column, field_id)


class PartitionFacts(_Collected):
    """Facts of files by their partition values alone."""

    def collect(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add partition values."""
        self.add_partitions(facts, column, field_id)


class FileFacts(_Collected):
    """Facts of data files: partition values and metrics."""

    def collect(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add partition values and metrics."""
        self.add_partitions(facts, column, field_id)
        may_null = facts.may_null.copy()
        add_metrics(facts, self.table, column, field_id)
        if self.outside_lists[field_id]:
            facts.may_null = may_null  # writers differ in counting nulls of a parent


class DeleteFacts(_Collected):
    """Facts of the rows that delete files delete."""

    def collect(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add partition values; metrics only of equality columns."""
        by_equality = self._compares(field_id)
        if by_equality.any():
            add_metrics(facts, self.table, column, field_id)
            self._forget(facts, ~by_equality)
        self.add_partitions(facts, column, field_id)

    def _compares(self, field_id: int) -> np.ndarray[Any, Any]:
        """Return where the file holds equality deletes by this column."""
        equality = np.asarray(self.table.column("content")) == Content.EQUALITY_DELETES
        ids = one_array(self.table.column("equality_ids"))
        offsets = np.asarray(ids.offsets)
        hits = np.flatnonzero(np.asarray(ids.values) == field_id)
        hits = hits[(hits >= offsets[0]) & (hits < offsets[-1])]
        found = np.zeros(self.size, dtype=bool)
        found[np.searchsorted(offsets, hits, side="right") - 1] = True
        return np.asarray(equality & found)

    @staticmethod
    def _forget(facts: Facts, rows: np.ndarray[Any, Any]) -> None:
        facts.may_null |= rows
        facts.may_nan |= rows & facts.is_floating
        facts.all_null &= ~rows
        facts.no_numbers &= ~rows
        facts.spans = [span.without(pa.array(rows)) for span in facts.spans]


class ManifestFacts(_Collected):
    """Facts of all the files that a manifest lists: partition summaries."""

    def collect(self, facts: Facts, column: pa.Field, field_id: int) -> None:
        """Add partition summaries."""
        if any(each.source_id == field_id for each in self.spec.fields):
            kind = partition_type(self.spec, self.schema)
            add_summaries(facts, self.table, self.spec, kind, column, field_id)


def fields_outside_lists(schema: Schema) -> dict[int, bool]:
    """Return the fields that have one value per row, and whether a parent of theirs may be null.

    Metrics of what is inside a list or a map speak of elements, not of rows.
    """
    return dict(_outside_lists(list(schema.arrow), nullable_parent=False))


def _outside_lists(fields: list[pa.Field], *, nullable_parent: bool) -> Iterator[tuple[int, bool]]:
    for each in fields:
        number = id_of(each)
        if number is not None:
            yield number, nullable_parent
        if pa.types.is_struct(each.type):
            below = nullable_parent or each.nullable
            yield from _outside_lists(children(each.type), nullable_parent=below)
