"""The verbs that `optimize` runs: each step as a call, its report as a line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlake.errors import InternalError
from rowlake.maintain.cleanup.expire import expire_snapshots
from rowlake.maintain.compact.rewrite import Request, rewrite_data_files
from rowlake.maintain.compact.rewrite_tasks import RewriteLayout
from rowlake.maintain.deletes.equality_deletes import convert_equality_deletes
from rowlake.maintain.deletes.position_deletes import rewrite_position_delete_files
from rowlake.maintain.iceberg.manifests import rewrite_manifests
from rowlake.model.health import count_text
from rowlake.model.plan import size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.spark import Engine
    from rowlake.maintain.autopilot.costs import Step
    from rowlake.maintain.compact.rewrite import RewriteReport
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.report import Report

# Large work is committed in parts, so that not too much is lost with one; each adds a snapshot.
GROUP_BYTES = 10 << 30
COMMIT_BYTES = 1 << 30
COMMITS = 10


@dataclass(frozen=True)
class Limits:
    """Which files, and how far to go."""

    where: Predicate | None = None
    branch: str = "main"
    max_bytes: int | None = None
    max_seconds: float | None = None

    def within(self, max_bytes: int | None, max_seconds: float | None) -> Limits:
        """Return the limits with what is left of a budget."""
        return replace(self, max_bytes=max_bytes, max_seconds=max_seconds)


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    handle: TableHandle
    report: Report
    text: str
    bytes_rewritten: int = 0


def run_step(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    """Run a step."""
    found = RUNNERS.get(step.verb)
    if found is None:
        raise InternalError(f"optimize has no step {step.verb}.")
    return found(handle, engine, step, limits)


def _rewrite(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    order = handle.view().sort_order
    is_sort = step.arguments.get("strategy") == "sort"
    request = Request(
        where=limits.where,
        options=rewrite_options(step, limits),
        layout=RewriteLayout(order.fields, order.order_id) if is_sort else RewriteLayout(),
        branch=limits.branch,
        max_bytes=limits.max_bytes,
        max_seconds=limits.max_seconds,
    )
    handle, report = rewrite_data_files(handle, engine, request)
    return Outcome(handle, report, _rewrite_text(report), report.rewritten_bytes_count)


def _rewrite_text(report: RewriteReport) -> str:
    size = size_text(report.rewritten_bytes_count)
    files = count_text(report.rewritten_data_files_count, "data file")
    text = f"{files} of {size} became {report.added_data_files_count:,}"
    if report.removed_delete_files_count:
        text += f", {count_text(report.removed_delete_files_count, 'delete file')} went"
    if report.given_up_files_count:
        text += f", {report.given_up_files_count:,} were left to other writers"
    if report.failed_data_files_count:
        text += f", {report.failed_data_files_count:,} failed"
    return text


def rewrite_options(step: Step, limits: Limits) -> dict[str, Any]:
    """Return the options of a compaction that lands in parts and stays within its budget."""
    group = GROUP_BYTES if limits.max_bytes is None else min(GROUP_BYTES, limits.max_bytes)
    if "rewrite-all" in step.options:
        group = max(group, step.rewrites + 1)  # a partition that is sorted in parts is not sorted
    size = step.rewrites if limits.max_bytes is None else min(step.rewrites, limits.max_bytes)
    commits = min(-(-size // COMMIT_BYTES), COMMITS)
    return {
        "partial-progress.enabled": str(commits > 1).lower(),
        "partial-progress.max-commits": str(max(commits, 1)),
        "max-file-group-size-bytes": str(max(group, 1)),
        "remove-dangling-deletes": "true",
        **step.options,
    }


def _positions(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    handle, report = rewrite_position_delete_files(
        handle, engine, options=step.options, where=limits.where, branch=limits.branch
    )
    files = count_text(report.rewritten_delete_files_count, "delete file")
    text = f"{files} became {report.added_delete_files_count:,}"
    return Outcome(handle, report, text, report.rewritten_bytes_count)


def _equality(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    handle, report = convert_equality_deletes(
        handle, engine, options=step.options, where=limits.where, branch=limits.branch
    )
    files = count_text(report.removed_equality_delete_files_count, "equality delete file")
    text = f"{files} went, {count_text(report.rows_deleted, 'row')} deleted by position"
    return Outcome(handle, report, text, step.rewrites)


def _manifests(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    handle, report = rewrite_manifests(handle, engine, branch=limits.branch)
    files = count_text(report.rewritten_manifests_count, "manifest")
    text = f"{files} became {report.added_manifests_count:,}"
    return Outcome(handle, report, text, step.rewrites)


def _expire(handle: TableHandle, engine: Engine, step: Step, limits: Limits) -> Outcome:
    del step, limits
    handle, report = expire_snapshots(handle, engine, stream_results=True)
    count = count_text(len(report.expired_snapshot_ids), "snapshot")
    text = f"{count} expired, {count_text(report.deleted_data_files_count, 'data file')} went"
    if report.left_foreign_count:
        text += f", {count_text(report.left_foreign_count, 'file')} outside of the table left"
    return Outcome(handle, report, text)


RUNNERS: dict[str, Callable[[TableHandle, Engine, Step, Limits], Outcome]] = {
    "convert_equality_deletes": _equality,
    "expire_snapshots": _expire,
    "rewrite_data_files": _rewrite,
    "rewrite_manifests": _manifests,
    "rewrite_position_delete_files": _positions,
}
