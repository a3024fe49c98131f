"""How far a streaming query has read a table: a snapshot, and how many of its files.

Spark keeps offsets as JSON and compares them as text, so one place has one offset.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from rowlake.errors import InvalidStatementError

ALL = -1
NO_SNAPSHOT = -1  # 0 is the first version of some tables


@dataclass(frozen=True)
class Offset:
    """All commits before a snapshot have been read, and the first `index` groups of its files.

    - `snapshot`: `NO_SNAPSHOT` before the first commit of a table;
    - `index`: `ALL` where nothing of the snapshot is left;
    - `whole`: all rows of the snapshot are read, not those that its commit changed;
    - `table`: the table's uuid;
    - `began`, `began_whole`: the snapshot at which the query began, and whether it read all of it.

    Spark does not keep where a query began: when it replays the first batch after a crash, it asks
    for the initial offset again, of a table that has grown. So every offset remembers it.
    """

    table: str
    snapshot: int = NO_SNAPSHOT
    index: int = ALL
    whole: bool = False
    began: int = NO_SNAPSHOT
    began_whole: bool = False

    @classmethod
    def first(cls, table: str, snapshot: int = NO_SNAPSHOT, *, whole: bool = False) -> Offset:
        """Return where a query begins: after a snapshot, or with all of its rows."""
        return cls(table, snapshot, 0 if whole else ALL, whole, snapshot, whole)

    @property
    def beginning(self) -> Offset:
        """Where the query began that this offset is of."""
        return Offset.first(self.table, self.began, whole=self.began_whole)

    def after(self, snapshot: int, index: int = ALL) -> Offset:
        """Return a later place of the same query."""
        return replace(self, snapshot=snapshot, index=index, whole=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        return asdict(self)

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Offset:
        """Return what Spark kept; raises InvalidStatementError where it is no offset of ours."""
        try:
            return cls(
                str(kept["table"]),
                int(kept["snapshot"]),
                int(kept["index"]),
                bool(kept["whole"]),
                int(kept["began"]),
                bool(kept["began_whole"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidStatementError(
                f"The checkpoint has an offset that rowlake did not write ({kept!r}). Use another "
                "checkpoint folder."
            ) from error
