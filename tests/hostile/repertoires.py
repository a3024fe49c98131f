"""What can be run on tables, by format."""

from __future__ import annotations

from tests.hostile.delta_operations import DELTA
from tests.hostile.operations import ICEBERG

REPERTOIRES = {"iceberg": ICEBERG, "delta": DELTA}
