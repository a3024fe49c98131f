"""Columns of the table out of a data file: which leaves to read, and what to make of them.

Comes in: a file's schema with ids, the table's fields that are wanted, and the identity
partition values of the file. Goes out: `Columns`, which names the leaves to read; bound to the
leaves that were read it turns batches of the file into arrays of the table's types. The rules
are the spec's ("Column Projection"): by id; for what the file lacks the identity partition
value, then the initial default, then null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import CorruptTableError
from rowlake.model.schema import field_id
from rowlake.scan.convert import Converter, TypeMismatchError
from rowlake.scan.nested import constant, converter, default_of, filled, leaves_of
from rowlake.scan.shape import leaf_ranges, pruned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext
    from rowlake.scan.ids import FileSchema


def identity_constants(context: ScanContext, task: FileTask) -> dict[int, Any]:
    """Return the file's identity partition values by the id of their source column."""
    spec = context.specs.get(task.spec_id)
    fields = () if spec is None else spec.fields
    return {
        field.source_id: task.partition[field.field_id]
        for field in fields
        if field.transform == "identity" and field.field_id in task.partition
    }


@dataclass(frozen=True)
class Columns:
    """Wanted columns of one file."""

    location: str
    file: FileSchema
    targets: tuple[pa.Field, ...]
    constants: Mapping[int, Any]

    @cached_property
    def leaves(self) -> frozenset[int]:
        """The leaves of the file that these columns need."""
        return frozenset[int]().union(*self.leaves_by_target)

    @cached_property
    def leaves_by_target(self) -> list[set[int]]:
        """The leaves of the file that each column needs; none for constants."""
        ranges = list(leaf_ranges(self.file.arrow))
        sources = self._sources(self.file.arrow)
        return [
            set() if source is None else leaves_of(*ranges[source], target)
            for target, source in zip(self.targets, sources, strict=True)
        ]

    def bind(self, kept: frozenset[int]) -> BoundColumns:
        """Return the columns for batches that have just these leaves of the file."""
        fields = pruned(self.file.arrow, kept)
        sources = self._sources(fields)
        parts = [
            self._part(target, source, fields)
            for target, source in zip(self.targets, sources, strict=True)
        ]
        return BoundColumns(self.targets, parts)

    def constant_at(self, index: int) -> pa.Scalar | None:
        """Return the one value of a wanted column that the file does not have, else None."""
        if self._sources(self.file.arrow)[index] is not None:
            return None
        return self._part(self.targets[index], None, []).value

    def _sources(self, fields: Sequence[pa.Field] | pa.Schema) -> list[int | None]:
        places = {field_id(field): index for index, field in enumerate(fields)}
        places.pop(None, None)
        if self.file.inferred:  # partition values come before name mapping
            places = {key: at for key, at in places.items() if key not in self.constants}
        return [places.get(field_id(target)) for target in self.targets]

    def _part(self, target: pa.Field, source: int | None, fields: Sequence[pa.Field]) -> Part:
        try:
            if source is not None:
                return Part(source, converter(fields[source], target, self.constants))
            known = field_id(target) or 0
            if known in self.constants:
                return Part(None, value=constant(self.constants[known], target))
            return Part(None, value=default_of(target))
        except TypeMismatchError as error:
            raise CorruptTableError(self.location, f"column {target.name} is {error}") from error


@dataclass(frozen=True)
class Part:
    """One column: of the file (`source` is its index), or a constant."""

    source: int | None
    convert: Converter | None = None
    value: pa.Scalar | None = None

    def array(self, batch: pa.RecordBatch | None, num_rows: int) -> pa.Array:
        """Return the column for a batch of the file."""
        if self.source is None or batch is None:
            return filled(self.value, num_rows)
        found = batch.column(self.source)
        return found if self.convert is None else self.convert(found)


class BoundColumns:
    """Columns with their places in the batches to come."""

    def __init__(self, targets: tuple[pa.Field, ...], parts: Sequence[Part]) -> None:
        self.targets = targets
        self._used = sorted({part.source for part in parts if part.source is not None})
        places: dict[int | None, int] = {old: new for new, old in enumerate(self._used)}
        self._parts = [Part(places.get(part.source), part.convert, part.value) for part in parts]

    def arrays(
        self,
        batch: pa.RecordBatch | None,
        num_rows: int,
        mask: NDArray[np.bool_] | None = None,
    ) -> list[pa.Array]:
        """Return the columns for a batch of the file (None: it was not read).

        `num_rows` counts the rows that come out; `mask` says which of the batch they are.
        """
        if batch is not None and self._used:
            batch = batch.select(self._used)
            if mask is not None:
                batch = batch.filter(pa.array(mask))
        return [part.array(batch, num_rows) for part in self._parts]
