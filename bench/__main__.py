"""`python -m bench`: run cases on rowlake and its peers and say which targets are met."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench import markdown, report, results
from bench.cases import CASES
from bench.editors import EDITORS
from bench.lab import Lab
from bench.options import Options
from bench.peers import PEERS
from bench.promises import TARGETS
from bench.publish import publish
from bench.rounds import Outcome, first_words, run_rounds
from bench.session import CLUSTER, LOCAL
from bench.targets import judge_all

if TYPE_CHECKING:
    from pathlib import Path

    from bench.case import Case


CLUSTER_CASE = " on a cluster"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure rowlake and its peers in one run."
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to run (default: all)")
    parser.add_argument("--rows", type=int, help="rows of the bench table")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies rows and buckets")
    parser.add_argument("--rounds", type=int, help="measured rounds per case")
    parser.add_argument("--peers", nargs="*", default=[], metavar="PEER", help="only these peers")
    parser.add_argument("--full", action="store_true", help="long run: more rounds, all rows")
    parser.add_argument(
        "--no-cluster", action="store_true", help="leave out the second run on two executors"
    )
    parser.add_argument(
        "--docs", action="store_true", help="write the figures into docs/benchmarks.md"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and peers, then exit")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.cases if name not in CASES]
    if unknown:
        parser.error(f"unknown case {unknown[0]!r}; --list shows the cases")
    known = [*PEERS, *EDITORS]
    strangers = [name for name in parsed.peers if name not in known]
    if strangers:
        parser.error(f"unknown peer {strangers[0]!r}; expected one of: {', '.join(known)}")
    return parsed


def run_case(lab: Lab, case: Case, console: Console) -> Outcome:
    """Run one case; a case that cannot even start is a failure of that case alone."""
    limit, start = lab.keep_time(), lab.elapsed_s
    late = f" (late: at most {limit} rounds)" if limit else ""
    console.print(f"\n[bold]{case.name}[/]: {case.title}{late}, {lab.master}", highlight=False)
    try:
        contestants = case.contestants(lab)
    except Exception as error:  # noqa: BLE001 - the other cases go on
        message = first_words(error)
        console.print(f"  [red]cannot be set up:[/] {message}")
        failure = {"system": "", "round": "", "message": message, "trace": traceback.format_exc()}
        return Outcome(case.name, failures=[failure])
    for system, settings in lab.new_configurations().items():
        console.print(f"  [dim]{system}: {settings}[/]", highlight=False)
    rounds = lab.rounds_of(case.rounds)
    with report.CaseView(console, case, contestants, rounds) as view:
        outcome = run_rounds(
            case,
            contestants,
            rounds,
            on_sample=view.sample,
            on_failure=view.failure,
            counters=lab.counters,
        )
    console.print(report.case_table(outcome, "", case.ours))
    took = f"{lab.elapsed_s - start:.0f} s, {lab.elapsed_s / 60:.0f} min so far"
    console.print(f"  {agreement(outcome)}; {took}", highlight=False)
    for wrong in outcome.disagreements:
        console.print(f"  [red]systems disagree[/] on {wrong['step']}: {wrong['digests']}")
    return outcome


def agreement(outcome: Outcome) -> str:
    """Return text that says whether the systems ended with the same rows."""
    if not outcome.truths:
        return "no rows to compare"
    if outcome.disagreements:
        return "[red]the systems do not agree on the rows[/]"
    systems = {name for truth in outcome.truths for name in truth["digests"]}
    return f"rows and checksums of {len(systems)} systems agree in {len(outcome.truths)} checks"


def run(options: Options, console: Console) -> tuple[list[Outcome], Path]:
    """Run the cases; return their outcomes and the results file."""
    lab = Lab(options)
    outcomes: list[Outcome] = []
    try:
        names = list(options.cases or default_cases(options))
        for name in names:
            outcomes.append(_run_in_time(lab, CASES[name], console))  # noqa: PERF401 - for Ctrl-C
        again = [CASES[name] for name in names if CASES[name].on_cluster]
        if options.cluster and again:
            lab.use_cluster()
        for case in again if options.cluster else ():
            outcomes.append(_on_cluster(_run_in_time(lab, case, console)))  # noqa: PERF401
    finally:
        verdicts = judge_all(_targets_of(outcomes), [m for o in outcomes for m in o.measurements])
        cases = [_as_json(outcome) for outcome in outcomes]
        path = results.save(options, cases, verdicts, lab.configurations())
        lab.close()
    console.print(report.verdict_table(verdicts))
    console.print(f"results: {path}", highlight=False)
    console.print(f"report: {publish(path, lab.cache, console)}", highlight=False)
    return outcomes, path


def _run_in_time(lab: Lab, case: Case, console: Console) -> Outcome:
    if not lab.is_over:
        return run_case(lab, case, console)
    console.print(f"\n[yellow]{case.name} is left out for time;[/] name it to run it")
    note = {"system": "", "round": "", "message": "left out for time; name the case to run it"}
    return Outcome(case.name, notes=[note])


def _on_cluster(outcome: Outcome) -> Outcome:
    """Return the outcome under a name of its own: no target is about it."""
    outcome.case += CLUSTER_CASE
    for found in outcome.measurements:
        found.case = outcome.case
    return outcome


def _as_json(outcome: Outcome) -> dict[str, Any]:
    case = CASES[outcome.case.removesuffix(CLUSTER_CASE)]
    is_again = outcome.case.endswith(CLUSTER_CASE)
    return results.outcome_json(
        outcome, case.title, case.ours, master=CLUSTER if is_again else LOCAL
    )


def default_cases(options: Options) -> list[str]:
    return [case.name for case in CASES.values() if options.full or not case.only_full]


def _targets_of(outcomes: list[Outcome]) -> list[Any]:
    ran = {outcome.case for outcome in outcomes}
    return [target for target in TARGETS if target.case in ran]


def show_list(console: Console) -> None:
    for case in CASES.values():
        note = " (named or --full only)" if case.only_full else ""
        console.print(f"{case.name:20} {case.title}{note}", highlight=False)
    console.print(f"peers: {', '.join([*PEERS, *EDITORS])}", highlight=False)


def main(arguments: list[str]) -> int:
    """Return 0 where every system gave the same rows and none failed, else 1."""
    parsed = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    if parsed.list:
        show_list(console)
        return 0
    options = Options(
        cases=tuple(parsed.cases),
        rows=parsed.rows,
        scale=parsed.scale,
        rounds=parsed.rounds,
        peers=tuple(parsed.peers),
        full=parsed.full,
        cluster=not parsed.no_cluster,
    )
    # On SIGTERM a run keeps what it has measured, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcomes, path = run(options, console)
    if parsed.docs:
        markdown.write_document(path)
    wrong = [o for o in outcomes if o.disagreements or o.failures]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
