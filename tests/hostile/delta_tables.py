"""The Delta tables that are mutated: logs with a checkpoint, deletion vectors and change data."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rowlake.codecs import z85
from tests.hostile.tables import SCHEMA, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake import Lake, Table

CHECKPOINT = 3  # the version that has one; two commits come after it
FIRST, LAST = 0, 5
LOG = "_delta_log"


@dataclass(frozen=True)
class DeltaLayout:
    """What a sample of a Delta table is made of."""

    catalog: str | None = None
    partition_by: tuple[str, ...] = ("store",)
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    sidecars: bool = False
    inline: bool = False
    change_data: bool = False
    format: ClassVar[str] = "delta"

    @property
    def kinds(self) -> set[str]:
        """The kinds of files that a table has."""
        found = {"commit", "old commit", "checkpoint", "last checkpoint", "checksum"}
        found |= {"delta vectors", "delta data"}
        found |= {"sidecar"} if self.sidecars else set()
        found |= {"change data"} if self.change_data else set()
        return found

    def make(self, lake: Lake, name: str) -> Table:
        """Create a table and fill it; the last commit has actions of every kind."""
        properties = {
            "delta.enableDeletionVectors": "true",
            "delta.checkpointInterval": str(CHECKPOINT),
            "delta.checkpointPolicy": "v2" if self.sidecars else "classic",
            "delta.enableChangeDataFeed": str(self.change_data).lower(),
            **self.properties,
        }
        table = lake.create_table(
            name, SCHEMA, partition_by=self.partition_by, properties=properties, format=self.format
        )
        table.append(rows(12))
        table.append(rows(12, 12))
        table.delete("id IN (3, 14)", mode="merge-on-read")
        table.delete("id = 5", mode="copy-on-write")
        table.delete("id = 15", mode="merge-on-read")
        _complete(Path(table.location), inline=self.inline)
        return lake.table(name)

    def files(self, table: Table) -> dict[str, list[str]]:
        """Return where the files of a table are, by kind."""
        folder = Path(table.location)
        log = folder / LOG
        found = {
            "commit": [log / f"{version:020d}.json" for version in (LAST, LAST - 1)],
            "old commit": [log / f"{version:020d}.json" for version in range(CHECKPOINT + 1)],
            "checkpoint": sorted(log.glob(f"{CHECKPOINT:020d}.checkpoint.*")),
            "sidecar": sorted(log.glob("_sidecars/*")),
            "last checkpoint": [log / "_last_checkpoint"],
            "checksum": [log / f"{LAST:020d}.crc"],
            "delta vectors": sorted(folder.glob("*.bin")),
            "change data": sorted(folder.rglob("cdc-*.parquet")),
        }
        paths = {kind: [str(one) for one in each] for kind, each in found.items()}
        paths["delta data"] = sorted(table.inspect("data_files")["file_path"].to_pylist())
        return {kind: each for kind, each in paths.items() if each}


DELTA_LAYOUTS = {
    "delta": DeltaLayout(change_data=True),
    "delta-sidecars": DeltaLayout(
        partition_by=(),
        sidecars=True,
        properties={"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true"},
    ),
    "delta-files": DeltaLayout(
        catalog="filesystem", inline=True, properties={"delta.columnMapping.mode": "id"}
    ),
}


def _complete(folder: Path, *, inline: bool) -> None:
    """Give the last commit actions of kinds that no verb writes; have its vector inline."""
    path = folder / LOG / f"{LAST:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if inline and "deletionVector" in action.get("add", {}):
            action["add"]["deletionVector"] = _inline(folder, action["add"]["deletionVector"])
    more: list[dict[str, Any]] = [
        {"txn": {"appId": "writer", "version": 7, "lastUpdated": 1_700_000_000_000}},
        {"domainMetadata": {"domain": "mine", "configuration": "{}", "removed": False}},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in [*actions, *more]))


def _inline(folder: Path, vector: dict[str, Any]) -> dict[str, Any]:
    """Return the descriptor of a vector with the vector in it."""
    number = uuid.UUID(bytes=z85.decode(vector["pathOrInlineDv"]))
    file = folder / f"deletion_vector_{number}.bin"
    data = file.read_bytes()[vector["offset"] + 4 :][: vector["sizeInBytes"]]
    text = z85.encode(data + bytes(-len(data) % 4))
    return {**vector, "storageType": "i", "pathOrInlineDv": text, "offset": None}
