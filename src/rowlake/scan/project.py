"""Project a data file to table columns: which leaves to read, and how to convert them.

Comes in: a file's schema with ids, the table's fields that are wanted, and the identity
partition values of the file. Goes out: `Columns`, which names the leaves to read; bound to the
leaves that were read it turns batches of the file into arrays of the table's types. The rules
are the spec's ("Column Projection"): by id; for what the file lacks the identity partition
value, then the initial default, then null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import CorruptTableError
from rowlake.model.schema import field_id
from rowlake.scan.convert import Converter, TypeMismatchError
from rowlake.scan.nested import constant, converter, default_of, filled, leaves_of
from rowlake.scan.shape import pruned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext
    from rowlake.scan.ids import FileSchema

# Files of a table have few schemas; where each has its own there is nothing to share.
MOST_SCHEMAS = 16


def identity_constants(context: ScanContext, task: FileTask) -> dict[int, Any]:
    """Return the file's identity partition values by the id of their source column."""
    spec = context.specs.get(task.spec_id)
    fields = () if spec is None else spec.fields
    return {
        field.source_id: task.partition[field.field_id]
        for field in fields
        if field.transform == "identity" and field.field_id in task.partition
    }


def same_schema(held: dict[Any, Any], schema: FileSchema) -> dict[str, Any]:
    """Return what is cached for files of this schema; only the first few schemas are cached."""
    known: list[tuple[FileSchema, dict[str, Any]]] = held.setdefault("schemas", [])
    for other, found in known:
        if other.inferred == schema.inferred and other.arrow.equals(
            schema.arrow, check_metadata=True
        ):
            return found
    made: dict[str, Any] = {}
    if len(known) < MOST_SCHEMAS:
        known.append((schema, made))
    return made


@dataclass(frozen=True)
class Columns:
    """Wanted columns of one file, or of several that have the same schema."""

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
        return [
            set() if source is None else leaves_of(*self.file.fields[source], target)
            for target, source in zip(self.targets, self._sources, strict=True)
        ]

    @cached_property
    def _bound(self) -> dict[frozenset[int], BoundColumns]:
        return {}

    def bind(self, kept: frozenset[int]) -> BoundColumns:
        """Return the columns for batches that have just these leaves of the file."""
        found = self._bound.get(kept)
        if found is None:
            found = self._bound[kept] = self._bind(kept)
        return found

    def _bind(self, kept: frozenset[int]) -> BoundColumns:
        present = [bool(kept.intersection(leaves)) for _, leaves in self.file.fields]
        fields = pruned(self.file.fields, kept)
        places = list(accumulate(present, initial=0))
        parts = [
            self._part(
                target,
                places[source] if source is not None and present[source] else None,
                fields,
            )
            for target, source in zip(self.targets, self._sources, strict=True)
        ]
        return BoundColumns(self.targets, parts)

    def constant_at(self, index: int) -> pa.Scalar | None:
        """Return the one value of a wanted column that the file does not have, else None."""
        if self._sources[index] is not None:
            return None
        return self._part(self.targets[index], None, []).value

    @cached_property
    def _sources(self) -> list[int | None]:
        """The place of each wanted column in the file; None where the file does not have it."""
        places = self.file.places
        if self.file.inferred:  # partition values come before name mapping
            places = {key: at for key, at in places.items() if key not in self.constants}
        ids = [field_id(target) for target in self.targets]
        return [None if known is None else places.get(known) for known in ids]

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
