"""The checks of snapshots, metadata files, manifests and orphans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rowlake.maintain.autopilot.advice import advice
from rowlake.model.expiry import Asked
from rowlake.model.health import Finding, Verdict, count_text
from rowlake.model.plan import size_text
from rowlake.model.properties import whole_number
from rowlake.write.properties import parse_flag

if TYPE_CHECKING:
    from rowlake.maintain.autopilot.survey import Survey

DAY_MS = 24 * 3600 * 1000
# The metadata file holds every snapshot and is read and written whole with each commit.
SNAPSHOTS_WATCH, SNAPSHOTS_ACT = 100, 1_000
METADATA_WATCH_BYTES, METADATA_ACT_BYTES = 1_000_000, 8_000_000
# Iceberg's default of commit.manifest.target-size-bytes.
MANIFEST_BYTES = 8 << 20
# Reading this many manifests takes a moment; commits merge them by themselves from 100 on.
MANIFESTS_LEAST, MANIFESTS_WATCH, MANIFESTS_ACT = 20, 3.0, 10.0
# Manifests that one partition's files are in: beyond, a filter on partitions skips few manifests.
SPREAD_WATCH, SPREAD_ACT = 4.0, 10.0
# Metadata files that no log names any more are the one kind of orphan that metadata itself tells.
METADATA_ORPHANS_WATCH, METADATA_ORPHANS_ACT = 100, 1_000


def check_snapshots(survey: Survey) -> Finding:
    """Find snapshots that the table's own retention would let go."""
    snapshots = survey.handle.snapshots
    count, expired = len(snapshots), expirable(survey)
    if not count:
        return Finding("snapshots", 0, "none", Verdict.OK, "The table has no snapshot.")
    age = (survey.now_ms - min(each.timestamp_ms for each in snapshots)) / DAY_MS
    shown = f"{count:,}, the oldest {max(age, 0.0):.1f} days old"
    verdict = Verdict.OK
    if not survey.handle.can.snapshot_expiry:
        why = "The log forgets old versions by itself; VACUUM deletes files that none needs."
        return Finding("snapshots", count, shown, verdict, why)
    if count >= SNAPSHOTS_ACT:
        verdict = Verdict.ACT if expired else Verdict.WATCH
    elif expired >= SNAPSHOTS_WATCH:
        verdict = Verdict.WATCH
    if verdict is Verdict.OK:
        why = f"{expired:,} can expire." if expired else "None is older than the table keeps them."
        return Finding("snapshots", count, shown, verdict, why)
    if not expired:
        why = "All are kept by branches, tags or history.expire.max-snapshot-age-ms: shorten these."
        return Finding("snapshots", count, shown, verdict, why)
    why = f"{expired:,} can expire; their files stay in storage until they do."
    how = advice("expire_snapshots", survey.name)
    return Finding("snapshots", count, shown, verdict, why, how.sql, how.command)


def expirable(survey: Survey) -> int:
    """Return how many snapshots expire by the table's properties and its refs' own."""
    expiry = survey.handle.format.expiry(survey.handle, Asked(survey.now_ms))
    return len(expiry.snapshot_ids)


def _whole(survey: Survey, name: str, default: int) -> int:
    return whole_number(survey.view.properties, name, default, least=1)


def check_metadata(survey: Survey) -> Finding:
    """Find a metadata file that has grown large."""
    size = survey.metadata_size
    if size is None:
        why = "The catalog keeps it to itself, or the table is not made yet."
        return Finding("metadata file", None, "not known", Verdict.OK, why)
    parts = (
        count_text(len(survey.handle.snapshots), "snapshot"),
        count_text(survey.metadata_facts.schemas, "schema"),
        f"{survey.metadata_facts.log_entries:,} in the log",
    )
    shown = f"{size_text(size)} ({', '.join(parts)})"
    if size < METADATA_WATCH_BYTES:
        why = "Every commit writes it whole, and it is small."
        return Finding("metadata file", size, shown, Verdict.OK, why)
    verdict = Verdict.ACT if size >= METADATA_ACT_BYTES else Verdict.WATCH
    why = "Every commit writes it whole, and every look reads it; snapshots are most of it."
    how = advice("expire_snapshots", survey.name)
    return Finding("metadata file", size, shown, verdict, why, how.sql, how.command)


