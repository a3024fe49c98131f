"""The health of a table: what was checked, what was found, and what to run.

`Health` prints as lines for a terminal, as a table in a notebook, and as plain values for programs.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rowlake.model import markup
from rowlake.model.plan import size_text


class Verdict(str, enum.Enum):
    """What a finding calls for: nothing, watching, or action."""

    OK = "ok"
    WATCH = "watch"
    ACT = "act"

    @property
    def weight(self) -> int:
        """0 for ok, up to 2 for act."""
        return list(Verdict).index(self)


@dataclass(frozen=True)
class Finding:
    """One line: `value` is the number that the verdict is about, `shown` the same for people.

    `sql` and `command` are what to run, None where nothing is to be run.
    """

    name: str
    value: float | None
    shown: str
    verdict: Verdict
    why: str
    sql: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class MetadataFacts:
    """What a table's metadata says of itself.

    `location` is the file that every commit writes whole, None where there is none to look at;
    `outdated_files` is how many old versions have left the log, deleted or not.
    """

    location: str | None = None
    schemas: int = 0
    log_entries: int = 0
    outdated_files: int = 0


@dataclass(frozen=True)
class Health:
    """The state of a table at a snapshot; made of metadata alone, unless orphans were asked for."""

    table: str
    snapshot_id: int | None
    findings: tuple[Finding, ...]
    data_files: int = 0
    delete_files: int = 0
    partitions: int = 0
    record_count: int = 0
    size_in_bytes: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst of all findings."""
        return max((each.verdict for each in self.findings), key=_weight, default=Verdict.OK)

    def finding(self, name: str) -> Finding:
        """Return a finding by its name; raises KeyError."""
        return {each.name: each for each in self.findings}[name]

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain values, ready for JSON."""
        found = asdict(self)
        found["findings"] = [
            {**asdict(each), "verdict": each.verdict.value} for each in self.findings
        ]
        head = {"table": self.table, "verdict": self.verdict.value}
        return head | {name: found[name] for name in found if name not in head}

    def __str__(self) -> str:
        names = max((len(each.name) for each in self.findings), default=0)
        lines = [self._head(), self._size(), ""]
        for each in self.findings:
            lines.append(f"{each.verdict.value:<5}  {each.name:<{names}}  {each.shown}")
            if each.verdict is not Verdict.OK:
                lines += [f"       {text}" for text in _advice(each)]
        return "\n".join(lines)

    def _head(self) -> str:
        counted = Counter(each.verdict for each in self.findings)
        counts = ", ".join(
            f"{counted[verdict]} {verdict.value}"
            for verdict in reversed(Verdict)
            if counted[verdict]
        )
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return f"{self.table}: {self.verdict.value} ({counts}), {at}"

    def _size(self) -> str:
        counts = {
            "data file": self.data_files,
            "delete file": self.delete_files,
            "partition": self.partitions,
            "row": self.record_count,
        }
        said = [count_text(count, noun) for noun, count in counts.items()]
        return ", ".join([*said, size_text(self.size_in_bytes)])

    def _repr_html_(self) -> str:
        names = ("verdict", "what", "value", "why", "run")
        rows = [_html_row(each) for each in self.findings]
        head = markup.heading(self._head(), self._size())
        return markup.block(head, markup.table(names, rows))


def _weight(verdict: Verdict) -> int:
    return verdict.weight


def _advice(finding: Finding) -> list[str]:
    said = [finding.why]
    if finding.command:
        said.append(f"run: {finding.command}")
    if finding.sql:
        said.append(f"sql: {finding.sql}")
    return said


def _html_row(finding: Finding) -> list[str]:
    needed = finding.verdict is not Verdict.OK
    commands = [each for each in (finding.command, finding.sql) if each and needed]
    return [
        markup.marked_cell(markup.badge(finding.verdict.value, finding.verdict.value)),
        *map(markup.cell, (finding.name, finding.shown, finding.why)),
        markup.marked_cell("<br>".join(map(markup.code, commands))),
    ]


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `1,200 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
