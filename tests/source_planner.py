"""A planner of the data source for tests: rows that the options ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import TableNotFoundError
from rowlake.model.predicate import leaves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = pa.schema(
    [pa.field("n", pa.int64()), pa.field("u", pa.binary(16), metadata={"rowlake:type": "uuid"})]
)


def rows_of(task: tuple[int, int]) -> Any:
    numbers = list(range(*task))
    uuids = [number.to_bytes(16, "big") for number in numbers]
    yield pa.RecordBatch.from_pydict({"n": numbers, "u": uuids}, SCHEMA)


@dataclass(frozen=True)
class Numbers:
    """`tasks` times ten numbers; a filter on n prunes whole tasks."""

    tasks: int

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def plan(self, predicate: Any) -> tuple[Any, Sequence[Any]]:
        spans = [(ten * 10, ten * 10 + 10) for ten in range(self.tasks)]
        wanted = [leaf.value for leaf in leaves(predicate) if leaf.values] if predicate else []
        return rows_of, [s for s in spans if all(s[0] <= value < s[1] for value in wanted)]


def plan(options: Mapping[str, str]) -> Numbers:
    if "tasks" not in options:
        raise TableNotFoundError("ns.t")
    return Numbers(int(options["tasks"]))
