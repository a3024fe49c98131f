"""The checks of data and delete files: each looks at a `Survey` and returns a `Finding`.

Thresholds follow what Iceberg's maintenance does by default, so that what a check advises is not a
no-op when it is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rowlake.maintain.autopilot.advice import advice
from rowlake.maintain.autopilot.depth import best_depth, sort_depth
from rowlake.maintain.autopilot.survey import EQUALITY, POSITION, VECTOR
from rowlake.model.health import Finding, Verdict, count_text
from rowlake.model.plan import size_text
from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from rowlake.maintain.autopilot.advice import Advice
    from rowlake.maintain.autopilot.depth import Depth
    from rowlake.maintain.autopilot.survey import Survey

    Numbers = np.ndarray[Any, Any]

TARGET_PROPERTY, TARGET_BYTES = "write.target-file-size-bytes", 512 << 20
# rewrite_data_files takes files below this share of the target (min-file-size-bytes) …
SMALL_SHARE = 0.75
# … and above this one (max-file-size-bytes), which it splits …
LARGE_SHARE = 1.8
# … and leaves groups of fewer files alone (min-input-files).
LEAST_INPUT_FILES = 5
PAIRS = {"min-input-files": "2"}
# A tenth of the files gone is what a reader may notice, a third is what it feels.
EXCESS_WATCH, EXCESS_ACT = 0.10, 0.33
# Without anything to merge, small files tell of partitions that are too fine, in tables this large.
FINE_PARTITIONS = 100
# Beyond one delete file a data file, readers open more than they must; beyond five it dominates.
DELETES_WATCH, DELETES_ACT = 1.0, 5.0
# rewrite_data_files rewrites files with more deleted rows than this (delete-ratio-threshold).
DELETED_ACT, DELETED_WATCH = 0.30, 0.10
# Equality deletes are matched by value with every row of the files they reach, on every read.
EQUALITY_ACT_FILES, EQUALITY_ACT_SHARE = 10, 0.10
# Dangling deletes are planned with on every read, and free to remove.
DANGLING_ACT_FILES, DANGLING_ACT_SHARE = 10, 0.20
# Files that a look for one value opens, in a partition: what bounds and row groups still hide, and
# what sorting is worth its cost for.
DEPTH_WATCH, DEPTH_ACT = 4.0, 10.0
SHOWN_PARTITIONS = 3


@dataclass(frozen=True)
class SmallFiles:
    """Which data files are small, by partition, and what merging them would leave.

    `pairs` are those that compaction takes too where it merges two files already (`PAIRS`).
    """

    target: int
    small: Numbers
    mergeable: Numbers
    gone: int
    pairs: Numbers
    gone_with_pairs: int

    @property
    def count(self) -> int:
        """How many are small."""
        return int(self.small.sum())


def small_files(survey: Survey) -> SmallFiles:
    """Return the small files; `mergeable` are those that rewrite_data_files would take."""
    target = whole_number(survey.view.properties, TARGET_PROPERTY, TARGET_BYTES, least=1)
    small = survey.sizes < SMALL_SHARE * target
    groups, width = survey.groups, len(survey.groups)
    counts = np.bincount(groups[small], minlength=width)
    sizes = np.bincount(groups[small], survey.sizes[small], minlength=width)
    merged = (counts >= LEAST_INPUT_FILES) | ((counts > 1) & (sizes > target))
    left = np.maximum(np.ceil(sizes / target), 1)
    fewer = np.maximum(counts - left, 0)
    several = counts > 1
    return SmallFiles(
        target,
        small,
        small & merged[groups],
        int(fewer[merged].sum()),
        small & several[groups],
        int(fewer[several].sum()),
    )


def check_small_files(survey: Survey) -> Finding:
    """Find data files far below the target size, in partitions that have several."""
    found = small_files(survey)
    total = max(survey.count, 1)
    limit = size_text(int(SMALL_SHARE * found.target))
    shown = f"{found.count:,} of {count_text(survey.count, 'data file')} below {limit}"
    verdict = _graded(found.gone / total, EXCESS_WATCH, EXCESS_ACT)
    ratio = found.count / total
    if verdict is not Verdict.OK:
        left = count_text(survey.count - found.gone, "file")
        why = f"Compaction would leave {left}{_worst(survey, found)}."
        how = advice("rewrite_data_files", survey.name)
        return Finding("small files", ratio, shown, verdict, why, how.sql, how.command)
    if found.gone_with_pairs / total >= EXCESS_WATCH:
        left = count_text(survey.count - found.gone_with_pairs, "file")
        why = (
            f"Partitions have fewer than {LEAST_INPUT_FILES} small files each, which compaction "
            f"leaves alone by default; with min-input-files=2 it would leave {left}."
        )
        how = advice("rewrite_data_files", survey.name, options=PAIRS)
        return Finding("small files", ratio, shown, Verdict.WATCH, why, how.sql, how.command)
    if ratio > 0.5 and survey.partition_count >= FINE_PARTITIONS:
        why = (
            f"{survey.partition_count:,} partitions, {size_text(int(survey.sizes.mean()))} a file, "
            "have nothing to merge: a coarser partition spec would make larger files."
        )
        return Finding("small files", ratio, shown, Verdict.WATCH, why)
    return Finding("small files", ratio, shown, Verdict.OK, "No partition has many to merge.")


def _worst(survey: Survey, found: SmallFiles) -> str:
    """Return the partitions with the most files to merge, as text."""
    if survey.partition_count < 2:
        return ""
    counts = np.bincount(survey.partitions[found.mergeable], minlength=survey.partition_count)
    worst = np.argsort(-counts, kind="stable")[:SHOWN_PARTITIONS]
    named = ", ".join(
        f"{survey.partition_name(int(number))} ({counts[number]:,})"
        for number in worst
        if counts[number]
    )
    return f"; most small files are in {named}"


def check_delete_files(survey: Survey) -> Finding:
    """Find data files that take several delete files to read."""
    deletes = survey.deletes
    touched = deletes.positions > 0
    average = float(deletes.positions[touched].mean()) if touched.any() else 0.0
    vectors, files = (int(deletes.of(kind).sum()) for kind in (VECTOR, POSITION))
    kinds = f"{count_text(files, 'file')}, {count_text(vectors, 'vector')}"
    shown = f"{kinds}; {average:.1f} for each of {count_text(int(touched.sum()), 'data file')}"
    if average <= DELETES_WATCH:
        why = "At most one delete file is opened for a data file."
        shown = shown if files or vectors else "none"
        return Finding("position deletes", average, shown, Verdict.OK, why)
    verdict = _graded(average, DELETES_WATCH, DELETES_ACT)
    why = f"Reading one of these data files opens up to {int(deletes.positions.max()):,} of them."
    how = advice("rewrite_position_delete_files", survey.name)
    return Finding("position deletes", average, shown, verdict, why, how.sql, how.command)


def check_deleted_rows(survey: Survey) -> Finding:
    """Find rows that are read only to be left out."""
    deletes = survey.deletes
    total = int(survey.rows.sum())
    deleted = round(float(deletes.deleted.sum()))
    ratio = deleted / total if total else 0.0
    heavy = int(mostly_deleted(survey).sum())
    shown = f"{deleted:,} of {total:,} ({ratio:.1%})"
    verdict = _graded(ratio, DELETED_WATCH, DELETED_ACT)
    if heavy and verdict is Verdict.OK:
        verdict = Verdict.WATCH
    if verdict is Verdict.OK:
        return Finding("deleted rows", ratio, shown, verdict, "Few rows are read in vain.")
    sure = f"{count_text(heavy, 'data file')} surely with {DELETED_ACT:.0%} or more of them"
    why = f"They are read to be left out; {sure}."
    how = advice("rewrite_data_files", survey.name, options=folding_options(survey))
    return Finding("deleted rows", ratio, shown, verdict, why, how.sql, how.command)


def mostly_deleted(survey: Survey) -> Numbers:
    """Return True for each data file that rewrite_data_files takes for its deletes."""
    deleted = survey.deletes.surely_deleted
    return np.asarray((deleted > 0) & (deleted >= DELETED_ACT * survey.rows))


def folding_options(survey: Survey) -> dict[str, str]:
    """Return the options with which rewrite_data_files takes the files whose rows are deleted."""
    if mostly_deleted(survey).any():
        return {}
    if survey.deletes.surely_deleted.sum() >= DELETED_WATCH * survey.rows.sum():
        return {"delete-ratio-threshold": str(DELETED_WATCH)}
    return {"delete-file-threshold": "1"}  # no delete file says how many rows of which file


def check_equality_deletes(survey: Survey) -> Finding:
    """Find equality deletes, the dearest to read."""
    deletes = survey.deletes
    files = int(deletes.of(EQUALITY).sum())
    touched = int((deletes.equalities > 0).sum())
    reach = f"{touched:,} of {count_text(survey.count, 'data file')}"
    shown = f"{count_text(files, 'delete file')}, on {reach}"
    if not files:
        return Finding("equality deletes", 0, "none", Verdict.OK, "Nothing is matched by value.")
    costly = touched and (
        files >= EQUALITY_ACT_FILES or touched >= EQUALITY_ACT_SHARE * survey.count
    )
    verdict = Verdict.ACT if costly else Verdict.WATCH
    why = "Every read compares each row of these data files with them; positions are cheaper."
    how = advice("convert_equality_deletes", survey.name)
    return Finding("equality deletes", files, shown, verdict, why, how.sql, how.command)


def check_dangling(survey: Survey) -> Finding:
    """Find delete files that apply to no data file any more."""
    deletes = survey.deletes
    count = int(deletes.dangling.sum())
    shown = f"{count:,} of {count_text(deletes.count, 'delete file')}"
    if not count:
        return Finding("dangling deletes", 0, shown, Verdict.OK, "Every delete file deletes rows.")
    many = count >= DANGLING_ACT_FILES and count >= DANGLING_ACT_SHARE * deletes.count
    verdict = Verdict.ACT if many else Verdict.WATCH
    why = "They apply to no data file any more, and every read plans with them."
    how = _removal(survey, deletes.dangling)
    return Finding("dangling deletes", count, shown, verdict, why, how.sql, how.command)


def _removal(survey: Survey, dangling: Numbers) -> Advice:
    """Return what drops most of the dangling deletes: each verb drops those of its own kind."""
    by_value = int((dangling & survey.deletes.of(EQUALITY)).sum())
    verb = "rewrite_position_delete_files"
    if by_value * 2 > int(dangling.sum()):
        verb = "convert_equality_deletes"
    return advice(verb, survey.name)


def check_depth(survey: Survey) -> Finding:
    """Find files whose ranges overlap, so that a look for one value opens many."""
    ordered = bool(survey.view.sort_order.fields)
    depth = sort_depth(survey) if ordered else best_depth(survey)
    if depth is None:
        why = "No file has bounds of a column to compare." if survey.count else "There is no file."
        return Finding("sort depth", None, "not known", Verdict.OK, why)
    shown = f"{depth.average:.1f} files hold a value of {depth.column}"
    verdict = _graded(depth.average, DEPTH_WATCH, DEPTH_ACT)
    if verdict is Verdict.OK:
        return Finding("sort depth", depth.average, shown, verdict, "Bounds tell files apart.")
    return _overlapping(survey, depth, shown, verdict if ordered else Verdict.WATCH, ordered)


def _overlapping(
    survey: Survey, depth: Depth, shown: str, verdict: Verdict, ordered: bool
) -> Finding:
    why = (
        "Files are not in the table's sort order: filters on it skip few of them."
        if ordered
        else f"No order was asked for, and {depth.column} is the best of the first columns."
    )
    arguments = {"strategy": "sort"} | ({} if ordered else {"sort_order": depth.column})
    how = advice("rewrite_data_files", survey.name, arguments, {"rewrite-all": "true"})
    return Finding("sort depth", depth.average, shown, verdict, why, how.sql, how.command)


def _graded(value: float, watch: float, act: float) -> Verdict:
    if value >= act:
        return Verdict.ACT
    return Verdict.WATCH if value >= watch else Verdict.OK
