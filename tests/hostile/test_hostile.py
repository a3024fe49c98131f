"""Mutated tables: a RowlakeError or right rows, in bounded time and memory.

A sample of the cases that `make hostile` runs more of; kinds of files take turns in it.
"""

from __future__ import annotations

import pytest

from tests.hostile.fence import can_fence
from tests.hostile.mutation import Mutation
from tests.hostile.mutations import choices
from tests.hostile.repertoires import REPERTOIRES
from tests.hostile.runner import FORMATS, Case, Ground, case_of, every_meaning
from tests.hostile.tables import contents, make_victim
from tests.hostile.verdicts import Verdict
from tests.parts.require import skip_or_fail

SEED = "sample"
CASES = {"iceberg": 110, "delta": 24}
SAMPLES = [(one, sample) for one, layouts in FORMATS.items() for sample in layouts]


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    if not can_fence():
        skip_or_fail("Landlock, without which a case could change files of the machine")
    with Ground(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.mark.parametrize(
    ("table_format", "number"),
    [(one, number) for one, count in CASES.items() for number in range(count)],
)
def test_a_mutated_table_is_refused_or_read_right(ground, table_format, number) -> None:
    outcome = ground.run(case_of(SEED, number, table_format))
    assert not outcome.findings, str(outcome)


@pytest.mark.parametrize(("table_format", "sample"), SAMPLES)
def test_a_table_that_is_not_mutated_passes_every_operation(ground, table_format, sample) -> None:
    untouched, known = (
        Mutation("nothing", "data", Verdict.SAME, _nothing),
        REPERTOIRES[table_format],
    )
    outcome = ground.run(Case(0, SEED, sample, untouched), list(known.writes))
    assert not outcome.findings, str(outcome)
    assert outcome.operations["done"] > len(known.writes) + len(known.reads)


def _nothing(scene) -> None:
    """Leave the table as it is."""


def test_a_finding_says_what_was_mutated_and_what_was_run(ground) -> None:
    mutation = Mutation("no mutation", "data", Verdict.REFUSED, _nothing)
    outcome = ground.run(Case(7, SEED, "v2", mutation))
    assert [(found.kind, found.operation) for found in outcome.findings] == [("wrong", "read")]
    for text in ("case 7", "v2: no mutation", "it was not refused", "allowed: an error"):
        assert text in str(outcome)


def test_rows_that_are_lost_are_found_out(ground) -> None:
    def lose(scene) -> None:
        found = scene.metadata()
        found["snapshots"][-1]["manifest-list"] = found["snapshots"][0]["manifest-list"]
        scene.write_metadata(found)

    mutation = Mutation("an older manifest list", "metadata", Verdict.SAME_OR_ERROR, lose)
    outcome = ground.run(Case(7, SEED, "v3", mutation), [])
    assert outcome.findings[0].kind == "wrong"
    assert "12 rows, not 21" in outcome.findings[0].text


def test_a_case_can_change_no_file_outside_of_its_arena(tmp_path, ground) -> None:
    outside = tmp_path / "outside"
    make_victim(outside)

    def leave(scene) -> None:
        found = scene.metadata()
        scene.write_metadata({**found, "location": str(outside)})

    before = contents(outside)
    mutation = Mutation("a location outside", "metadata", Verdict.SAME_OR_ERROR, leave)
    ground.run(Case(7, SEED, "v2", mutation), ["vacuum"])
    assert contents(outside) == before


@pytest.mark.parametrize(("table_format", "step"), [("iceberg", 1), ("delta", 4)])
def test_mutations_of_meanings_can_be_made(ground, table_format, step) -> None:
    for number in range(0, 2 * every_meaning(SEED, table_format), 2 * step):
        ground.mutated(case_of(SEED, number, table_format))


def test_cases_come_out_the_same_again() -> None:
    first = [case_of("x", number).name for number in range(200)]
    assert first == [case_of("x", number).name for number in range(200)]
    assert first != [case_of("y", number).name for number in range(200)]


@pytest.mark.parametrize(
    ("table_format", "old", "kinds"),
    [("iceberg", "old manifest list", 11), ("delta", "old commit", 8)],
)
def test_every_kind_of_file_is_mutated_in_bytes_and_in_meaning(table_format, old, kinds) -> None:
    layouts = FORMATS[table_format].values()
    bytewise = {one.kind for layout in layouts for one in choices(layout, meanings=False)}
    meant = {one.kind for layout in layouts for one in choices(layout, meanings=True)}
    assert bytewise - meant == {old}
    assert len(meant) == kinds


def test_files_of_others_that_are_gone_are_found_out(ground) -> None:
    def lose(scene) -> None:
        (scene.victim / "notes.txt").unlink()
        next((scene.lake / "db" / "other" / "data").iterdir()).write_bytes(b"")

    mutation = Mutation("a lost file", "data", Verdict.SAME, lose)
    outcome = ground.run(Case(7, SEED, "v2", mutation), [])
    assert [found.kind for found in outcome.findings] == ["touched", "touched"]
    assert not ground.run(case_of(SEED, 1)).findings, "the victim is restored"
