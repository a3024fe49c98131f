"""A report: named values that print as a small table, on a terminal and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from rowlake.errors import shown
from rowlake.model import markup
from rowlake.model.work import DRIVER


@dataclass(frozen=True)
class Report:
    """The base of what verbs return; subclasses are frozen dataclasses.

    Fields named in `always_shown` print even where they are empty or zero. `ran_on` is `driver`,
    `spark` or `driver and spark`: where the tasks of the verb ran, with Spark's jobs and tasks.
    """

    always_shown: ClassVar[tuple[str, ...]] = ()

    ran_on: str = field(default=DRIVER, kw_only=True)
    spark_jobs: int = field(default=0, kw_only=True)
    spark_tasks: int = field(default=0, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, what all reports share last."""
        shared = [item.name for item in fields(Report)]
        own = [item.name for item in fields(self) if item.name not in shared]
        return {name: getattr(self, name) for name in (*own, *shared)}

    def rows(self) -> list[tuple[str, str]]:
        """Return (name, value) of what is not zero or empty; of long lists the first few items."""
        return [
            (name.replace("_", " "), _shown(name, value))
            for name, value in self.to_dict().items()
            if name in self.always_shown or value
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return markup.block(markup.pairs(self.rows()))


def _shown(name: str, value: object) -> str:
    if name == "phases" and isinstance(value, dict):
        return ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in value.items())
    if isinstance(value, tuple):
        return shown(value)
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, int) and not isinstance(value, bool) and name != "snapshot_id":
        return f"{value:,}"
    return str(value)
