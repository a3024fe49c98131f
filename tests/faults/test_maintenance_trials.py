"""No live file is ever deleted: random tables, files, clocks, writers and orders of events.

Each trial begins from a table in memory, puts files beside it that may go and files that may not,
lets a writer's commit land somewhere between listing and deleting, runs the verbs, and looks at
what is left. `ROWLAKE_TRIALS` is the number of trials; the seed of a failed one is in its message.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.maintain.cleanup import orphans
from tests.parts.memory_s3 import Blob, MemoryStore, memory_s3
from tests.parts.trial_tables import (
    LOCATION,
    PATH,
    SHAPES,
    Shape,
    Writer,
    live_files,
    make_shape,
    open_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRIALS = int(os.environ.get("ROWLAKE_TRIALS", "1000"))
PARTS = 10
SCHEMES = ("s3", "s3a", "s3n")
DAY = 24 * 60 * 60 * 1000
MOMENTS = ("listing", "listed", "compared", "batch")
COMMITTING = ("expire", "vacuum")
ACTS = ("orphans",) * 5 + ("dry run",) * 2 + ("expire",) * 2 + ("vacuum", "list")
NAMES = (
    "data/left.parquet",
    "data/_day=d+0%25%C3%A9/left over é.parquet",
    "data/_day=_x/a%20b#?.parquet",
    "data/0101/1100/left.parquet",
    "metadata/left-m0.avro",
    "metadata/snap-1-1-left.avro",
    "metadata/left.stats",
    "metadata/00001-left.metadata.json",
    "metadata/v0.gz.metadata.json",
    "left",
    "other/deep/er/file.puffin",
    "metadata2/x",
)
HIDDEN_NAMES = ("data/_SUCCESS", "data/.part.crc", "_tmp/a.parquet", "data/_temporary/0/b.parquet")


@dataclass
class Trial:
    """What is put where, what happens when, and what must be left."""

    seed: int
    shape: Shape
    store: MemoryStore
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    writer: Writer | None = None
    moment: str = "never"
    has_landed: bool = False
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.act = self.dice.choice(ACTS)
        self.age_ms = 7 * DAY if self.act == "vacuum" else 3 * DAY

    # -- before

    def old(self) -> int:
        return self.now_ms - self.age_ms - self.dice.choice([1, 60, 1000]) * 60_000

    def not_old(self) -> int | None:
        young = self.now_ms - self.dice.choice([0, self.age_ms // 2, self.age_ms - 60_000])
        ahead = self.now_ms + self.dice.choice([1, 30]) * DAY
        return self.dice.choice([young, ahead, None])

    def any_age(self) -> int | None:
        return self.dice.choice([self.old, self.old, self.not_old])()

    def set_up(self) -> None:
        self.store.blobs = {
            path: replace(blob, modified_ms=self.any_age())
            for path, blob in self.shape.blobs.items()
        }
        self.store.now_ms, self.store.deleted = self.now_ms, []
        self._plant_orphans()
        self._plant_neighbours()
        self._plant_writer()

    def _plant_orphans(self) -> None:
        for number in range(self.dice.randint(0, 8)):
            name = self.dice.choice(NAMES)
            folder, _, last = f"{PATH}/{name}".rpartition("/")
            path = f"{folder}/{number}-{last}" if self.dice.random() < 0.7 else f"{folder}/{last}"
            own_id = f'{{"table-uuid": "{self.shape.uuid}"}}'.encode()
            is_old = self.dice.random() < 0.7
            age = self.old() if is_old else self.not_old()
            self.store.blobs[path] = Blob(own_id, age)
            self.gone.discard(path)
            if is_old and (not _is_hidden(path) or self._shows(path)):
                self.gone.add(path)
        for name in HIDDEN_NAMES:
            self.store.blobs[f"{PATH}/{name}"] = Blob(b"", self.old())
            if self.act == "list":  # who makes a list means what is in it
                self.gone.add(f"{PATH}/{name}")

    def _shows(self, path: str) -> bool:
        return self.act == "list" or ("partitions" in self.shape.name and "/_day=" in path)

    def _plant_neighbours(self) -> None:
        """Other tables: beside this one with a longer name, and below it."""
        roots = [f"{PATH}2", f"{PATH}-old", f"{PATH}/data/inner", f"{PATH}/nested/metadata/x"]
        for root in self.dice.sample(roots, self.dice.randint(0, len(roots))):
            for name in ("metadata/v1.metadata.json", "metadata/m0.avro", "data/a.parquet"):
                self.store.blobs[f"{root}/{name}"] = Blob(b'{"table-uuid": "other"}', self.old())

    def _plant_writer(self) -> None:
        if self.dice.random() < 0.2:
            return
        self.writer = self.dice.choice(self.shape.writers)
        commits = ["commit"] * 2 if self.act in COMMITTING else []
        self.moment = self.dice.choice([*MOMENTS, "never", *commits])
        for path, blob in self.writer.files.items():
            # Of a commit that does not come in time only the age of its files tells.
            age = self.not_old() if self.moment == "never" else self.any_age()
            self.store.blobs[path] = replace(blob, modified_ms=age)

    # -- meanwhile

    def happen(self, moment: str) -> None:
        """Let the writer's commit land, unless another took its place or its files are gone."""
        if self.writer is None or moment != self.moment or self.has_landed:
            return
        written = all(path in self.store.blobs for path in self.writer.files)
        taken = any(
            path in self.store.blobs for path in self.writer.pointer if "version-hint" not in path
        )
        if written and not taken:
            self.has_landed = True
            self.store.blobs.update(self.writer.pointer)

    # -- the verbs

    def run(self) -> None:
        table = open_table()
        options: dict[str, Any] = {
            "prefix_listing": self.dice.random() < 0.3,
            "stream_results": self.dice.random() < 0.3,
            "location": self.dice.choice(
                [None, None, f"{LOCATION}/", LOCATION.replace("s3://", "s3a://"), f"s3n://{PATH}"]
            ),
        }
        if self.dice.random() < 0.3:
            options["older_than"] = self.now_ms - self.age_ms
        if self.act == "vacuum":
            table.vacuum(dry_run=False)
            return
        if self.act == "list":
            options["file_list_view"] = self._list()
        if self.act == "expire":
            keep = self.dice.randint(1, 3)
            table.expire_snapshots(older_than=self.now_ms + DAY, retain_last=keep)
        planned = table.remove_orphan_files(**options) if self.act == "dry run" else None
        assert not (planned and self.store.deleted), "a dry run deleted files"
        done = table.remove_orphan_files(**options, dry_run=False)
        if planned is not None and not self.has_landed:
            assert done.orphan_file_location == planned.orphan_file_location

    def _list(self) -> pa.Table:
        """Return all there is in the store as a list of files, each under some scheme."""
        found = list(self.store.blobs.items())
        times = [blob.modified_ms for _, blob in found]
        return pa.table(
            {
                "file_path": [f"{self.dice.choice(SCHEMES)}://{path}" for path, _ in found],
                "last_modified": pa.array(times, pa.timestamp("ms", "UTC")),
            }
        )

    # -- after

    def check(self, before: set[str]) -> None:
        left = set(self.store.blobs)
        if self.act in COMMITTING:
            live = live_files(open_table())
        else:
            live = self.writer.live if self.writer and self.has_landed else self.shape.live
        assert live <= left, f"live files deleted: {sorted(live - left)}"
        assert not self.gone & left, f"orphans left: {sorted(self.gone & left)}"
        if self.act in COMMITTING:
            return
        unexpected = before - left - self.gone - self._may_go()
        assert not unexpected, f"deleted: {sorted(unexpected)}"

    def _may_go(self) -> frozenset[str]:
        """Return the files of a commit that did not land, else those that the commit replaced."""
        if self.writer is None:
            return frozenset()
        if self.has_landed:
            return self.shape.live - self.writer.live
        return frozenset(self.writer.files) if self.moment != "never" else frozenset()


