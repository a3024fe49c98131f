"""Options that several commands share, and the lake that they open."""

from __future__ import annotations

import gc
import tempfile
from typing import TYPE_CHECKING, Annotated

import typer

from rowlake.cli.output import Output
from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from rowlake.lake import Lake

Warehouse = Annotated[
    str | None,
    typer.Option("--warehouse", envvar="ROWLAKE_WAREHOUSE", help="Where tables live."),
]
Catalog = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        envvar="ROWLAKE_CATALOG",
        help="A catalog from PyIceberg's configuration, or 'filesystem'.",
    ),
]
Shown = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
TableName = Annotated[str, typer.Argument(metavar="NS.TABLE", help="The table.")]

# --- of commands that change rows

Branch = Annotated[str | None, typer.Option("--branch", help="Write to this branch.")]
Mode = Annotated[str | None, typer.Option("--mode", help="auto, copy-on-write or merge-on-read.")]
Deletes = Annotated[
    str | None, typer.Option("--deletes", help="auto, position, vector or equality.")
]
Isolation = Annotated[str | None, typer.Option("--isolation", help="serializable or snapshot.")]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property", metavar="KEY=VALUE", help="For the snapshot's summary; can be repeated."
    ),
]
Explained = Annotated[
    bool, typer.Option("--explain", help="Show what would be done; nothing is written.")
]


def open_lake(
    warehouse: str | None, catalog: str | None, *, creates: bool = False, table: str | None = None
) -> Lake:
    """Open the lake that the options name.

    Only commands that create things make a lake where none is (`creates`): a mistyped path must
    not look like an empty lake. A table given by its path needs no lake at all.
    """
    gc.disable()  # nothing that loads now is garbage, and searching for it takes time
    try:
        from rowlake.catalog.open import missing_lake
        from rowlake.connection import connect

        missing = None if creates else missing_lake(warehouse, catalog)
        if missing is not None and table is not None and "/" in table:
            warehouse, missing = tempfile.mkdtemp(prefix="rowlake-"), None
        if missing is not None:
            raise InvalidStatementError(
                f"There is no lake at {missing}. Check --warehouse (or ROWLAKE_WAREHOUSE). "
                'A new lake begins with: rowlake sql "CREATE NAMESPACE shop" --warehouse FOLDER'
            )
        return connect(warehouse=warehouse, catalog=catalog)
    finally:
        gc.enable()


def creates_lake(statement: str) -> bool:
    """Return whether a statement may be the first one of a lake."""
    return statement.lstrip(" \t\r\n(;").upper().startswith("CREATE")
