"""DELETE, UPDATE, MERGE and upsert on storage that fails at every single call, on both formats.

A run takes a quarter of the combinations, the next with the next commit; `ROWLAKE_FAULTS=all` takes
all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from rowlake.iceberg.cache import default_cache
from tests.faults.every_call import Scene, check_every_call
from tests.faults.row_level import MARK, MODES, REWRITE, VERBS
from tests.lakes import SALES, rows_of, sales
from tests.parts.failing import stray_files
from tests.parts.rotation import in_turn

if TYPE_CHECKING:
    from pathlib import Path

ICEBERG = "filesystem"
# Tables by kind: vectors, position delete files, and Delta's vectors.
KINDS = {
    "v3": {"format-version": "3"},
    "v2": {"format-version": "2"},
    "delta": {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "2"},
}
# Rewrites are the same in both versions of Iceberg.
CASES = [(kind, mode) for kind in KINDS for mode in MODES if (kind, mode) != ("v3", REWRITE)]


def catalog_of(kind: str) -> str | None:
    return None if kind == "delta" else ICEBERG


def name_of(kind: str, place: Path) -> Any:
    return ("delta", str(place / "t")) if kind == "delta" else "shop.sales"


def make(kind: str, place: Path) -> None:
    """Make a table of two data files; the first has a deleted row."""
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(name_of(kind, place), SALES, properties=KINDS[kind])
        table.append(sales(8))
        table.append(sales(8, 100))
        table.delete("id = 5", mode=MARK)


def run(kind: str, verb: str, mode: str, place: Path) -> None:
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        VERBS[verb](lake.table(name_of(kind, place)), mode)


def state(kind: str, place: Path) -> Any:
    default_cache().clear()
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        table = lake.table(name_of(kind, place))
        return rows_of(table.arrow()), len(table.snapshots())


def version(kind: str, place: Path) -> Any:
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        handle: Any = lake.table(name_of(kind, place)).handle
        return handle.version if kind == "delta" else handle.metadata_location


def strays(kind: str, place: Path) -> set[str]:
    return stray_files(place / "lake", catalog_of(kind), name_of(kind, place))


EVERY = [
    pytest.param(*case, verb, after, id="-".join((*case, verb, "after" if after else "before")))
    for case in CASES
    for verb in VERBS
    for after in (False, True)
]


@pytest.mark.parametrize(("kind", "mode", "verb", "after"), in_turn(EVERY, 4, "ROWLAKE_FAULTS"))
def test_a_failed_call_of_a_row_level_verb_leaves_the_table_as_before_or_after(
    tmp_path: Path, monkeypatch, kind: str, mode: str, verb: str, after: bool
) -> None:
    scene = Scene(
        make=partial(make, kind),
        run=partial(run, kind, verb, mode),
        state=partial(state, kind),
        version=partial(version, kind),
        strays=partial(strays, kind),
    )
    check_every_call(scene, tmp_path, monkeypatch, after=after)