def _is_hidden(path: str) -> bool:
    return any(name.startswith(("_", ".")) for name in path.removeprefix(PATH).split("/"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    patch = pytest.MonkeyPatch()
    patch.setenv("ROWLAKE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    with memory_s3(patch) as made:
        yield made
    patch.undo()


@pytest.fixture(scope="module")
def shapes(store: MemoryStore) -> list[Shape]:
    return [make_shape(shape, store) for shape in SHAPES]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> Callable[[Trial], None]:
    """Tell a trial when the verb has come to each of its moments."""
    current: list[Trial] = []

    def after(name: str, moment: str) -> None:
        known = getattr(orphans, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = known(*args, **kwargs)
            current[-1].happen(moment)
            return answer

        monkeypatch.setattr(orphans, name, call)

    def before_batch(known: Any = orphans._looked_at_again) -> None:
        def call(*args: Any) -> Any:
            current[-1].happen("batch")
            return known(*args)

        monkeypatch.setattr(orphans, "_looked_at_again", call)

    after("search", "listed")
    after("sifted", "compared")
    before_batch()
    moments = {"list": "listing", "create": "commit"}

    def step(kind: str, _: str) -> None:
        if kind in moments:
            current[-1].happen(moments[kind])

    monkeypatch.setattr(store, "step", step)
    return current.append


@pytest.mark.parametrize("part", range(PARTS))
def test_no_live_file_is_ever_deleted(
    part: int,
    store: MemoryStore,
    shapes: list[Shape],
    told: Callable[[Trial], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(part, TRIALS, PARTS):
        trial = Trial(number, shapes[number // PARTS % len(shapes)], store)
        trial.set_up()
        before = set(store.blobs)
        told(trial)
        monkeypatch.setattr(orphans, "BATCH", trial.dice.choice([1, 2, 5000]))
        try:
            trial.run()
            trial.check(before)
        except Exception as error:
            raise AssertionError(
                f"trial {number} ({trial.shape.name}, {trial.act}, "
                f"{trial.writer and trial.writer.name} lands {trial.moment})"
            ) from error
