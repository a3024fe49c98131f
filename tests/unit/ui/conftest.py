"""A small lake behind a server on any free port, and a browser that only fetches."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from rowlake.engine import spark as engine
from rowlake.ui.server import Server
from tests.lakes import SALES, make_lake, sales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.lake import Lake


@dataclass(frozen=True)
class Answer:
    """What a request got."""

    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass
class Browser:
    """Fetches pages of a server, with its cookie once it is let in."""

    server: Server
    cookie: str = ""

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        port = self.server.gate.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        given = {"Host": f"127.0.0.1:{port}", "Cookie": self.cookie}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        given = {name: value for name, value in given.items() if value}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        content = None if body is None else body.encode()
        if content is not None:
            given.setdefault("Content-Type", "application/x-www-form-urlencoded")
            given["Content-Length"] = str(len(content))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        found = Answer(answer.status, answer.headers, answer.read().decode())
        connection.close()
        return found

    def get(self, path: str, **query: str) -> Answer:
        return self.ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, **fields: str) -> Answer:
        return self.ask("POST", path, urlencode(fields))

    def log_in(self) -> Browser:
        answer = self.get("/", token=self.server.gate.token)
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return self


@contextmanager
def serving(lake: Lake, **options: bool) -> Iterator[Server]:
    """Serve a lake in a thread."""
    with Server(lake, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch) -> None:
    def refuse() -> None:
        raise AssertionError("a page must not start Spark")

    monkeypatch.setattr(engine, "make_session", refuse)
    monkeypatch.setattr(engine, "active_session", lambda: None)


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as made:
        made.create_namespace("ns")
        table = made.create_table("ns.t", SALES, partition_by="store")
        table.append(sales(40))
        table.append(sales(10, 40))
        yield made


@pytest.fixture
def server(lake):
    with serving(lake) as made:
        yield made


@pytest.fixture
def browser(server):
    return Browser(server).log_in()
