"""EXPLAIN: what a row-level operation would do, found by planning it and matching its rows.

Comes in: a table handle and a `RowChange`. Goes out: a `Plan`. Planning and matching are the
operation's own, so the counts are what it would do at this snapshot; nothing is written. What
makes the operation fail (keys that are not unique) makes its explanation fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from rowlake.engine.local import MAX_BYTES, MAX_FILES
from rowlake.model import plan as words
from rowlake.model.plan import Plan, PlannedFile, Pruned
from rowlake.model.predicate import FALSE, TRUE
from rowlake.model.predicate_text import predicate_text
from rowlake.plan.files import plan_files
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import predict
from rowlake.rowlevel.estimate import Estimates
from rowlake.rowlevel.explain_kernel import explain_kernel
from rowlake.rowlevel.strategy import REWRITTEN_SHARE, Mode, Way
from rowlake.storage.files import Storage
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask
    from rowlake.plan.files import FilePlan
    from rowlake.plan.key_lookup import KeyLookup
    from rowlake.rowlevel.change import Predicted
    from rowlake.rowlevel.operation import RowChange
    from rowlake.verbs.write import WriteOptions

ALIGNED, BROADCAST, BY_POSITION, NO_JOIN = "aligned", "broadcast", "by position", "none"


def explain_change(
    handle: TableHandle, engine: Engine, change: RowChange, options: WriteOptions
) -> Plan:
    """Return what an operation would do; its source is staged, and matched by key columns."""
    found = predict(handle, engine, change, options, explain_kernel)
    predicate = TRUE if change.touches_unmatched else bind(change.predicate, found.view.schema)
    files = plan_files(
        found.view,
        predicate,
        Storage(found.view.io_properties),
        columns=("column_sizes",),
        runner=engine,
    )
    return _Explanation(change, found, predicate, files).plan()


def explain_truncate(handle: TableHandle, engine: Engine, options: WriteOptions) -> Plan:
    """Return what removing all rows would do: it reads metadata only."""
    view = view_for_write(handle, options.branch)
    found = plan_files(view, TRUE, Storage(view.io_properties), runner=engine)
    summary = {} if view.snapshot is None else view.snapshot.summary
    return Plan(
        operation="truncate",
        table=view.name,
        snapshot_id=view.snapshot_id,
        mode="metadata only",
        isolation="not isolated" if options.isolation is None else options.isolation.value,
        files_considered=found.files_considered,
        files=tuple(
            PlannedFile(location, rows, words.REMOVE, "all rows go; it is not read", 0, rows)
            for table in found.data.values()
            for location, rows in zip(
                table["location"].to_pylist(), table["record_count"].to_pylist(), strict=True
            )
        ),
        rows_deleted=found.record_count - int(summary.get("total-position-deletes", 0)),
    )


@dataclass(frozen=True)
class _Explanation:
    """What was found, to be put into words; `by_metadata` are the files left by the predicate."""

    change: RowChange
    found: Predicted
    predicate: Predicate
    by_metadata: FilePlan

    @cached_property
    def estimates(self) -> Estimates:
        return Estimates(self.found.planned.template, self.by_metadata)

    def plan(self) -> Plan:
        view, planned, done = self.found.view, self.found.planned, self.found.done
        staged = self.change.staged
        files = tuple(sorted(self._files(), key=_order))
        return Plan(
            operation=self.change.verb,
            table=view.name,
            snapshot_id=view.snapshot_id,
            mode=planned.template.mode.value,
            isolation=self.found.isolation.value,
            join=self._join(),
            predicate=predicate_text(self.predicate),
            key_index=_index_text(planned.lookup),
            source_rows=None if staged is None else pc.sum(staged.rows["rows"]).as_py() or 0,
            files_considered=planned.files.files_considered,
            pruned=tuple(each for each in self._pruned() if each.files),
            files=files,
            rows_updated=done.updated,
            rows_deleted=done.deleted + sum(planned.removed.values()),
            rows_inserted=done.inserted,
            rows_copied=done.copied,
            rows_unchanged=done.unchanged,
            bytes_to_read=sum(file.bytes_to_read for file in files),
            bytes_to_write=sum(file.bytes_to_write for file in files)
            + self.estimates.written_for_inserts(
                done.inserted, None if staged is None else staged.rows
            ),
            ran_on_reason=self._size_against_limit(),
        )

    def _size_against_limit(self) -> str:
        files = len(self.found.planned.placed)
        return (
            f"{files:,} data file{'' if files == 1 else 's'} of "
            f"{words.size_text(self.found.size_in_bytes)} (the driver takes up to {MAX_FILES} of "
            f"{words.size_text(MAX_BYTES)})"
        )

    def _join(self) -> str:
        if self.change.staged is None:
            return NO_JOIN
        dealing = self.change.staged.dealing
        if dealing.file_column is not None:
            return BY_POSITION
        return BROADCAST if dealing.spec is None else ALIGNED

    # --- pruning

    def _pruned(self) -> Iterator[Pruned]:
        planned = self.found.planned
        considered, left = planned.files.files_considered, self.by_metadata.file_count
        yield Pruned(
            considered - left,
            words.BY_METADATA,
            f"no row of theirs can satisfy {predicate_text(self.predicate)}",
        )
        yield Pruned(left - planned.files.file_count, words.AT_RUN_TIME, self._outside())
        by_index = planned.lookup.files_pruned
        opened = len(planned.placed) + len(planned.removed) + by_index
        yield Pruned(planned.files.file_count - opened, words.AT_RUN_TIME, self._without_source())
        yield Pruned(by_index, words.AT_RUN_TIME, "their key indexes have none of the keys")

    def _outside(self) -> str:
        keys = self.found.planned.source_keys
        if keys == FALSE:
            return "the source has no rows"
        return f"outside the source's keys, {predicate_text(keys)}"

    def _without_source(self) -> str:
        if self._join() == BY_POSITION:
            return "Spark found no row in them"
        return "no source row falls into their partitions"

    # --- files

    def _files(self) -> Iterator[PlannedFile]:
        planned = self.found.planned
        for location, rows in planned.removed.items():
            reason = f"{_all_rows(rows)} by metadata; it is not read"
            yield PlannedFile(location, rows, words.REMOVE, reason, 0, rows)
        changed = {outcome["source"]: outcome for outcome in self.found.done.changed}
        for one in planned.placed:
            yield self._file(one.file, changed.get(one.file.location))

    def _file(self, file: FileTask, outcome: Mapping[str, Any] | None) -> PlannedFile:
        estimates, looked = self.estimates, self.estimates.read_to_match(file)
        if outcome is None:
            return PlannedFile(
                file.location,
                file.record_count,
                words.KEEP,
                "no row changes",
                bytes_to_read=looked,
            )
        return PlannedFile(
            file.location,
            outcome["live"],
            self._strategy(Way(outcome["way"])),
            _reason(self.found.planned.template.mode, outcome),
            outcome["updated"],
            outcome["deleted"],
            looked + estimates.read_to_change(file, outcome),
            estimates.written_for(file, outcome),
        )

    def _strategy(self, way: Way) -> str:
        if way is Way.DELETE_FILE:
            is_vector = self.found.view.can.deletion_vectors
            return words.VECTOR if is_vector else words.POSITION_DELETES
        return words.REMOVE if way is Way.REMOVE else words.REWRITE


def _index_text(lookup: KeyLookup) -> str:
    """Return how the key index was used, or why not."""
    if not lookup.columns:
        return ""
    columns = f"({', '.join(lookup.columns)})"
    if not lookup.is_used:
        return f"{columns} not used: {lookup.reason}"
    narrowed, scanned = lookup.files_narrowed, lookup.files_scanned
    said = [f"{columns} {lookup.keys:,} keys looked up, {lookup.rows:,} rows in {narrowed:,} files"]
    said += [f"{scanned:,} files without an index are scanned"] if scanned else []
    return "; ".join(said)


def _order(file: PlannedFile) -> tuple[int, int, str]:
    """Files by strategy, those that change most before others."""
    changed = file.rows_updated + file.rows_deleted
    return words.STRATEGIES.index(file.strategy), -changed, file.location


def _all_rows(count: int) -> str:
    return f"all {count:,} rows match" if count > 1 else "its one row matches"


def _reason(mode: Mode, outcome: Mapping[str, Any]) -> str:
    """Return why a file is changed the way it is."""
    count, live = outcome["updated"] + outcome["deleted"], outcome["live"]
    if outcome["way"] == Way.REMOVE.value:
        return f"{_all_rows(live)}; none is left in it"
    said = f"{count:,} of {live:,} rows change"
    if mode is not Mode.AUTO:
        return f"{said}; the mode is {mode.value}"
    side = "at least" if outcome["way"] == Way.REWRITE.value else "less than"
    return f"{said} ({count / live:.1%}), {side} {REWRITTEN_SHARE:.0%}"
