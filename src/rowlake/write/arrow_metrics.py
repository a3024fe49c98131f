"""Metrics counted from Arrow data, for formats whose footers pyarrow does not show.

Same rules as the metrics of Parquet files, without column sizes. Java's metrics of ORC files also
count the values of structs, lists and maps themselves; `containers` asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.values import encode
from rowlake.write.leaves import Leaf, containers_of, leaf_values, leaves_of
from rowlake.write.metrics import Metrics
from rowlake.write.metrics_modes import FULL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.write.metrics_modes import MetricsMode


class ArrowMetrics:
    """Counts the batches of one file."""

    def __init__(
        self, schema: pa.Schema, modes: Mapping[int, MetricsMode], *, containers: bool = False
    ) -> None:
        self._modes = modes
        any_counted = any(mode.counts for mode in modes.values()) or not modes
        self._containers = containers_of(schema) if containers and any_counted else []
        self._leaves = [
            leaf
            for leaf in leaves_of(schema)
            if not leaf.is_repeated and modes.get(leaf.field_id, FULL).counts
        ]
        self.record_count = 0
        self._nulls = dict.fromkeys([*self._leaves, *self._containers], 0)
        self._nans = {leaf: 0 for leaf in self._leaves if pa.types.is_floating(leaf.field.type)}
        self._lowest: dict[Leaf, pa.Scalar] = {}
        self._highest: dict[Leaf, pa.Scalar] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count one batch."""
        self.record_count += len(batch)
        for container in self._containers:
            self._nulls[container] += leaf_values(container, batch.columns).null_count
        for leaf in self._leaves:
            values = leaf_values(leaf, batch.columns)
            self._nulls[leaf] += values.null_count
            if leaf in self._nans:
                is_nan = pc.is_nan(values)
                self._nans[leaf] += pc.sum(is_nan).as_py() or 0
                values = values.filter(pc.invert(is_nan))
            if self._modes.get(leaf.field_id, FULL).bounds:
                self._add_bounds(leaf, values)

    def _add_bounds(self, leaf: Leaf, values: pa.Array) -> None:
        kept = [each[leaf] for each in (self._lowest, self._highest) if leaf in each]
        found = pc.min_max(pa.concat_arrays([values, *(_one(scalar) for scalar in kept)]))
        if found["min"].is_valid:
            self._lowest[leaf], self._highest[leaf] = found["min"], found["max"]

    def result(self) -> Metrics:
        """Return the metrics of all that was counted."""
        metrics = Metrics()
        for container in self._containers:
            metrics.value_counts.append((container.field_id, self.record_count))
            metrics.null_value_counts.append((container.field_id, self._nulls[container]))
        for leaf in self._leaves:
            metrics.value_counts.append((leaf.field_id, self.record_count))
            metrics.null_value_counts.append((leaf.field_id, self._nulls[leaf]))
            if leaf in self._nans:
                metrics.nan_value_counts.append((leaf.field_id, self._nans[leaf]))
            if leaf in self._lowest:
                lowest = _encoded(self._lowest[leaf], -0.0)
                highest = _encoded(self._highest[leaf], 0.0)
                metrics.add_bounds(leaf, lowest, highest, self._modes.get(leaf.field_id, FULL))
        return metrics


def _one(scalar: pa.Scalar) -> pa.Array:
    return pa.array([scalar], scalar.type)


def _encoded(scalar: pa.Scalar, zero: float) -> bytes:
    if pa.types.is_floating(scalar.type) and scalar.as_py() == 0:
        scalar = pa.scalar(zero, scalar.type)
    encoded: bytes = encode(_one(scalar))[0].as_py()
    return encoded
