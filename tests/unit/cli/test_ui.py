"""`rowlake ui`: the address, its options, Ctrl-C."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

from rowlake.cli.app import app
from rowlake.cli.ui import _open, flags_of
from rowlake.errors import InvalidStatementError
from tests.lakes import SALES, make_lake


@pytest.fixture
def folder(tmp_path):
    with make_lake(tmp_path / "lake") as lake:
        lake.create_namespace("ns")
        lake.create_table("ns.t", SALES)
    return tmp_path / "lake"


def test_the_address_is_printed_and_ctrl_c_ends_it_cleanly(folder) -> None:
    command = [sys.executable, "-m", "rowlake.cli.app", "ui", "--no-browser"]
    with subprocess.Popen(
        [*command, "--warehouse", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said, url = process.stdout.readline(), process.stdout.readline().strip()
            assert "read-only" in said
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert opener.open(url, timeout=60).status == 200
            base = url.partition("?")[0]
            assert "ns.t" in opener.open(base, timeout=60).read().decode()
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(base, timeout=60)
        finally:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_port_in_use_is_told_plainly(folder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = CliRunner().invoke(
            app, ["ui", "--no-browser", "--port", str(port), "--warehouse", str(folder)]
        )
    assert isinstance(found.exception, InvalidStatementError)
    assert f"Cannot listen on port {port}" in str(found.exception)


def test_a_folder_without_a_lake_is_refused(tmp_path) -> None:
    found = CliRunner().invoke(app, ["ui", "--no-browser", "--warehouse", str(tmp_path / "no")])
    assert "There is no lake" in str(found.exception)


def test_the_browser_gets_the_token_in_a_private_file(monkeypatch) -> None:
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    url = "http://127.0.0.1:1/?token=abc"
    folder = _open(url)
    assert "token" not in opened[0]
    page = Path(unquote(urlsplit(opened[0]).path))
    assert url in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    page.unlink()
    folder.rmdir()


def test_copied_commands_find_the_lake_and_hold_no_secret() -> None:
    assert flags_of(None, None) == ""
    assert flags_of("a b", "filesystem") == "--warehouse 'a b' --catalog filesystem"
    assert flags_of("s3://user:password@host/x", None) == ""
