"""Histories of tables with a key index, which others know nothing of, and which gets damaged.

Before a step an index file may vanish, be cut off, be damaged or be that of another file; PyIceberg
may append rows; the keys of the index may change. After each step rows are looked up by key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowlake.model.predicate import Leaf, Op
from rowlake.scan.key_index import clear_key_indexes
from tests.histories.delta import DeltaHistory
from tests.histories.draws import draw_operation
from tests.histories.history import History
from tests.histories.operations import expected
from tests.histories.values import as_arrow, as_tuples, holds, read_tuples

if TYPE_CHECKING:
    from random import Random

    from tests.histories.values import Column

EAGER = {"rowlake.index.min-rows": "1", "rowlake.index.min-rows-per-key": "0"}
_KEYS = ("int", "long", "string", "date", "float", "double", "boolean", "decimal", "wide decimal")
_HARM = ("missing", "truncated", "flipped", "foreign")


class _Indexed(History):
    """Mixed into a history: what happens to the index, and what must hold in spite of it."""

    def step(self, random: Random) -> None:
        """Do one thing to the index or to the table, and look rows up."""
        try:
            if len(self.log) == 1 or random.random() < 0.1:
                self._index(random)
            if random.random() < 0.4:
                self._harm(random)
            self._others(random)
        except Exception as error:
            raise self.divergence(f"{type(error).__name__}: {error}") from error
        super().step(random)
        try:
            self._look_up(random)
        except Exception as error:
            raise self.divergence(f"{type(error).__name__}: {error}") from error

    def _able(self) -> list[Column]:
        return [column for column in self.columns if column.kind in _KEYS]

    def _index(self, random: Random) -> None:
        able = self._able()
        first = [column for column in able if column.kind in ("int", "long")][:1]
        keys = first if first and random.random() < 0.6 else random.sample(able, 1)
        rest = [column for column in able if column not in keys]
        keys = [*keys, random.choice(rest)] if rest and random.random() < 0.2 else keys
        self.table.set_properties(EAGER)
        self._note(f"create index ({', '.join(column.name for column in keys)})")
        self.table.create_index([column.name for column in keys])

    def _harm(self, random: Random) -> None:
        root = Path(self.table.location.removeprefix("file://"))
        found = sorted(root.rglob("*.keys.puffin"))
        if not found:
            return
        kind, at = random.choice(_HARM), random.randrange(len(found))
        place = found[at]
        data = bytearray(place.read_bytes())
        self._note(f"index {at} is {kind}")
        if kind == "missing":
            place.unlink()
        elif kind == "truncated":
            place.write_bytes(data[: random.randrange(len(data))])
        elif kind == "foreign":
            place.write_bytes(random.choice(found).read_bytes())
        else:
            for _ in range(random.randint(1, 3)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            place.write_bytes(data)
        if random.random() < 0.5:
            clear_key_indexes()

    def _others(self, random: Random) -> None:
        """Have another engine write, where it can."""

    def _look_up(self, random: Random) -> None:
        able = [column for column in self._able() if column.kind != "boolean"]
        rows = self.rows["main"]
        if not able or not rows:
            return
        column = random.choice(able[:2] if random.random() < 0.7 else able)
        values = {column.of(random.choice(rows)) for _ in range(random.randint(1, 3))} - {None}
        if not values:
            return
        wanted = Leaf((column.name,), Op.IN, tuple(sorted(values, key=repr)))
        found = read_tuples(self.table.arrow(where=wanted))
        named = [{c.name: c.of(row) for c in self.columns} for row in rows]
        fitting = [row for row, held in zip(rows, named, strict=True) if holds(wanted, held)]
        want = as_tuples(fitting, self.columns)
        assert found == want, f"{wanted} finds\n  {found}\nnot\n  {want}"


class IndexHistory(_Indexed):
    """An Iceberg table with an index; PyIceberg writes to it too."""

    def _others(self, random: Random) -> None:
        simple = not self.table.spec.fields and self.table.format_version < 3
        if not simple or random.random() > 0.3 or any(c.default is not None for c in self.columns):
            return
        options = self._options(random, "main")
        operation = draw_operation(random, "append", self.columns, options)
        self._note(f"PyIceberg: {operation}")
        rows = as_arrow(operation.rows, operation.columns)
        found: Any = self.table.to_pyiceberg()
        found.append(rows.cast(found.schema().as_arrow()))
        self.rows["main"] = expected(operation, self.rows["main"]).rows or []
        self._forget_ids()
        self._check_rows("main")
        head = self._head("main")
        assert head is not None
        self._at[head] = self.rows["main"]
        self._files.check(head)


class DeltaIndexHistory(_Indexed, DeltaHistory):
    """A Delta table with an index."""
