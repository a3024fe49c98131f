"""A row-level operation, ready to run: what the SQL and the methods of `Table` make.

Everything that needs Spark's meaning of an expression has been evaluated: source rows are staged
with the values that clauses assign, conditions are staged flags or bound predicates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.merge import Action, When
from rowlake.model.predicate import TRUE
from rowlake.rowlevel.staged import STAGED, Dealing
from rowlake.rowlevel.task import Matching, TaskClause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.column_rules import Identity
    from rowlake.model.predicate import Predicate

# A task holds a few parts of this size at a time; numbers of split parts lie above all others.
PART_BYTES = 128 * 1024 * 1024
SPLIT_PARTS = 1 << 12


@dataclass(frozen=True)
class Staged:
    """Source rows, staged: `rows` of `STAGED`; bounds are those of `keys`, staged columns.

    `split` has the parts that were too large for the memory of a task: the parts they became.
    """

    schema: pa.Schema
    keys: tuple[str, ...] = ()
    dealing: Dealing = field(default_factory=Dealing)
    rows: pa.Table = field(default_factory=STAGED.empty_table)
    split: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def within_memory(self) -> Staged:
        """Return the same rows in parts that each fit into the memory of a task."""
        sizes: dict[int, int] = {}
        numbers: dict[int, list[int]] = {}
        parts = []
        for row in self.rows.select(["part", "size_in_bytes"]).to_pylist():
            part, size = row["part"], row["size_in_bytes"]
            held = numbers.setdefault(part, [part])
            if sizes.get(part, 0) and sizes[part] + size > PART_BYTES:
                held.append(SPLIT_PARTS * (len(held) + 1) + max(part, 0))
                sizes[part] = 0
            sizes[part] = sizes.get(part, 0) + size
            parts.append(held[-1])
        split = {part: tuple(held) for part, held in numbers.items() if len(held) > 1}
        if not split:
            return self
        place = self.rows.schema.get_field_index("part")
        renumbered = pa.array(parts, pa.int32())
        return replace(self, rows=self.rows.set_column(place, "part", renumbered), split=split)


@dataclass(frozen=True)
class RowChange:
    """What to do with which rows.

    - `predicate`: bound; target rows for which it is not TRUE match nothing (the WHERE of DELETE
      and UPDATE, what ON says of the target alone);
    - `rejects_matches`: a match is an error;
    - `snapshot_id`: what positions were found at; None where rows are matched by value;
    - `has_unique_keys`: a key that the source inserts must not be inserted by another writer too,
      whatever the isolation level;
    - `reads_target`: staged values were read from the target itself, so they hold only as long as
      its rows stay what they are; `reads_everywhere`: not only from the rows that match;
    - `table_properties`: properties of the table that are set in the same commit;
    - `makes_columns`: values of generated and of identity columns are among those of the clauses,
      checked where users gave them;
    - `identities`: identity columns that rows to insert have new values of, as they were before.
    """

    verb: str
    clauses: tuple[TaskClause, ...]
    matching: Matching = field(default_factory=Matching)
    predicate: Predicate = TRUE
    staged: Staged | None = None
    checks_cardinality: bool = False
    skips_unchanged: bool = False
    rejects_matches: bool = False
    snapshot_id: int | None = None
    has_unique_keys: bool = False
    reads_target: bool = False
    reads_everywhere: bool = False
    table_properties: Mapping[str, str] = field(default_factory=dict)
    makes_columns: bool = False
    identities: Mapping[str, Identity] = field(default_factory=dict)

    @property
    def touches_unmatched(self) -> bool:
        """True where target rows without a match change too."""
        return any(clause.when is When.NOT_MATCHED_BY_SOURCE for clause in self.clauses)

    @property
    def inserts(self) -> bool:
        """True where source rows without a match are inserted."""
        return any(clause.when is When.NOT_MATCHED for clause in self.clauses)

    @property
    def deletes_all_matched(self) -> bool:
        """True where the predicate alone says which rows go."""
        if len(self.clauses) != 1 or self.staged is not None:
            return False
        (only,) = self.clauses
        return only.action is Action.DELETE and only.predicate is None
