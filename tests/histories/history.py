"""One random history of one table: every step is run, told to the oracle, and checked.

A history is a list of sources of randomness: the first makes the table, each other one makes a step
of its own. So a history that fails can be cut down step by step.
"""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.transforms import parse_transform
from pyiceberg.types import BooleanType, DecimalType, DoubleType, LongType, StringType

from rowlake.errors import CardinalityError
from rowlake.model.partition import OrderBy
from tests.histories.checks import LINEAGE, Files, check_last_updated, check_row_ids
from tests.histories.draws import KINDS, MODES, draw_operation
from tests.histories.operations import Delete, Options, expected
from tests.histories.upkeep import draw_upkeep, expire, meanwhile
from tests.histories.values import PROMOTED, Column, Row, as_tuples, read_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tests.histories.operations import Expected, Operation

TYPES = {
    "long": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "boolean": BooleanType(),
    "wide decimal": DecimalType(12, 2),
}
FIRST = (("id", "int"), ("note", "string"), ("qty", "long"), ("f", "float"), ("d", "date"))
MORE = (("who", "struct"), ("some", "list"), ("amount", "decimal"), ("ok", "boolean"))
FORMATS = ("parquet", "parquet", "parquet", "parquet", "orc", "avro")
METRICS = ("truncate(16)", "truncate(16)", "truncate(1)", "full", "counts", "none")
NAMES = ("a b", "ä", "select", "Mixed", "x1", "x2")
LAYOUTS: tuple[list[str], ...] = (
    [],
    [],
    ["id"],
    ["bucket(2, id)"],
    ["truncate(1, note)"],
    ["bucket(2, id)", "days(d)"],
    ["note", "truncate(2, id)"],
)
TRANSFORMS = {
    "int": ("identity", "bucket[4]", "truncate[2]"),
    "long": ("identity", "bucket[3]", "truncate[100]"),
    "string": ("identity", "bucket[2]", "truncate[2]"),
    "date": ("identity", "month", "bucket[2]"),
    "boolean": ("identity",),
}
PROPERTIES = {
    "write.delete.granularity": ("file", "partition"),
    "write.delete.mode": ("copy-on-write", "merge-on-read"),
    "write.update.mode": ("copy-on-write", "merge-on-read"),
    "write.merge.mode": ("copy-on-write", "merge-on-read"),
}
CHANGES = ("add", "drop", "rename", "promote", "spec", "property", "version", "branch", "rollback")
_NUMBERS = count()


class Divergence(AssertionError):
    """The table is not what it should be; the text tells the history."""


