"""What an operation did, for people and for programs."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Result:
    """The outcome of a write: one commit (or none, where nothing had to change).

    `snapshot_id` is None where nothing was committed. Counts of rows are exact.
    """

    operation: str
    snapshot_id: int | None = None
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    rows_unchanged: int = 0
    data_files_added: int = 0
    data_files_removed: int = 0
    delete_files_added: int = 0
    delete_files_removed: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    files_considered: int = 0
    files_pruned: int = 0
    files_matched: int = 0
    retries: int = 0
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return all fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def rows(self) -> list[tuple[str, str]]:
        """Return (name, value) of what is worth showing: what is not zero."""
        always = ("operation", "snapshot_id")
        return [
            (name.replace("_", " "), _shown(name, value))
            for name, value in self.to_dict().items()
            if name in always or value
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        return f"<table>{cells}</table>"


def _shown(name: str, value: object) -> str:
    if name == "phases" and isinstance(value, dict):
        return ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in value.items())
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, int) and name != "snapshot_id":
        return f"{value:,}"
    return str(value)
