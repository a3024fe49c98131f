"""Which files (or manifests) may hold a row of a predicate, and which hold nothing else.

Comes in: a table of files (`rowlake.model.files.files_schema`, native partitions, one spec) or of
manifests, and a bound predicate. Goes out: one boolean per row. Invariants: a file with a
matching row is never left out by `may_match`; every row of a file that `must_match` picks
matches. Both come from one reading, "may some row make this true": all rows match where no row
may be null or make the negation true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.errors import InternalError
from rowlake.model.predicate import NEGATED, And, Leaf, Op, Predicate
from rowlake.prune.fact_sources import (
    DeleteFacts,
    FactSource,
    FileFacts,
    ManifestFacts,
    PartitionFacts,
)
from rowlake.prune.leaf_match import may_hold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.model.partition import PartitionSpec
    from rowlake.model.schema import Schema

    Flags = np.ndarray[Any, np.dtype[np.bool_]]


def may_match(
    entries: pa.Table, predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> pa.BooleanArray:
    """Return True for each file that may hold a matching row.

    A record count of 0 is ignored: opening an empty file costs little, and the count may be wrong.
    """
    return pa.array(some_row(predicate, FileFacts(entries, spec, schema)))


def matching_files(
    entries: pa.Table, predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> pa.Table:
    """Return the files that may hold a matching row.

    Metrics cost much more to test than partition values, so they are tested last, and only for the
    remaining files.
    """
    found = some_row(predicate, PartitionFacts(entries, spec, schema))
    if np.count_nonzero(found) * 2 < len(found):
        entries = entries.filter(pa.array(found)).combine_chunks()
    return entries.filter(may_match(entries, predicate, spec, schema))


def must_match(
    entries: pa.Table, predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> pa.BooleanArray:
    """Return True for each file all of whose rows match."""
    return pa.array(~some_row_fails(predicate, FileFacts(entries, spec, schema)))


def deletes_may_match(
    entries: pa.Table, predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> pa.BooleanArray:
    """Return True for each delete file that may delete a matching row.

    Equality deletes are also judged by the metrics of their equality columns; what else they
    store may differ from the rows that they delete.
    """
    return pa.array(some_row(predicate, DeleteFacts(entries, spec, schema)))


def matching_deletes(
    entries: pa.Table, predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> pa.Table:
    """Return the delete files that may delete a matching row."""
    return entries.filter(deletes_may_match(entries, predicate, spec, schema))


def manifests_may_match(
    manifests: pa.Table,
    predicate: Predicate,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
) -> pa.BooleanArray:
    """Return True for each manifest that may list a file with a matching row."""
    result = np.ones(manifests.num_rows, dtype=bool)
    spec_ids = np.asarray(manifests.column("partition_spec_id"))
    for spec_id in np.unique(spec_ids):
        if int(spec_id) not in specs:
            continue  # whoever reads the manifest says so, with its name
        rows = np.flatnonzero(spec_ids == spec_id)
        source = ManifestFacts(manifests.take(rows), specs[int(spec_id)], schema)
        result[rows] = some_row(predicate, source)
    return pa.array(result)


def some_row(predicate: Predicate, source: FactSource) -> Flags:
    """Return where some row may make the predicate true."""
    return _combined(predicate, source, _leaf_may_hold, fails=False)


def some_row_fails(predicate: Predicate, source: FactSource) -> Flags:
    """Return where some row may make the predicate false or null."""
    return _combined(predicate, source, _leaf_may_fail, fails=True)


def _combined(
    predicate: Predicate,
    source: FactSource,
    of_leaf: Callable[[Leaf, FactSource], Flags],
    *,
    fails: bool,
) -> Flags:
    if isinstance(predicate, Leaf):
        return of_leaf(predicate, source)
    all_needed = isinstance(predicate, And) is not fails
    result = np.full(source.size, all_needed)
    for part in predicate.parts:
        if not result.any() if all_needed else result.all():
            break
        found = _combined(part, source, of_leaf, fails=fails)
        result = result & found if all_needed else result | found
    return result


def _leaf_may_hold(leaf: Leaf, source: FactSource) -> Flags:
    return may_hold(leaf, source.facts(_bound_id(leaf)))


def _leaf_may_fail(leaf: Leaf, source: FactSource) -> Flags:
    facts = source.facts(_bound_id(leaf))
    fails = may_hold(replace(leaf, op=NEGATED[leaf.op]), facts)
    return fails if leaf.op in (Op.IS_NULL, Op.NOT_NULL) else fails | facts.may_null


def _bound_id(leaf: Leaf) -> int:
    if leaf.field_id is None:
        raise InternalError(f"The predicate on {'.'.join(leaf.path)} is not bound.")
    return leaf.field_id
