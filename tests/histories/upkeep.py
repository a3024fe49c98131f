"""Random maintenance of a table in a history: rows stay as they are, whoever writes meanwhile."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from rowlake.commit.data import Commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from tests.histories.values import Column

ALL = {"rewrite-all": "true"}
COMPACTION = ("binpack", "binpack", "sort", "zorder")
UPKEEP = (*COMPACTION, "positions", "equality", "manifests")
# Lists, maps and structs have no order.
_SORTED = ("int", "long", "string", "date", "float", "double", "boolean", "decimal", "wide decimal")


def draw_upkeep(
    random: Random, columns: list[Column], branch: str, kinds: Sequence[str] = UPKEEP
) -> tuple[str, Any]:
    """Return what to do, in words and as a function of the table."""
    kind = random.choice(kinds)
    names = [f"`{column.name}`" for column in columns if column.kind in _SORTED]
    some = ", ".join(random.sample(names, min(len(names), random.randint(1, 3))))
    options = dict(ALL)
    if random.random() < 0.3:
        options["remove-dangling-deletes"] = "true"
    if random.random() < 0.3:
        options["target-file-size-bytes"] = str(random.choice((500, 2_000)))
        options["max-file-group-size-bytes"] = str(random.choice((2_000, 8_000)))
    if random.random() < 0.2:
        options["partial-progress.enabled"] = "true"

    def run(table: Any) -> None:
        if kind == "binpack":
            table.rewrite_data_files(options=options, branch=branch)
        elif kind in ("sort", "zorder"):
            table.rewrite_data_files(kind, some, options=options, branch=branch)
        elif kind == "positions":
            table.rewrite_position_delete_files(options=ALL, branch=branch)
        elif kind == "equality":
            table.convert_equality_deletes(branch=branch)
        else:
            table.rewrite_manifests(branch=branch)

    return f"{kind} of {branch} ({some}; {options})", run


def expire(random: Random, table: Any) -> str:
    """Expire all but the last snapshots of each branch."""
    last = random.randint(1, 3)
    table.expire_snapshots(
        older_than=int(time.time() * 1000) + 60_000,
        retain_last=last,
        clean_expired_metadata=random.random() < 0.3,
    )
    return f"expire all but {last}"


@contextmanager
def meanwhile(others: Callable[[], None] | None) -> Iterator[None]:
    """Have something else happen before the first commit of what runs inside."""
    waiting = [others] if others else []
    run = Commit.run

    def first(self: Commit, handle: Any) -> Any:
        if waiting:
            waiting.pop()()
        return run(self, handle)

    with mock.patch.object(Commit, "run", first):
        yield