def check_manifests(survey: Survey) -> Finding:
    """Find manifests of the current spec that are many and small; others go with their files."""
    count, size, ideal = manifest_sizes(survey)
    shown = f"{count:,} of {size_text(size // max(count, 1))} on average"
    excess = count / max(ideal, 1)
    if count < MANIFESTS_LEAST or excess < MANIFESTS_WATCH:
        return Finding("manifests", count, shown, Verdict.OK, "Few, or large enough.")
    verdict = Verdict.ACT if excess >= MANIFESTS_ACT else Verdict.WATCH
    why = f"{ideal:,} would hold the same (commit.manifest.target-size-bytes)."
    how = advice("rewrite_manifests", survey.name)
    return Finding("manifests", count, shown, verdict, why, how.sql, how.command)


def manifest_sizes(survey: Survey) -> tuple[int, int, int]:
    """Return how many manifests the current spec has, their bytes, and how many would do."""
    target = _whole(survey, "commit.manifest.target-size-bytes", MANIFEST_BYTES)
    manifests = survey.manifests.filter(
        pc.equal(survey.manifests["partition_spec_id"], survey.view.default_spec_id)
    )
    ideal = 0
    for content in (0, 1):
        lengths = manifests.filter(pc.equal(manifests["content"], content))["manifest_length"]
        ideal += -(-(pc.sum(lengths).as_py() or 0) // target)
    return manifests.num_rows, pc.sum(manifests["manifest_length"]).as_py() or 0, ideal


def check_clustering(survey: Survey) -> Finding:
    """Find partitions whose files are listed by many manifests."""
    spread = manifest_spread(survey)
    if spread is None:
        why = "The table is not partitioned, or its manifests do not say what they list."
        return Finding("manifest clustering", None, "does not apply", Verdict.OK, why)
    shown = f"a partition's files are in {spread:.1f} manifests"
    if manifest_sizes(survey)[0] < MANIFESTS_LEAST or spread < SPREAD_WATCH:
        why = "A filter on partitions reads few manifests."
        return Finding("manifest clustering", spread, shown, Verdict.OK, why)
    verdict = Verdict.ACT if spread >= SPREAD_ACT else Verdict.WATCH
    why = "A filter on partitions has to read most manifests; rewritten ones are by partition."
    how = advice("rewrite_manifests", survey.name)
    return Finding("manifest clustering", spread, shown, verdict, why, how.sql, how.command)


def manifest_spread(survey: Survey) -> float | None:
    """Return in how many manifests a partition's files are, on average; of the current spec."""
    numbers, mine = survey.manifest_numbers, survey.of_current_spec
    partitions = survey.partitions[mine]
    count = len(np.unique(partitions))
    if numbers is None or count < 2:
        return None
    pairs = np.unique(partitions * (int(numbers.max()) + 1) + numbers[mine])
    return len(pairs) / count


def check_orphans(survey: Survey, counted: Any = None) -> Finding:
    """Estimate files that belong to nothing; `counted` is the number that a listing found."""
    how = advice("remove_orphan_files", survey.name)
    sql = f"{how.sql[:-1]}, dry_run => true)"  # to look first, as the command does
    if counted is not None:
        verdict = Verdict.WATCH if counted else Verdict.OK
        why = "No snapshot, metadata file or statistics file refers to them."
        shown = f"{counted:,} (by listing)"
        return Finding("orphan files", counted, shown, verdict, why, sql, how.command)
    count = outdated_metadata_files(survey)
    size = count * (survey.metadata_size or 0)
    shown = f"about {count:,} metadata files, at most {size_text(size)}" if count else "none known"
    why = (
        "Only old metadata files can be told from metadata; health(orphans=True) lists storage "
        "and counts all."
    )
    if count < METADATA_ORPHANS_WATCH:
        return Finding("orphan files", count, shown, Verdict.OK, why)
    verdict = Verdict.ACT if count >= METADATA_ORPHANS_ACT else Verdict.WATCH
    why += " Set write.metadata.delete-after-commit.enabled to keep them from piling up."
    return Finding("orphan files", count, shown, verdict, why, sql, how.command)


def outdated_metadata_files(survey: Survey) -> int:
    """Return how many metadata files have left the log without being deleted."""
    properties = survey.view.properties
    if parse_flag(properties, "write.metadata.delete-after-commit.enabled", default=False):
        return 0
    return survey.metadata_facts.outdated_files
