"""Which snapshots of a table expire: what a caller asks for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What a caller asks to expire; None: what the table's properties say. Times in ms."""

    now_ms: int
    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()
    clean_metadata: bool = False


@dataclass(frozen=True)
class Expiry:
    """What goes, in the order of the metadata."""

    snapshot_ids: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    schema_ids: tuple[int, ...] = ()
    spec_ids: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.snapshot_ids or self.refs or self.schema_ids or self.spec_ids)
