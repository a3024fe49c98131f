"""What each maintenance step would save and cost; `propose` chooses the steps that pay.

All is counted in bytes, with one exchange rate: opening a file weighs as much as reading
`OPEN_BYTES` (Iceberg's `read.split.open-file-cost`).

- *saves*: what one read of the whole table no longer has to do: files and delete files that are not
  opened, bytes of deleted rows that are not read, rows that are not compared with equality deletes;
- *costs*: what the step reads and writes, once.

A step pays when `READS` reads save more than it costs. Steps on files come in the order of saved
over spent. Those on manifests and snapshots come last, as they tidy what the others leave; expiry
saves storage, not reads, so the table's own retention decides, and not this model.

Files that are rewritten have their deletes folded in: steps on deletes count only other files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rowlake.maintain.autopilot import health_checks as checks
from rowlake.maintain.autopilot import health_metadata as metadata
from rowlake.maintain.autopilot.advice import advice
from rowlake.maintain.autopilot.depth import sort_depth
from rowlake.maintain.autopilot.survey import EQUALITY, POSITION
from rowlake.model.health import Verdict, count_text
from rowlake.model.plan import size_text
from rowlake.plan.tasks import OPEN_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.maintain.autopilot.advice import Advice
    from rowlake.maintain.autopilot.survey import Survey

    Numbers = np.ndarray[Any, Any]

OPEN_BYTES = OPEN_FILE_BYTES
# Manifests are small and fetched many at a time.
MANIFEST_BYTES = OPEN_BYTES // 4
# How many reads of the whole table a step has until it must have paid.
READS = 10
# The share of a data file that its key columns take, and that comparing its rows is worth.
KEY_SHARE = 0.25
# The share of reads that look for values of the sort order.
FILTERED_SHARE = 0.5
# A sort reads, shuffles and writes; a compaction reads and writes.
SORT_PASSES, COPY_PASSES = 3, 2


@dataclass(frozen=True)
class Step:
    """One verb that could run: `rewrites` is what counts against a budget of bytes.

    `opens` and `reads` are what a read saves in files and in bytes; `saves` is both in one number.
    `instead` is less work, for where there is no room for this.
    """

    verb: str
    why: str
    saves: int
    costs: int
    rewrites: int
    arguments: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    instead: Step | None = None
    opens: int = 0
    reads: int = 0

    @property
    def pays(self) -> bool:
        """True where enough reads save more than the step costs."""
        return self.saves * READS >= self.costs

    @property
    def ratio(self) -> float:
        """What is saved for a byte that is spent."""
        return self.saves / max(self.costs, 1)

    def advice(self, table: str) -> Advice:
        """Return the step as a user would type it."""
        return advice(self.verb, table, self.arguments, self.options)


@dataclass(frozen=True)
class NoStep:
    """A verb that is left out, with the reason."""

    verb: str
    why: str


def propose(survey: Survey) -> tuple[list[Step], list[NoStep]]:
    """Return the steps that pay, in the order to run them, and those that are left out."""
    folded = np.zeros(survey.count, dtype=bool)
    rewrite = rewriting(survey)
    if isinstance(rewrite, Step) and rewrite.pays:
        folded = rewritten(survey, rewrite)
    on_files = [rewrite, equality(survey, folded), positions(survey, folded)]
    chosen, left = _split(on_files)
    chosen.sort(key=lambda step: -step.ratio)
    last, left_last = _split([manifests(survey), expiry(survey)])
    return [*chosen, *last], [*left, *left_last]


def _split(found: list[Step | NoStep]) -> tuple[list[Step], list[NoStep]]:
    chosen, left = [], []
    for each in found:
        if isinstance(each, NoStep):
            left.append(each)
        elif each.pays:
            chosen.append(each)
        else:
            left.append(NoStep(each.verb, f"it would not pay: {balance(each)}"))
    return chosen, left


def balance(step: Step) -> str:
    """Return what a step saves and costs, for people."""
    saved = [count_text(step.opens, "file open")] if step.opens else []
    saved += [size_text(step.reads)] if step.reads or not saved else []
    return f"saves about {' and '.join(saved)} per read; rewrites {size_text(step.rewrites)} once"


# --- data files


def rewriting(survey: Survey) -> Step | NoStep:
    """Return the compaction: a sort where the table has an order and is far from it."""
    packing, sorting = _packing(survey), _sorting(survey)
    if sorting is None or not sorting.pays:
        return packing
    return replace(sorting, instead=packing if isinstance(packing, Step) else None)


def _sorting(survey: Survey) -> Step | None:
    depth = sort_depth(survey)
    if depth is None or depth.average < checks.DEPTH_ACT:
        return None
    why = f"{depth.average:.1f} files hold a value of {depth.column}, the table's order"
    saved = FILTERED_SHARE * (depth.average - 1) * float(survey.sizes.mean())
    options = {"rewrite-all": "true"}
    return _rewrite(survey, why, saved, SORT_PASSES, {"strategy": "sort"}, options)


def _packing(survey: Survey) -> Step | NoStep:
    small = checks.check_small_files(survey)
    deleted = checks.check_deleted_rows(survey)
    reasons = [
        finding.shown + (" deleted rows" if finding is deleted else "")
        for finding in (small, deleted)
        if finding.verdict is not Verdict.OK and finding.command
    ]
    if not reasons:
        why = "no partition has many small files, and few rows are deleted"
        return NoStep("rewrite_data_files", why)
    options = {} if deleted.verdict is Verdict.OK else checks.folding_options(survey)
    if small.command and "min-input-files" in small.command:
        options = {**options, **checks.PAIRS}
    return _rewrite(survey, ", ".join(reasons), 0.0, COPY_PASSES, {}, options)


def _rewrite(
    survey: Survey,
    why: str,
    saved: float,
    passes: int,
    arguments: dict[str, str],
    options: dict[str, str],
) -> Step:
    step = Step("rewrite_data_files", why, 0, 0, 0, arguments, options)
    mask = rewritten(survey, step)
    deletes, sizes = survey.deletes, survey.sizes
    folded = deletes.bytes_opened[mask].sum() + (sizes * _deleted_share(survey))[mask].sum()
    small = checks.small_files(survey)
    gone = small.gone_with_pairs if "min-input-files" in options else small.gone
    opens = gone + int((deletes.positions + deletes.equalities)[mask].sum())
    reads = int(saved + folded)
    rewrites = int(sizes[mask].sum())
    costs = passes * rewrites + int(mask.sum()) * OPEN_BYTES
    saves = reads + opens * OPEN_BYTES
    return Step(
        step.verb, why, saves, costs, rewrites, arguments, options, opens=opens, reads=reads
    )


def rewritten(survey: Survey, step: Step) -> Numbers:
    """Return True for each data file that a compaction would take."""
    if "rewrite-all" in step.options:
        return np.ones(survey.count, dtype=bool)
    small = checks.small_files(survey)
    merged = small.pairs if "min-input-files" in step.options else small.mergeable
    mask = merged | checks.mostly_deleted(survey)
    mask |= survey.sizes > checks.LARGE_SHARE * small.target
    if "delete-ratio-threshold" in step.options:
        deleted = survey.deletes.surely_deleted
        mask |= (deleted > 0) & (deleted >= checks.DELETED_WATCH * survey.rows)
    if "delete-file-threshold" in step.options:
        mask |= survey.deletes.positions + survey.deletes.equalities > 0
    return np.asarray(mask)


def _deleted_share(survey: Survey) -> Numbers:
    return np.asarray(survey.deletes.deleted / np.maximum(survey.rows, 1))


# --- delete files


def equality(survey: Survey, folded: Numbers) -> Step | NoStep:
    """Return the conversion of equality deletes to positions."""
    verb, deletes = "convert_equality_deletes", survey.deletes
    kind = deletes.of(EQUALITY)
    files, dangling = int(kind.sum()), int((kind & deletes.dangling).sum())
    if not files:
        return NoStep(verb, "there are none")
    touched = (deletes.equalities > 0) & ~folded
    count = int(touched.sum())
    if not count and not dangling:
        return NoStep(verb, "all data files that they reach are rewritten anyway")
    size = int(survey.sizes[touched].sum())
    opened = int(deletes.equalities[touched].sum()) * OPEN_BYTES
    compared = int(deletes.bytes_opened[touched].sum()) + int(KEY_SHARE * size)
    saves = max(opened + compared - count * OPEN_BYTES, 0) + dangling * MANIFEST_BYTES
    costs = int(KEY_SHARE * size) + int(deletes.sizes[kind].sum())
    reach = f"reach {count_text(count, 'data file')}, {dangling:,} of them reach none"
    why = f"{count_text(files, 'equality delete file')} {reach}"
    opens = max(int(deletes.equalities[touched].sum()) - count, 0) + dangling
    return Step(verb, why, saves, costs, costs, opens=opens, reads=compared)


def positions(survey: Survey, folded: Numbers) -> Step | NoStep:
    """Return the compaction of position delete files."""
    verb, deletes = "rewrite_position_delete_files", survey.deletes
    kind = deletes.of(POSITION)
    count, dangling = int(kind.sum()), int((kind & deletes.dangling).sum())
    extra = int(np.maximum(deletes.positions - 1, 0)[~folded].sum())
    if not count:
        return NoStep(verb, "there are none")
    if not extra and not dangling:
        return NoStep(verb, "no data file that stays has more than one")
    rewrites = int(deletes.sizes[kind].sum())
    why = (
        f"{count_text(count, 'position delete file')}: {extra:,} more to open than data files "
        f"need, {dangling:,} dangling"
    )
    saves = extra * OPEN_BYTES + dangling * MANIFEST_BYTES
    # Delete files are tiny and read side by side: bytes count, and opening as for manifests.
    costs = COPY_PASSES * rewrites + count * MANIFEST_BYTES
    return Step(verb, why, saves, costs, rewrites, opens=extra + dangling)


# --- metadata


def manifests(survey: Survey) -> Step | NoStep:
    """Return the rewrite of manifests."""
    verb = "rewrite_manifests"
    found = [metadata.check_manifests(survey), metadata.check_clustering(survey)]
    bad = [each.shown for each in found if each.verdict is not Verdict.OK]
    if not bad:
        return NoStep(verb, "they are few, or large enough and by partition")
    count, size, ideal = metadata.manifest_sizes(survey)
    saves = max(count - ideal, 1) * MANIFEST_BYTES
    costs = COPY_PASSES * size + count * MANIFEST_BYTES
    return Step(verb, "; ".join(bad), saves, costs, size, opens=max(count - ideal, 1))


def expiry(survey: Survey) -> Step | NoStep:
    """Return the expiry of snapshots, as the table's properties have it."""
    verb = "expire_snapshots"
    found = [metadata.check_snapshots(survey), metadata.check_metadata(survey)]
    count = metadata.expirable(survey)
    if not count:
        return NoStep(verb, "none is older than the table keeps them")
    if all(each.verdict is Verdict.OK for each in found):
        return NoStep(verb, f"only {count_text(count, 'snapshot')} can expire")
    if survey.view.properties.get("gc.enabled", "true").strip().lower() == "false":
        return NoStep(verb, "gc.enabled is false: the files may belong to other tables too")
    size = survey.metadata_size or 0
    saves = size * count // max(len(survey.handle.snapshots), 1)
    why = f"{count_text(count, 'snapshot')} can expire by history.expire.*"
    return Step(verb, why, saves, min(COPY_PASSES * size, saves * READS), 0, reads=saves)
