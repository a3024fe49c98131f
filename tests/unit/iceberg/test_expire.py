"""Which snapshots and refs expire, against a plain reading of the rules on random histories."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotsUpdate
from pyiceberg.types import LongType, NestedField

from rowlake.errors import InvalidStatementError
from rowlake.iceberg.expire import (
    AssertSameHistory,
    expire_updates,
    expiry_of,
)
from rowlake.iceberg.metadata_files import Definition, apply_updates, new_metadata
from rowlake.model.expiry import Asked, Expiry

NOW = 1_000


class RestCatalog:
    """Stands for PyIceberg's, which is known by its name."""


def history(chance: random.Random) -> Any:
    """Return metadata of up to 12 snapshots, whose parents may be missing, and a few refs."""
    metadata = new_metadata(Definition(Schema(NestedField(1, "id", LongType()))), "/t")
    snapshots = []
    for number in range(1, chance.randint(1, 12) + 1):
        parent = chance.choice([None, *range(max(0, number - 3), number)]) if number > 1 else None
        snapshots.append(
            Snapshot(
                snapshot_id=number,
                parent_snapshot_id=parent,
                manifest_list=f"/m{number}",
                timestamp_ms=chance.randint(0, NOW),
            )
        )
    refs = {"main": SnapshotRef(snapshot_id=len(snapshots), snapshot_ref_type="branch")}
    for number in range(chance.randint(0, 4)):
        kind = chance.choice(["branch", "tag"])
        kept: dict[str, Any] = {"max_ref_age_ms": chance.choice([None, 300])}
        if kind == "branch":
            kept["min_snapshots_to_keep"] = chance.choice([None, 1, 3])
            kept["max_snapshot_age_ms"] = chance.choice([None, 200, 600])
        at = chance.randint(1, len(snapshots))
        refs[f"r{number}"] = SnapshotRef(snapshot_id=at, snapshot_ref_type=kind, **kept)
    properties = {
        "history.expire.max-snapshot-age-ms": str(chance.choice([100, 400])),
        "history.expire.min-snapshots-to-keep": str(chance.choice([1, 2])),
    }
    if chance.random() < 0.3:
        properties["history.expire.max-ref-age-ms"] = "500"
    return metadata.model_copy(
        update={
            "snapshots": snapshots,
            "refs": refs,
            "current_snapshot_id": len(snapshots),
            "properties": properties,
        }
    )


def handle_of(metadata: Any, catalog: Any = None) -> Any:
    return SimpleNamespace(
        name="db.t",
        metadata=metadata,
        metadata_location="/t/m.json",
        catalog=catalog,
        properties=metadata.properties,
    )


def expected(metadata: Any, asked: Asked) -> tuple[set[int], set[str]]:
    """Return the snapshots and refs that stay, by the documentation's words."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    properties = {key.rpartition(".")[2]: int(v) for key, v in metadata.properties.items()}
    limit = asked.older_than_ms
    limit = NOW - properties["max-snapshot-age-ms"] if limit is None else limit
    most_age = properties.get("max-ref-age-ms", 10**9)
    refs = {
        name
        for name, ref in metadata.refs.items()
        if name == "main"
        or NOW - by_id[ref.snapshot_id].timestamp_ms <= (ref.max_ref_age_ms or most_age)
    }
    stay, referenced = set(), set()
    for name in refs:
        ref = metadata.refs[name]
        line, at = [], ref.snapshot_id
        while at in by_id:
            line.append(at)
            at = by_id[at].parent_snapshot_id
        if ref.snapshot_ref_type == "tag":
            line = line[:1]
        referenced |= set(line)
        least = ref.min_snapshots_to_keep or asked.retain_last
        least = least or properties["min-snapshots-to-keep"]
        own = NOW - ref.max_snapshot_age_ms if ref.max_snapshot_age_ms is not None else limit
        ends = [place for place, one in enumerate(line) if by_id[one].timestamp_ms < own]
        end = next((place for place in ends if place >= least), len(line))
        stay |= set(line[:end])
    stay |= {i for i, one in by_id.items() if i not in referenced and one.timestamp_ms >= limit}
    return stay - asked.snapshot_ids, refs


@pytest.mark.parametrize("seed", range(10))
def test_what_stays_is_what_the_rules_say(seed):
    for number in range(60):
        chance = random.Random(seed * 1_000 + number)
        metadata = history(chance)
        heads = {ref.snapshot_id for ref in metadata.refs.values()}
        free = sorted({one.snapshot_id for one in metadata.snapshots} - heads)
        asked = Asked(
            NOW,
            chance.choice([None, 0, 300, 2_000]),
            chance.choice([None, 1, 3]),
            frozenset(chance.sample(free, min(len(free), chance.choice([0, 0, 2])))),
        )
        handle = handle_of(metadata)
        expiry = expiry_of(handle, asked, lambda _: ())
        stay, refs = expected(metadata, asked)
        everyone = {one.snapshot_id for one in metadata.snapshots}
        assert set(expiry.snapshot_ids) == everyone - stay
        assert set(expiry.refs) == set(metadata.refs) - refs
        updates, _ = expire_updates(handle, expiry)
        after = apply_updates(metadata, None, updates) if updates else metadata
        assert {one.snapshot_id for one in after.snapshots} == stay
        assert set(after.refs) == refs
        assert not expiry_of(handle_of(after), asked, lambda _: ()).refs


def test_what_a_ref_points_to_is_refused():
    metadata = history(random.Random(1))
    head = metadata.current_snapshot_id
    with pytest.raises(InvalidStatementError, match=f"Cannot expire snapshot {head} of db.t: main"):
        expiry_of(handle_of(metadata), Asked(NOW, snapshot_ids=frozenset({head})), lambda _: ())


def test_a_rest_server_is_told_of_each_snapshot_and_of_known_refs():
    metadata = history(random.Random(3))
    handle = handle_of(metadata, RestCatalog())
    gone = tuple(one.snapshot_id for one in metadata.snapshots[:2])
    updates, requirements = expire_updates(handle, Expiry(gone))
    assert updates == tuple(RemoveSnapshotsUpdate(snapshot_ids=[one]) for one in gone)
    assert len(requirements) == 1 + len(metadata.refs)
    assert not any(isinstance(one, AssertSameHistory) for one in requirements)
    updates, requirements = expire_updates(handle_of(metadata), Expiry(gone))
    assert updates == (RemoveSnapshotsUpdate(snapshot_ids=list(gone)),)
    assert isinstance(requirements[-1], AssertSameHistory)
    assert expire_updates(handle, Expiry()) == ((), ())


def test_another_history_is_a_conflict():
    metadata = history(random.Random(5))
    held = AssertSameHistory.of(metadata)
    held.validate(metadata)
    new_ref = {"new": SnapshotRef(snapshot_id=1, snapshot_ref_type="tag")}
    for change in (
        {"refs": {**metadata.refs, **new_ref}},
        {"snapshots": metadata.snapshots[1:]},
    ):
        with pytest.raises(CommitFailedException, match="changed meanwhile"):
            held.validate(metadata.model_copy(update=change))
    with pytest.raises(CommitFailedException):
        held.validate(None)
