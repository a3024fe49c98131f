"""delta-rs in an environment of its own: each round is one process that takes its own time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.changes import SET_COLUMNS
from bench.editors.base import ON
from bench.editors.delta import DeltaEditor, bucket_condition
from bench.environments import PACKAGES, run_script
from bench.measure import OWN_PROCESS, Reported, Sample
from bench.parquet import ZSTD_LEVEL
from bench.peers.base import AGGREGATE, COLUMNS, sorted_rows
from bench.staging import BUCKET

if TYPE_CHECKING:
    from bench.staging import Source

SCRIPT = Path(__file__).resolve().parent.parent / "children" / "delta_rs.py"


class DeltaRs(DeltaEditor):
    """delta-rs rewrites files; the table is the one that Delta on Spark gets."""

    name = "delta-rs"
    max_rounds = 3
    needs_warmup = False

    def configuration(self) -> dict[str, str]:
        return {
            "package": ", ".join(PACKAGES["deltalake"]),
            "process": "one for each round; imports are not counted",
            "table": f"the one of delta, zstd of level {ZSTD_LEVEL}",
        }

    def merge(self, source: Source) -> Reported:
        bucketed = self._base.buckets is not None
        return self._run(
            {
                "verb": "merge",
                "source": str(source.with_bucket),
                "on": f"t.{BUCKET} = s.{BUCKET} AND {ON}" if bucketed else ON,
                "set": {name: f"s.{name}" for name in SET_COLUMNS},
                "insert": {name: f"s.{name}" for name in [*COLUMNS, *[BUCKET] * bucketed]},
            }
        )

    def delete_row(self, ticket: int, item: int) -> Reported:
        parts = [f"ss_ticket_number = {ticket}", f"ss_item_sk = {item}"]
        condition = " AND ".join([*bucket_condition(self._base, ticket), *parts])
        return self._run({"verb": "delete", "where": condition})

    def read(self) -> Reported:
        return self.read_report

    def _run(self, order: dict[str, Any]) -> Reported:
        """Change the table and read it in one process; the read is handed out afterwards."""
        order |= {
            "zstd_level": ZSTD_LEVEL,
            "table": str(self._folder),
            "query": AGGREGATE.format(table="t"),
        }
        said = run_script("deltalake", self.lab.cache, SCRIPT, json.dumps(order))
        rows = sorted_rows(said["rows"])
        self.read_report = Reported(Sample(**said["read"], place=OWN_PROCESS), rows)
        self.metrics = said["metrics"]
        return Reported(Sample(**said["change"], place=OWN_PROCESS))

    def facts(self) -> dict[str, float]:
        names = {
            "num_target_files_added": "files_added",
            "num_target_files_removed": "files_removed",
            "num_added_files": "files_added",
            "num_removed_files": "files_removed",
        }
        return {names[name]: float(value) for name, value in self.metrics.items() if name in names}
