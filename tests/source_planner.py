"""A planner of the data source for tests: rows that the options ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import TableNotFoundError

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
    """`tasks` times ten numbers."""

    tasks: int

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def plan(self) -> tuple[Any, Sequence[Any]]:
        return rows_of, [(ten * 10, ten * 10 + 10) for ten in range(self.tasks)]


def plan(options: Mapping[str, str]) -> Numbers:
    if "tasks" not in options:
        raise TableNotFoundError("ns.t")
    return Numbers(int(options["tasks"]))
