"""Options that several commands share, and the lake that they open."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Annotated

import typer

from rowlake.cli.output import Output

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


def open_lake(warehouse: str | None, catalog: str | None) -> Lake:
    """Open the lake that the options name."""
    gc.disable()  # nothing that loads now is garbage, and searching for it takes time
    try:
        from rowlake.connection import connect

        return connect(warehouse=warehouse, catalog=catalog)
    finally:
        gc.enable()
