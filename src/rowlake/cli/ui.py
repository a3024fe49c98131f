"""`rowlake ui`: serves the page of a lake until Ctrl-C."""

from __future__ import annotations

import html
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rowlake.cli import options as o
from rowlake.errors import InvalidStatementError
from rowlake.secrets import without_passwords

if TYPE_CHECKING:
    from rowlake.ui.server import Server


def ui(
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="Port to listen on; any free one by default."
        ),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Add buttons that optimize and expire.")
    ] = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
) -> None:
    """Show the lake in a browser on this machine: tables, health, history, files, changes."""
    with o.open_lake(warehouse, catalog) as lake:
        from rowlake.ui.server import Server

        try:
            server = Server(
                lake, port=port, allow_actions=allow_actions, flags=flags_of(warehouse, catalog)
            )
        except OSError as error:
            raise InvalidStatementError(
                f"Cannot listen on port {port} of 127.0.0.1: {error.strerror or error}. "
                "Give another --port, or none for any free one."
            ) from error
        with server:
            _serve(server, opens_browser=not no_browser)


def flags_of(warehouse: str | None, catalog: str | None) -> str:
    """Return the options with which a copied command finds the same lake; none with a secret."""
    given = {"--warehouse": warehouse, "--catalog": catalog}
    return " ".join(
        f"{name} {shlex.quote(value)}"
        for name, value in given.items()
        if value is not None and without_passwords(value) == value
    )


def _serve(server: Server, *, opens_browser: bool) -> None:
    rights = "actions allowed" if server.site.allow_actions else "read-only"
    print(f"rowlake ui, {rights}; Ctrl-C ends it", flush=True)
    print(server.gate.url, flush=True)
    folder = _open(server.gate.url) if opens_browser else None
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        _finish(server)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _finish(server: Server) -> None:
    """Let what runs come to its end; a second Ctrl-C does not wait."""
    running = server.site.operations.running
    if running is None:
        return
    print(f"waiting for {running.verb} of {running.table}; Ctrl-C again stops it", flush=True)
    server.site.operations.wait()


def _open(url: str) -> Path | None:
    """Open a browser; return a folder to remove at the end.

    The browser gets a file that only this user can read, since everybody on the machine can see
    the arguments of its process, and the address has the token in it.
    """
    import webbrowser

    folder = Path(tempfile.mkdtemp(prefix="rowlake-ui-"))
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" '
        f'content="0; url={html.escape(url)}"><a href="{html.escape(url)}">rowlake</a>',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())
    return folder
