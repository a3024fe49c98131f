"""Cases: each has a number, mutates a copy of a sample table, and has operations run on it.

A case comes out the same whenever seed and number are the same: the sample, the mutation, and the
operations. `Ground` runs cases one after the other in a folder of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.hostile.delta_tables import DELTA_LAYOUTS
from tests.hostile.fence import FenceError, can_fence
from tests.hostile.mutations import choices
from tests.hostile.operations import Orders
from tests.hostile.repertoires import REPERTOIRES
from tests.hostile.scene import Scene
from tests.hostile.tables import LAYOUTS, arena_of, contents, make_samples, make_victim

if TYPE_CHECKING:
    from types import TracebackType

    from tests.hostile.mutations import Mutation
    from tests.hostile.tables import Sample

SECONDS = 60.0  # of waiting, for some thirty operations; the machine may be busy otherwise
CPU_SECONDS = 40  # a bomb costs each operation what it may unpack to
MEMORY = 2 << 30  # a block of some hundred megabytes may be unpacked, and copied
LOOKS_EACH, WRITES_EACH = 8, 3
GOOD = ("done", "refused", "needs Spark", "started", "ended")
FORMATS = {"iceberg": LAYOUTS, "delta": DELTA_LAYOUTS}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """One mutation of one sample."""

    number: int
    seed: str
    sample: str
    mutation: Mutation

    @property
    def format(self) -> str:
        """The table format of the sample."""
        return next(one for one, layouts in FORMATS.items() if self.sample in layouts)

    @property
    def name(self) -> str:
        return f"{self.sample}: {self.mutation.name}"


@dataclass(frozen=True)
class Finding:
    """Something that went wrong: where, and what came of it."""

    kind: str
    operation: str
    text: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} in {self.operation}: {self.text}\n{self.trace}".rstrip()

    @property
    def place(self) -> str:
        """Where it happened: the kind, the error, and the last of our lines in the trace."""
        lines = re.findall(r"rowlake/(\w[\w/]*\.py)\"?, line (\d+)", self.trace)
        if self.kind == "hang":
            lines = lines[:1]
        where = ":".join(lines[-1]) if lines else self.operation
        return f"{self.kind} {self.text.split(':')[0][:60] if lines else self.text[:60]} at {where}"


@dataclass
class Outcome:
    """What came of a case."""

    case: Case
    findings: list[Finding] = field(default_factory=list)
    operations: dict[str, int] = field(default_factory=dict)  # outcome -> how many
    seconds: float = 0.0
    grown: int = 0
    notes: str = ""

    def __str__(self) -> str:
        case = self.case
        head = (
            f"case {case.number} of seed {case.seed}: {case.name} {self.notes}\n"
            f"allowed: {case.mutation.verdict.value}\n"
        )
        return head + "\n".join(map(str, self.findings))


def case_of(seed: str, number: int, table_format: str = "iceberg") -> Case:
    """Return the case of a number: even ones change a meaning, odd ones bytes."""
    layouts = FORMATS[table_format]
    random = Random(f"{seed}:{number}")
    if number % 2 == 0:
        ordered = _meanings(seed, table_format)
        mutation, samples = ordered[number // 2 % len(ordered)]
        return Case(number, seed, random.choice(samples), mutation)
    sample = random.choice(sorted(layouts))
    found = choices(layouts[sample], meanings=False)
    kind = random.choice(sorted({one.kind for one in found}))
    mutation = random.choice([one for one in found if one.kind == kind])
    return Case(number, seed, sample, mutation)


@lru_cache(maxsize=4)
def _meanings(seed: str, table_format: str) -> list[tuple[Mutation, list[str]]]:
    """Return every mutation of a meaning, with the samples it suits; kinds take turns."""
    found: dict[str, tuple[Mutation, list[str]]] = {}
    for sample, layout in sorted(FORMATS[table_format].items()):
        for mutation in choices(layout, meanings=True):
            found.setdefault(mutation.name, (mutation, []))[1].append(sample)
    kinds: dict[str, list[tuple[Mutation, list[str]]]] = {}
    for each in found.values():
        kinds.setdefault(each[0].kind, []).append(each)
    for kind, held in sorted(kinds.items()):
        Random(f"{seed}:{kind}").shuffle(held)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [each for turn in turns for each in turn if each is not None]


def every_meaning(seed: str, table_format: str = "iceberg") -> int:
    """Return how many mutations of meanings there are: cases of even numbers, from 0 on."""
    return len(_meanings(seed, table_format))


class Ground:
    """Runs cases in a folder of its own; one process beside this one, which forks."""

    def __init__(self, root: Path) -> None:
        self.arena, self._work = arena_of(root), root / "work"
        self._root = root
        self._samples: dict[str, Sample] = {}

    def __enter__(self) -> Ground:
        if not can_fence():
            raise FenceError("this machine has no Landlock, without which no case is run")
        self._samples = make_samples(self._root, {**LAYOUTS, **DELTA_LAYOUTS})
        self._victim = contents(self.arena / "victim")
        self._others = {
            name: contents(one.template / "db" / "other") for name, one in self._samples.items()
        }
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=self._environment(),
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(timeout=60)
        self._child.stdout.close()

    def _environment(self) -> dict[str, str]:
        temporary = self._work / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "ROWLAKE_CACHE_DIR": str(self._work / "cache"),
            "TMPDIR": str(temporary),
            "OPENBLAS_NUM_THREADS": "1",
        }

    def run(self, case: Case, operations: list[str] | None = None) -> Outcome:
        """Mutate, run (some operations that write, by default), and judge."""
        scene = self.mutated(case)
        told = self._ask(self._orders(scene, case, operations))
        outcome = Outcome(case, seconds=told["seconds"], grown=told["grown"])
        outcome.notes = "; ".join(scene.notes)
        self._judge(outcome, told)
        return outcome

    def mutated(self, case: Case) -> Scene:
        """Put the sample of a case in its place, mutated."""
        random = Random(f"{case.seed}:{case.number}:mutation")
        scene = Scene(self.arena, self._samples[case.sample], random)
        scene.restore()
        case.mutation.apply(scene)
        return scene

    def _orders(self, scene: Scene, case: Case, operations: list[str] | None) -> Orders:
        layout = scene.sample.layout
        known = REPERTOIRES[layout.format]
        looks, writes = sorted(known.reads), sorted(known.writes)
        if operations is None:
            looks = scene.random.sample(looks, LOOKS_EACH)
            writes = scene.random.sample(writes, WRITES_EACH)
        else:
            writes = operations
        return Orders(
            layout.format,
            str(scene.lake),
            layout.catalog,
            case.mutation.verdict,
            case.mutation.filters_lie,
            case.mutation.history_lies,
            scene.sample.snapshots,
            looks,
            writes,
            as_large=case.number % 4 >= 2,
        )

    def _ask(self, orders: Orders) -> dict[str, Any]:
        (self._work / "report").unlink(missing_ok=True)
        told = {
            "arena": str(self.arena),
            "work": str(self._work),
            "seconds": SECONDS,
            "cpu_seconds": CPU_SECONDS,
            "orders": asdict(orders),
        }
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(told) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the cases ended with {self._child.wait()}")
        return json.loads(line)

    # --- judging

    def _judge(self, outcome: Outcome, told: dict[str, Any]) -> None:
        lines = self._report()
        for line in lines:
            if line["outcome"] not in GOOD:
                outcome.findings.append(
                    Finding(
                        line["outcome"],
                        line["operation"],
                        line.get("error", ""),
                        line.get("trace", ""),
                    )
                )
            if line["outcome"] != "started":
                kind = line["outcome"]
                outcome.operations[kind] = outcome.operations.get(kind, 0) + 1
        last = lines[-1]["operation"] if lines else "start"
        if told["status"] != 0:
            outcome.findings.append(self._ended(told, last))
        if told["grown"] > MEMORY:
            grown = f"{told['grown'] >> 20} MB more than at the start"
            outcome.findings.append(Finding("memory", last, grown))
        outcome.findings += self._touched(outcome.case.sample)

    def _report(self) -> list[dict[str, Any]]:
        path = self._work / "report"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def _ended(self, told: dict[str, Any], last: str) -> Finding:
        trace = (self._work / "stderr").read_text(errors="replace")[-6000:]
        if told["seconds"] >= SECONDS or told["status"] == -signal.SIGKILL:
            text = f"not done after {told['cpu']:.0f} of {told['seconds']:.0f} s computing"
            return Finding("hang", last, text, trace)
        return Finding("crash", last, f"the process ended with {told['status']}", trace)

    def _touched(self, sample: str) -> list[Finding]:
        """Look at what belongs to others: all of it must be there as it was."""
        findings = []
        places = {
            self.arena / "victim": self._victim,
            self.arena / "lake" / "db" / "other": self._others[sample],
        }
        for folder, before in places.items():
            after = contents(folder)
            lost = [name for name, data in before.items() if after.get(name) != data]
            if lost:
                text = f"{len(lost)} files of {folder.name} are gone or changed: {lost[:3]}"
                findings.append(Finding("touched", "all", text))
        self._restore_victim()
        return findings

    def _restore_victim(self) -> None:
        victim = self.arena / "victim"
        if contents(victim) != self._victim:
            shutil.rmtree(victim, ignore_errors=True)
            make_victim(victim)
            self._victim = contents(victim)
