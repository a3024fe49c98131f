"""Two row-level writers in every order that matters, written down and not raced.

A commit passes these phases: its files are written, its manifests prepared, its requirements
checked, its marks merged with those of others, its snapshot produced, the pointer swapped. One
writer is stopped after each of them, first time or second time round, and the other one commits
there; each kind of change meets each other kind, on the same row and on another one of the same
data file. Whoever lands, the rows are those of one writer after the other, or of the other alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rowlake.commit import data
from rowlake.commit.phases import Phase
from rowlake.commit.rebase import Rebase
from rowlake.errors import CommitConflictError
from tests.lakes import SALES, make_lake, sales, using_format
from tests.parts import stopping
from tests.parts.failing import stray_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "shop.sales"
ROWS = 40
# Phases, and steps between two of them.
PHASES: dict[str, Phase | tuple[Any, str]] = {
    "written": Phase.WRITTEN,
    "checked": (data, "find_breach"),
    "merged": (Rebase, "onto"),
    "validated": Phase.VALIDATED,
    "produced": Phase.PRODUCED,
}
MARK, REWRITE = "merge-on-read", "copy-on-write"


@pytest.fixture(params=["v2", "v2 by partition", "v3", "delta"])
def kind(request):
    return request.param


@pytest.fixture
def lake(tmp_path, kind):
    with using_format("delta" if kind == "delta" else "iceberg"), make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def table(lake, kind):
    """A table of one data file, of which some rows are deleted already."""
    properties = {
        "format-version": "3" if kind == "delta" else kind[1],
        "write.delete.granularity": "partition" if "partition" in kind else "file",
        "commit.retry.min-wait-ms": "1",
        # What is refused shows as a conflict, and is not replanned.
        "rowlake.commit.replan": "false",
    }
    made = lake.create_table(NAME, SALES, properties=properties)
    made.append(sales(ROWS))
    made.delete("id >= 30", mode=MARK)
    return made


@contextmanager
def stopped_at(monkeypatch: Any, phase: str, others: list[Callable[[], Any]]) -> Iterator[None]:
    """Run the next of `others` whenever the writer inside the block has passed the phase."""
    wanted = PHASES[phase]
    if isinstance(wanted, Phase):
        waiting = [lambda: others.pop(0)()] * len(others)
        with stopping.stopped_at(wanted, *waiting):
            yield
        return
    owner, name = wanted
    whole = getattr(owner, name)
    with monkeypatch.context() as patch:

        def passed(*args: Any, **kwargs: Any) -> Any:
            answer = whole(*args, **kwargs)
            if others:
                other = others.pop(0)
                patch.setattr(owner, name, whole)
                other()
                patch.setattr(owner, name, passed)
            return answer

        patch.setattr(owner, name, passed)
        yield


def ids(table) -> set[int]:
    return set(table.arrow(["id"])["id"].to_pylist())


def left(*gone: int) -> set[int]:
    return set(range(30)) - set(gone)


# Files are written once; all else is done in every round.
ROUNDS = [
    (phase, rounds) for phase in PHASES for rounds in (1, 2) if (phase, rounds) != ("written", 2)
]


@pytest.mark.parametrize("phase, rounds", ROUNDS)
def test_marks_of_other_rows_land_wherever_the_other_writer_comes(
    tmp_path, lake, table, monkeypatch, phase, rounds
):
    others = [lambda n=n: lake.table(NAME).delete(f"id = {n}", mode=MARK) for n in range(rounds)]
    with stopped_at(monkeypatch, phase, others):
        result = table.delete("id = 20", mode=MARK)
    assert (result.rows_deleted, result.retries, others) == (1, rounds, [])
    assert ids(table) == left(20, *range(rounds))
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("ours", [MARK, REWRITE])
@pytest.mark.parametrize("theirs", [MARK, REWRITE])
def test_changes_of_one_row_are_refused_wherever_the_other_writer_comes(
    tmp_path, lake, table, monkeypatch, phase, ours, theirs
):
    others = [lambda: lake.table(NAME).delete("id = 5", mode=theirs)]
    with (
        stopped_at(monkeypatch, phase, others),
        pytest.raises(CommitConflictError) as raised,
    ):
        table.delete("id = 5 OR id = 6", mode=ours, isolation="snapshot")
    assert raised.value.retryable
    assert raised.value.snapshot_id == table.snapshots()[-1].snapshot_id
    assert ids(table) == left(5)
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("ours, theirs", [(MARK, REWRITE), (REWRITE, MARK), (REWRITE, REWRITE)])
def test_a_rewrite_of_the_file_is_refused_or_refuses_even_for_other_rows(
    tmp_path, lake, table, monkeypatch, ours, theirs
):
    others = [lambda: lake.table(NAME).delete("id = 5", mode=theirs)]
    with stopped_at(monkeypatch, "written", others), pytest.raises(CommitConflictError):
        table.delete("id = 6", mode=ours, isolation="snapshot")
    assert ids(table) == left(5)
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_beside_marks_lands_where_the_isolation_allows_it(
    tmp_path, lake, table, monkeypatch, phase
):
    others = [lambda: lake.table(NAME).append(sales(1, 6))]
    with stopped_at(monkeypatch, phase, others), pytest.raises(CommitConflictError):
        table.delete("id = 6", mode=MARK)
    others = [lambda: lake.table(NAME).append(sales(1, 100))]
    with stopped_at(monkeypatch, phase, others):
        assert table.delete("id = 6", mode=MARK).rows_deleted == 2
    others = [lambda: lake.table(NAME).append(sales(1, 7))]
    with stopped_at(monkeypatch, phase, others):
        assert table.delete("id = 7", mode=MARK, isolation="snapshot").rows_deleted == 1
    assert ids(table) == left(6) | {100}
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("kind", ["v2", "v2 by partition", "v3"])  # Delta has no rollback
@pytest.mark.parametrize("phase", PHASES)
def test_a_rollback_beside_marks_refuses_or_is_kept_below_them(
    tmp_path, lake, table, monkeypatch, phase
):
    first = table.snapshots()[0].snapshot_id
    others = [lambda: lake.table(NAME).rollback_to(first)]
    with (
        stopped_at(monkeypatch, phase, others),
        pytest.raises(CommitConflictError, match="no longer in the history"),
    ):
        table.delete("id = 6", mode=MARK)
    assert ids(table) == set(range(ROWS))


def test_each_of_three_writers_keeps_what_the_others_deleted(tmp_path, lake, table, monkeypatch):
    def second() -> None:
        with stopped_at(monkeypatch, "produced", [third]):
            lake.table(NAME).delete("id = 2", mode=MARK)

    def third() -> None:
        lake.table(NAME).delete("id = 3", mode=MARK)

    with stopped_at(monkeypatch, "validated", [second]):
        table.delete("id = 1", mode=MARK)
    assert ids(table) == left(1, 2, 3)
    assert stray_files(tmp_path, None, NAME) == set()