class History:
    """A table, and the rows that each of its branches should have."""

    kinds: Sequence[str] = KINDS
    changes: Sequence[str] = CHANGES

    def __init__(
        self,
        lake: Any,
        random: Random,
        run: Callable[[Any, Operation], Any],
        *,
        blind: bool = True,
        formats: Sequence[str] = FORMATS,
    ) -> None:
        self._run, self._blind = run, blind
        self.log: list[str] = []
        self.operations = 0
        more = [each for each in MORE if random.random() < 0.4]
        self.columns = [Column(n, *each) for n, each in enumerate((*FIRST, *more))]
        self._next = len(self.columns)
        self.rows: dict[str, list[Row]] = {"main": []}
        self._at: dict[int, list[Row]] = {}
        self.table = self._created(lake, random, formats)
        self._files = self._watched()
        self._ids: dict[str, list[tuple[int, int]]] = {}
        self._checked: dict[str, str | None] = {}  # branch -> the metadata it was right in

    def _watched(self) -> Any:
        return Files(self.table)

    def _created(self, lake: Any, random: Random, formats: Sequence[str]) -> Any:
        properties = {
            "format-version": random.choice(("2", "3")),
            "write.delete.granularity": random.choice(("file", "partition")),
            "commit.manifest.min-count-to-merge": random.choice(("2", "4", "100")),
            "write.parquet.row-group-size-bytes": random.choice(("1", *["134217728"] * 3)),
            "write.parquet.page-row-limit": random.choice(("1", "20000")),
            "write.format.default": random.choice(formats),
            "write.delete.format.default": random.choice(formats),
            "write.metadata.metrics.default": random.choice(METRICS),
            "write.object-storage.enabled": random.choice(("true", *["false"] * 5)),
        }
        layout = random.choice(LAYOUTS)
        self.log.append(f"create {layout} {properties}")
        schema = pa.schema([(column.name, column.arrow) for column in self.columns])
        name = f"db.history{next(_NUMBERS)}"
        sort_by = [OrderBy(("qty",))] if random.random() < 0.15 else []
        return lake.create_table(
            name, schema, partition_by=layout, properties=properties, sort_by=sort_by
        )

    # ------------------------------------------------------------------ steps

    def step(self, random: Random) -> None:
        """Do one thing, and check the table."""
        try:
            chance = random.random()
            if chance < 0.22:
                kind = random.choice(self.changes)
                getattr(self, f"_{kind}")(random)
            elif chance < 0.36:
                self._upkeep(random)
            else:
                self._operate(random)
        except Exception as error:
            raise self.divergence(f"{type(error).__name__}: {error}") from error

    def divergence(self, words: str) -> Divergence:
        """Return the error that says what is wrong, and the history up to here."""
        return Divergence("\n".join([words, *self.log]))

    def finish(self) -> None:
        """Check all that steps did not look at."""
        try:
            for branch in self.rows:
                if self._checked.get(branch) != self.table.handle.version:
                    self._check_rows(branch)
            head = self._head("main")
            if head is not None:
                self._files.check_listing(head)
            for snapshot_id, rows in list(self._at.items())[-2:-1]:
                assert self.table.arrow(snapshot_id=snapshot_id).num_rows == len(rows)
        except Exception as error:
            raise self.divergence(f"{type(error).__name__}: {error}") from error

    def _upkeep(self, random: Random) -> None:
        """Compact, convert or expire; at times another operation lands while that goes on."""
        branch = self._some_branch(random)
        if self._head(branch) is None:
            return
        if random.random() < 0.15:
            self._note(expire(random, self.table))
            left = {each.snapshot_id for each in self.table.handle.metadata.snapshots}
            self._at = {at: rows for at, rows in self._at.items() if at in left}
            self._check_rows(branch)
            return
        words, work = draw_upkeep(random, self.columns, branch)
        other = (lambda: self._operate(random, branch)) if random.random() < 0.5 else None
        self._note(f"{words}{', beside:' if other else ''}")
        before = self._ids.get(branch) if other is None else None
        self._files.others_write = True
        with meanwhile(other):
            work(self.table)
        self._files.others_write = False
        self._check_rows(branch)
        head = self._head(branch)
        assert head is not None
        self._at[head] = self.rows[branch]
        self._files.check(head)
        after = self._ids.get(branch)
        if before and after and (None, None) not in before:
            assert sorted(before) == sorted(after), "maintenance changed the lineage of rows"

    def _some_branch(self, random: Random) -> str:
        return random.choice(sorted(self.rows)) if random.random() < 0.4 else "main"

    def _expected(self, operation: Operation, rows: list[Row]) -> Expected:
        """Return what an operation should do to the rows."""
        return expected(operation, rows)

    def _operate(self, random: Random, on: str | None = None) -> None:
        kinds = [kind for kind in self.kinds if self._blind or not kind.startswith("blind")]
        branch = on or self._some_branch(random)
        kind = "append" if not self.rows[branch] and random.random() < 0.7 else random.choice(kinds)
        options = self._options(random, branch)
        operation = self._drawn(random, kind, options)
        self.log.append(str(operation))
        self.operations += 1
        should = self._expected(operation, self.rows[branch])
        before = self._ids.get(branch)
        head = self._head(branch)
        try:
            result = self._run(self.table, operation)
        except CardinalityError as error:
            assert should.rows is None, f"refused: {error}"
            assert self._head(branch) == head
            self._files.check_strays()
            return
        assert should.rows is not None, "several rows of one key were taken"
        self._check_counts(result, should)
        self.rows[branch] = should.rows
        self._check_rows(branch)
        head = self._head(branch)
        if head is not None:
            self._at[head] = should.rows
            self._files.check(head)
            self._check_ids(operation, head, before, should)

    def _drawn(self, random: Random, kind: str, options: Options) -> Operation:
        found: Operation = draw_operation(random, kind, self.columns, options)
        return found

    def _options(self, random: Random, branch: str) -> Options:
        mode = random.choice(MODES)
        lazily = mode != "copy-on-write" and random.random() < 0.15
        kind = "vector" if self.table.handle.can.deletion_vectors else "position"
        return Options(branch, mode, kind if lazily else None)

    def _check_ids(self, operation: Operation, head: int, before: Any, should: Expected) -> None:
        after = self._ids.get(operation.options.branch)
        if after is None or before is None or (None, None) in before:
            return
        if isinstance(operation, Delete) and operation.blind:
            lost = len(before) - len(after)
        elif getattr(operation, "blind", False):
            lost = len(before) + should.inserted - len(after)
        else:
            lost = should.deleted
        snapshot = self.table.handle.metadata.snapshot_by_id(head)
        check_row_ids(before, after, lost=lost, fresh=should.inserted)
        check_last_updated(dict(before), dict(after), should.updated, snapshot.sequence_number)

    def _check_counts(self, result: Any, should: Expected) -> None:
        found = (
            result.rows_updated,
            result.rows_deleted,
            result.rows_inserted,
            result.rows_unchanged,
        )
        wanted = (should.updated, should.deleted, should.inserted, should.unchanged)
        assert found == wanted, f"updated, deleted, inserted, unchanged: {found}, not {wanted}"

    def _check_rows(self, branch: str) -> None:
        names = [column.name for column in self.columns]
        handle = self.table.handle
        if handle.can.row_ids:
            found = self.table.arrow([*names, *LINEAGE], ref=self._ref(branch))
            self._ids[branch] = [tuple(row.values()) for row in found.select(LINEAGE).to_pylist()]
            found = found.drop_columns(LINEAGE)
        else:
            found = self.table.arrow(ref=self._ref(branch))
        assert found.column_names == [column.name for column in self.columns]
        got, want = read_tuples(found), as_tuples(self.rows[branch], self.columns)
        assert got == want, f"{branch} has\n  {got}\nnot\n  {want}"
        self._checked[branch] = handle.version

    def _ref(self, branch: str) -> str | None:
        return None if branch == "main" else branch

    def _head(self, branch: str) -> int | None:
        found = self.table.handle.refs.get(branch)
        return None if found is None else found.snapshot_id

    # ------------------------------------------------------------------ changes of the table

    def _note(self, text: str) -> None:
        self.log.append(text)

    def _free_name(self, random: Random) -> str | None:
        used = {name.lower() for name in (*self._field_names(), *self._column_names())}
        free = [name for name in NAMES if name.lower() not in used]
        return random.choice(free) if free else None

    def _column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def _field_names(self) -> list[str]:
        """Return the names of partition fields, of all specs."""
        specs = self.table.handle.metadata.partition_specs
        return [field.name for spec in specs for field in spec.fields]

    def _add(self, random: Random) -> None:
        name = self._free_name(random)
        if name is None or len(self.columns) > 9:
            return
        column = Column(self._next, name, random.choice(sorted(TYPES)))
        # Delta's defaults are for rows to come: no column is added with one.
        has_defaults = self.table.handle.can.column_defaults and self.table.format != "delta"
        if has_defaults and random.random() < 0.4:
            default = column.draw(random, 0)
            if default == default and default not in (math.inf, -math.inf):  # JSON has no others
                column = Column(self._next, name, column.kind, default)
        self._next += 1
        self._note(f"add {column}")
        with self._new_schema() as update:
            update.add_column((name,), TYPES[column.kind], default_value=column.default)
        self.columns = [*self.columns, column]

    def _drop(self, random: Random) -> None:
        free = self._droppable()
        keys = [column for column in self.columns if column.kind in ("int", "long", "string")]
        if not free or len(self.columns) < 4 or (len(keys) < 2 and free[0] in keys):
            return
        column = random.choice(free)
        if column in keys and len(keys) < 2:
            return
        self._note(f"drop {column.name}")
        with self._new_schema() as update:
            update.delete_column((column.name,))
        self.columns = [each for each in self.columns if each != column]

    def _droppable(self) -> list[Column]:
        """Return the columns that neither a partition spec nor a sort order is of."""
        specs = self.table.handle.metadata.partition_specs
        used = {field.source_id for spec in specs for field in spec.fields}
        used |= {
            field.source_id
            for order in self.table.handle.metadata.sort_orders
            for field in order.fields
        }
        schema = self.table.schema
        return [c for c in self.columns if schema.find_field(c.name).field_id not in used]

    def _rename(self, random: Random) -> None:
        name = self._free_name(random)
        if name is not None:
            column = random.choice(self.columns)
            self._note(f"rename {column.name} to {name}")
            with self._new_schema() as update:
                update.rename_column((column.name,), name)
            self._replace(column, Column(column.key, name, column.kind, column.default))

    def _promote(self, random: Random) -> None:
        able = [column for column in self.columns if column.kind in PROMOTED]
        if able:
            column = random.choice(able)
            kind = PROMOTED[column.kind]
            self._note(f"promote {column.name}")
            with self._new_schema() as update:
                update.update_column((column.name,), TYPES[kind])
            self._replace(column, Column(column.key, column.name, kind, column.default))

    def _new_schema(self) -> Any:
        """Return PyIceberg's builder of the next schema."""
        return self.table.evolve().update_schema()

    def _replace(self, old: Column, new: Column) -> None:
        self.columns = [new if each == old else each for each in self.columns]

    def _spec(self, random: Random) -> None:
        current = [field.name for field in self.table.spec.fields]
        if current and random.random() < 0.5:
            name = random.choice(current)
            self._note(f"remove partition field {name}")
            with self.table.evolve().update_spec() as update:
                update.remove_field(name)
            return
        column = random.choice([c for c in self.columns if c.kind in TRANSFORMS])
        transform = random.choice(TRANSFORMS[column.kind])
        source = self.table.schema.find_field(column.name).field_id
        if any(field.source_id == source for field in self.table.spec.fields):
            return
        number = self.table.handle.metadata.last_partition_id  # specs may be expired, ids stay
        self._note(f"add partition field {transform} of {column.name}")
        with self.table.evolve().update_spec() as update:
            update.add_field(column.name, parse_transform(transform), f"part_{number}")

    def _property(self, random: Random) -> None:
        name = random.choice(sorted(PROPERTIES))
        value = random.choice(PROPERTIES[name])
        self._note(f"set {name} to {value}")
        self.table.set_properties({name: value})

    def _version(self, random: Random) -> None:
        if self.table.format_version < 3 and random.random() < 0.6:
            self._note("upgrade to version 3")
            self.table.set_properties({"format-version": "3"})

    def _forget_ids(self) -> None:
        self._ids = {}

    def _branch(self, random: Random) -> None:
        if len(self.rows) < 3 and self._head("main") is not None:
            name = f"b{len(self.rows)}"
            self._note(f"create branch {name}")
            self.table.create_branch(name)
            self._forget_ids()
            self.rows[name] = self.rows["main"]

    def _rollback(self, random: Random) -> None:
        known: list[int] = []
        at = self._head("main")
        while at is not None:
            known += [at] if at in self._at else []
            snapshot = self.table.handle.metadata.snapshot_by_id(at)
            at = snapshot.parent_snapshot_id if snapshot else None  # None: it has expired
        if known:
            chosen = random.choice(known[:4])
            self._note(f"roll back by {known.index(chosen)}")
            self.table.rollback_to(snapshot_id=chosen)
            self._forget_ids()
            self.rows["main"] = self._at[chosen]


def run_history(
    lake: Any,
    randoms: Sequence[Random],
    run: Callable[[Any, Operation], Any],
    *,
    of: type[History] = History,
    **options: Any,
) -> History:
    """Run one history; raise `Divergence` where the table and the oracle part."""
    first, *steps = randoms
    history = of(lake, first, run, **options)
    for random in steps:
        history.step(random)
    history.finish()
    return history
