"""The command line on a pseudo-terminal: completion, history, help, width, colours; no Spark."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import stat
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.lakes import make_lake

SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("terminal") / "lake"
    with make_lake(made) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.sales", "id BIGINT, amount BIGINT").append([{"id": 1, "amount": 2}])
    return made


class Terminal:
    """A command on a terminal of 80 columns."""

    def __init__(self, *words: str, **variables: str) -> None:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rowlake.cli.app", *words],
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm", **variables},
            start_new_session=True,
        )
        os.close(other)
        self.shown = ""

    def until(self, pattern: str) -> str:
        """Read until something is shown; return what was shown up to it, and forget it."""
        ends = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < ends, self.shown
            if select.select([self._own], [], [], 1)[0]:
                try:
                    self.shown += os.read(self._own, 4096).decode("utf-8", "replace")
                except OSError as error:  # the other side is closed
                    raise AssertionError(self.shown) from error
        before, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return before

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def ends(self) -> int:
        try:
            return self.process.wait(SECONDS)
        finally:
            os.close(self._own)


def test_the_shell_completes_recalls_and_keeps_its_history(folder, tmp_path):
    history = tmp_path / "history"
    shell = Terminal("shell", "--warehouse", str(folder), ROWLAKE_HISTORY=str(history))
    shell.until(r"rowlake> ")
    shell.type("\\?\n")
    assert "\\timing" in shell.until(r"leave\s")
    shell.until(r"rowlake> ")
    shell.type("\\d shop.sa\t\n")
    assert "amount" in shell.until(r"amount.*long")
    shell.until(r"rowlake> ")
    shell.type("SHOW TABLES\nIN shop;\n")
    assert "->" in shell.until(r"1 row")
    shell.until(r"rowlake> ")
    shell.type("\x1b[A\x1b[A\x1b[A\n")  # three up: \d shop.sales
    shell.until(r"amount.*long")
    shell.until(r"rowlake> ")
    shell.type("\\q\n")
    assert shell.ends() == 0
    assert "\\d shop.sales" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_a_table_is_cut_to_the_width_of_the_terminal(folder):
    command = Terminal("files", "shop.sales", "--warehouse", str(folder))
    shown = command.until(r"1 row\s")
    command.ends()
    assert max(map(len, shown.splitlines())) <= 80


def test_help_has_no_colour_where_nobody_wants_it(folder):
    told = Terminal("tables", "--help", NO_COLOR="1")
    shown = told.until(r"Examples")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)
    told.ends()


def test_completion_can_be_installed(tmp_path):
    (tmp_path / ".bashrc").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "rowlake.cli.app", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout
