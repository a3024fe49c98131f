"""Chromium on a sample lake. Needs Playwright: `tools/browser_tests.py` has an environment for it.

Without Playwright there are no tests here, unless ROWLAKE_BROWSER says that there must be.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from rowlake.ui.server import Server
from tests.browser.sample_lake import sample_lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HAS_PLAYWRIGHT = importlib.util.find_spec("playwright") is not None
if not HAS_PLAYWRIGHT and not os.environ.get("ROWLAKE_BROWSER"):
    collect_ignore_glob = ["test_*.py"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@dataclass
class Visit:
    """A page of a browser of its own, and everything that went wrong in it."""

    page: object
    server: Server
    troubles: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.gate.port}"

    def open(self, path: str = "/") -> None:
        self.page.goto(f"{self.base}{path}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    found = os.environ.get("ROWLAKE_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUM)), None
    )
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium has none for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("browser") / "lakehouse"
    sample_lake(made).close()
    return made


@pytest.fixture(scope="session")
def servers(folder) -> Iterator[dict[bool, Server]]:
    """Yield a server that allows actions, and one that does not."""
    from rowlake import connect

    with ExitStack() as stack:
        made = {}
        for allowed in (False, True):
            lake = stack.enter_context(connect(str(folder)))
            server = stack.enter_context(Server(lake, allow_actions=allowed))
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
            made[allowed] = server
        yield made


@pytest.fixture
def visit(chromium, servers) -> Iterator[Callable[..., Visit]]:
    """Return what opens the lake in a fresh browser; nothing may go wrong in it."""
    with ExitStack() as stack:
        visits: list[Visit] = []

        def open_lake(
            *, actions: bool = False, narrow: bool = False, dark: bool = False, scale: float = 1
        ) -> Visit:
            context = chromium.new_context(
                viewport=NARROW if narrow else WIDE,
                color_scheme="dark" if dark else "light",
                device_scale_factor=scale,
            )
            stack.callback(context.close)
            made = Visit(context.new_page(), servers[actions])
            visits.append(made)
            _watch(made)
            made.page.goto(made.server.gate.url)
            made.page.wait_for_url(f"{made.base}/")
            return made

        yield open_lake
        assert [trouble for each in visits for trouble in each.troubles] == []


def _watch(visit: Visit) -> None:
    """Note messages of the console, errors, dialogs, and requests to anywhere else."""
    page, noted = visit.page, visit.troubles.append
    page.on("console", lambda said: noted(f"console {said.type}: {said.text}"))
    page.on("pageerror", lambda error: noted(f"error: {error}"))
    page.on("dialog", lambda dialog: (noted(f"dialog: {dialog.message}"), dialog.dismiss()))

    def asked(request) -> None:
        if not request.url.startswith(f"{visit.base}/"):
            noted(f"request: {request.url}")

    page.on("request", asked)
