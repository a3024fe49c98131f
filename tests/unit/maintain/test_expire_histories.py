"""Random histories, expired at random: whatever stays reads as it did, and nothing else is left.

Tables of every version with branches, tags, rollbacks, staged snapshots, cherry-picks and merged
manifests; writers that are at it while snapshots expire. `ROWLAKE_EXPIRY_TRIALS` is how many.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from rowlake.catalog.io import StorageFileIO
from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import (
    CommitConflictError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, files_in, sales

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.iceberg

TRIALS = int(os.environ.get("ROWLAKE_EXPIRY_TRIALS", "8"))
STEPS = 14
REFUSALS = (CommitConflictError, InvalidStatementError, UnsupportedFeatureError)


def live_files(handle: Any) -> set[str]:
    """Return all that the metadata reaches, as PyIceberg reads it."""
    metadata, io = handle.metadata, StorageFileIO(dict(handle.io_properties))
    found = {entry.metadata_file for entry in metadata.metadata_log} | {handle.metadata_location}
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(io):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(io, discard_deleted=True)
            found |= {entry.data_file.file_path for entry in entries}
    return found


class Trial:
    """One table, and what each of its snapshots held when it was made."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lake = connect(warehouse=str(folder))
        self.lake.create_namespace("db")
        self.version = self.chance.choice("1233")
        self.table = self.lake.create_table(
            "db.t",
            SALES,
            partition_by=self.chance.choice([[], ["store"], ["bucket(3, id)"]]),
            properties={
                "format-version": self.version,
                "commit.manifest.min-count-to-merge": self.chance.choice("23"),
                "write.delete.mode": self.chance.choice(["copy-on-write", "merge-on-read"])
                if self.version != "1"
                else "copy-on-write",
            },
        )
        self.held: dict[int, list[int]] = {}
        self.next_id = 0
        self.append()

    # ------------------------------------------------------------------ steps

    def branch(self) -> str:
        refs = self.table.handle.metadata.refs
        branches = [name for name, ref in refs.items() if ref.snapshot_ref_type == "branch"]
        return self.chance.choice(branches or ["main"])

    def new_rows(self) -> Any:
        self.next_id += 10
        return sales(self.chance.randint(1, 6), self.next_id)

    def append(self) -> None:
        self.table.append(self.new_rows(), branch=self.branch())

    def stage(self) -> None:
        self.table.append(self.new_rows(), stage_only=True)

    def overwrite(self) -> None:
        self.table.overwrite(self.new_rows(), branch=self.branch())

    def delete(self) -> None:
        least = self.chance.randint(0, self.next_id)
        where = self.chance.choice(
            [Leaf(("id",), Op.LT, (least,)), Leaf(("store",), Op.EQ, (self.chance.randint(0, 3),))]
        )
        self.table.delete(where, branch=self.branch())

    def upsert(self) -> None:
        how = {} if self.version != "2" else {"deletes": "equality"}
        first = self.chance.randint(0, self.next_id)
        self.table.upsert(sales(4, first), ["id"], branch=self.branch(), **how)

    def any_snapshot(self) -> int:
        return self.chance.choice(self.table.snapshots()).snapshot_id

    def tag(self) -> None:
        age = self.chance.choice([None, None, 1])
        name = f"t{self.chance.randint(0, 2)}"
        self.table.create_tag(name, self.any_snapshot(), replace=True, max_ref_age_ms=age)

    def fork(self) -> None:
        kept = {
            "max_ref_age_ms": self.chance.choice([None, None, 1]),
            "min_snapshots_to_keep": self.chance.choice([None, 1, 3]),
            "max_snapshot_age_ms": self.chance.choice([None, None, 1, 10**9]),
        }
        name = f"b{self.chance.randint(0, 2)}"
        self.table.create_branch(name, self.any_snapshot(), replace=True, **kept)

    def drop(self) -> None:
        self.table.drop_ref(f"{self.chance.choice('bt')}{self.chance.randint(0, 2)}")

    def move(self) -> None:
        self.table.set_current_snapshot(self.any_snapshot(), branch=self.branch())

    def pick(self) -> None:
        self.table.cherry_pick(self.any_snapshot(), branch=self.branch())

    def evolve(self) -> None:
        with self.table.evolve().update_spec() as update:
            fields = self.table.spec.fields
            if fields and self.chance.random() < 0.5:
                update.remove_field(fields[-1].name)
            else:
                count = self.chance.randint(2, 10**6)
                update.add_field("id", f"bucket[{count}]", f"b{count}")

    def compact(self) -> None:
        self.table.rewrite_data_files(options={"rewrite-all": "true"}, branch=self.branch())

    def compact_manifests(self) -> None:
        self.table.rewrite_manifests(branch=self.branch())

    def expire(self, table: Any = None) -> None:
        asked: dict[str, Any] = {
            "older_than": self.chance.choice([None, int(time.time() * 1000) + 10]),
            "retain_last": self.chance.choice([None, 1, 2]),
            "clean_expired_metadata": self.chance.random() < 0.3,
        }
        if self.chance.random() < 0.3:
            asked["snapshot_ids"] = [self.any_snapshot()]
        table = table or self.table
        planned = table.expire_snapshots(**asked, dry_run=True)
        before = {one.snapshot_id for one in table.snapshots()}
        report = table.expire_snapshots(**asked)
        if asked["older_than"] is not None:
            assert set(planned.deleted_files) <= set(report.deleted_files)
        after = {one.snapshot_id for one in table.snapshots()}
        assert before - after == set(report.expired_snapshot_ids)
        assert report.failed_files == ()

    def expire_under_a_writer(self) -> None:
        """Have snapshots expire after a writer wrote its manifests, before its commit."""
        other = self.lake.table("db.t")
        waiting = [1]

        def late(_: Any) -> None:
            if waiting:
                waiting.clear()
                if self.chance.random() < 0.5:
                    other.append(self.new_rows(), branch=self.branch())
                self.expire(other)

        # The writer may find nothing to write.
        with at_phase(Phase.PRODUCED, late):
            self.chance.choice([self.append, self.delete, self.overwrite])()

    # ------------------------------------------------------------------ checks

    def note(self) -> None:
        for one in self.table.snapshots():
            if one.snapshot_id not in self.held:
                self.held[one.snapshot_id] = self.rows(snapshot_id=one.snapshot_id)

    def rows(self, **at: Any) -> list[int]:
        return sorted(self.table.arrow(**at)["id"].to_pylist())

    def check(self) -> None:
        handle = self.table.handle
        reached = live_files(handle)
        there = files_in(self.table.location)
        assert reached <= there
        old = {name for name in there - reached if name.endswith(".metadata.json")}
        assert there - reached - old == set()
        for one in handle.metadata.snapshots:
            assert self.rows(snapshot_id=one.snapshot_id) == self.held[one.snapshot_id]
        for name, ref in handle.metadata.refs.items():
            assert self.rows(ref=name) == self.held[ref.snapshot_id]

    def run(self) -> None:
        steps = [self.append, self.append, self.delete, self.overwrite, self.upsert, self.stage]
        steps += [self.tag, self.fork, self.drop, self.move, self.pick, self.evolve]
        steps += [self.compact, self.compact_manifests]
        for _ in range(STEPS):
            self.step(self.chance.choice(steps))
            if self.chance.random() < 0.25:
                self.step(self.expire)
                self.check()
        self.step(self.expire_under_a_writer)
        self.check()
        self.step(self.expire)
        self.check()

    def step(self, act: Any) -> None:
        with suppress(*REFUSALS):  # a step that makes no sense on this table
            act()
        self.note()


@pytest.mark.parametrize("seed", range(TRIALS))
def test_whatever_stays_reads_as_it_did(tmp_path: Path, seed: int) -> None:
    trial = Trial(tmp_path, seed)
    with trial.lake:
        trial.note()
        trial.run()
