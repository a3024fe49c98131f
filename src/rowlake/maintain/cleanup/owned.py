"""Files that are about to be deleted, told apart: the table's own, and those of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.reachable import Kind
from rowlake.storage.ownership import NAMED

if TYPE_CHECKING:
    from collections.abc import Collection

    from rowlake.storage.ownership import Ownership


@dataclass(frozen=True)
class Split:
    """Files of a table (`own`, a table of `REACHABLE`), and those that are not its own.

    Of the latter some are `named`, and all are counted.
    """

    own: pa.Table
    named: tuple[str, ...] = ()
    foreign_count: int = 0


def split_owned(files: pa.Table, owned: Ownership) -> Split:
    """Tell files apart by where they are: data and delete files, and those of the metadata."""
    if not files.num_rows:
        return Split(files)
    is_data = pc.less_equal(files["kind"], int(Kind.EQUALITY_DELETES)).to_numpy()
    is_own = owned.of_files(files["location"], is_data)
    if is_own.all():
        return Split(files)
    foreign = files["location"].filter(pa.array(~is_own))
    named = tuple(foreign.slice(0, NAMED).to_pylist())
    return Split(files.filter(pa.array(is_own)), named, len(foreign))


def except_locations(files: pa.Table, locations: Collection[str]) -> pa.Table:
    """Return the files that are not at one of these locations, spelled as they are."""
    if not locations:
        return files
    known = pa.array(list(locations), pa.large_string())
    return files.filter(pc.invert(pc.is_in(files["location"], value_set=known)))
