"""A Delta log of a million files: its snapshot, plans, and a commit on top of it.

The table exists only as a log: one checkpoint with a file per partition, as in the evaluation of
the Delta Lake paper (108 s to plan a million partitions). rowlake opens it in a child interpreter,
so that nothing is cached and the memory counted is its own.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.case import Case, Contestant, Step, entrants
from bench.children import run_child
from bench.children.delta_log import COLUMNS
from bench.measure import Reported, Sample

if TYPE_CHECKING:
    from pathlib import Path

    from bench.lab import Lab

FILES = 1_000_000
VERSION = 10
STEPS = ("snapshot", "plan all", "plan one day", "commit")


def delta_log(lab: Lab) -> list[Contestant]:
    """Open the log, plan it, commit to it; each round has a copy of its own."""
    source = lab.scratch / f"delta_log_{FILES}"
    if not source.exists():
        _build(source, FILES)

    def make(system: str) -> Contestant:
        reports: dict[str, Any] = {}

        def prepare(_: int) -> None:
            copy = lab.scratch / "delta_log_copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
            reports.clear()
            reports.update(run_child("delta_log", str(copy), str(lab.scratch / "delta_log_lake")))

        def report(step: str) -> Reported:
            found = dict(reports[step])
            answer = found.pop("files")
            return Reported(Sample(**found), answer)

        steps = tuple(Step(step, partial(report, step), int) for step in STEPS)
        return Contestant(system, steps, prepare, needs_warmup=False)

    return entrants(lab.wanted("rowlake"), make)


def _build(folder: Path, files: int) -> None:
    """Write a log whose checkpoint has a file per day, with statistics."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    table = pa.concat_tables(
        [
            pa.table({"protocol": pa.array([{"minReaderVersion": 1, "minWriterVersion": 2}])}),
            pa.table({"metaData": pa.array([_metadata()], _METADATA)}),
            pa.table({"add": _adds(files)}),
        ],
        promote_options="default",
    )
    pq.write_table(table, log / f"{VERSION:020d}.checkpoint.parquet", compression="snappy")
    hint = {"version": VERSION, "size": table.num_rows}
    (log / "_last_checkpoint").write_text(json.dumps(hint))
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}
    (log / f"{VERSION:020d}.json").write_text(json.dumps(info) + "\n")


_TEXTS = pa.map_(pa.string(), pa.string())
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)


def _metadata() -> dict[str, Any]:
    kinds = {"day": "integer", **dict.fromkeys(COLUMNS, "long")}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in kinds.items()
    ]
    return {
        "id": "8f4ce4ab-6a0c-4d24-9d0e-0d2a2b6f7a01",
        "format": {"provider": "parquet", "options": []},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": [],
        "createdTime": 1,
    }


def _adds(files: int) -> pa.StructArray:
    numbers = np.arange(files)
    days = pa.array(numbers).cast(pa.string())
    lowest, highest = (pa.array(numbers * 1000 + more).cast(pa.string()) for more in (0, 999))
    rest = "".join(f',"{name}":1' for name in COLUMNS[1:])
    stats = pc.binary_join_element_wise(
        '{"numRecords":1000,"minValues":{"ticket":',
        lowest,
        f'{rest}}},"maxValues":{{"ticket":',
        highest,
        f'{rest}}},"nullCount":{{"ticket":0{rest}}}}}',
        "",
    )
    tail = "-c5b8c05d-a061-47cc-b6dc-5afad5333d8f-c000.snappy.parquet"
    columns = {
        "path": pc.binary_join_element_wise("day=", days, "/part-00000", tail, ""),
        "partitionValues": pa.MapArray.from_arrays(
            pa.array(np.arange(files + 1), pa.int32()), pa.repeat("day", files), days
        ),
        "size": pa.array(np.full(files, 30_000_000)),
        "modificationTime": pa.array(np.full(files, 1_700_000_000_000)),
        "dataChange": pa.array(np.full(files, False)),
        "stats": stats,
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


CASES = [
    Case("delta_log_1m", "A Delta log of 1 000 000 files", delta_log, rounds=2, warmups=0),
]
