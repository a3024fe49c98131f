"""The server: 127.0.0.1 only, a thread per request, HTML and two static files.

Comes in: requests of a browser on this machine. Goes out: pages. Every answer has the headers
of `gate.HEADERS`. Requests are not logged: addresses may hold the token.
"""

from __future__ import annotations

import sys
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from rowlake.errors import InvalidStatementError, RowlakeError, TableNotFoundError
from rowlake.model.printable import printable_line
from rowlake.ui.frame import card, page
from rowlake.ui.gate import ADDRESS, CSRF, HEADERS, TOKEN, Gate
from rowlake.ui.markup import Element, document, el, render
from rowlake.ui.pages.action import confirm_page, start_action
from rowlake.ui.pages.activity import activity_page, operations_part
from rowlake.ui.pages.changes import changes_page
from rowlake.ui.pages.files import files_page
from rowlake.ui.pages.history import history_page
from rowlake.ui.pages.lake import lake_page, line_part
from rowlake.ui.pages.optimize import optimize_page
from rowlake.ui.pages.overview import overview_page
from rowlake.ui.pages.schema import schema_page
from rowlake.ui.site import Asked, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.ui.site import Site

MAX_FORM_BYTES = 16_384
MAX_FIELDS = 50
SECONDS_TO_SEND = 30
PAGES: dict[str, Callable[[Site, Asked], Element]] = {
    "/": lake_page,
    "/table": overview_page,
    "/table/history": history_page,
    "/table/files": files_page,
    "/table/schema": schema_page,
    "/table/changes": changes_page,
    "/table/optimize": optimize_page,
    "/activity": activity_page,
    "/action": confirm_page,
}
PARTS: dict[str, Callable[[Site, Asked], Element]] = {
    "/line": line_part,
    "/operations": operations_part,
}
STATIC = {
    "/static/page.css": "text/css; charset=utf-8",
    "/static/page.js": "text/javascript; charset=utf-8",
    "/static/icon.svg": "image/svg+xml",
}
HTML = "text/html; charset=utf-8"


class Server(ThreadingHTTPServer):
    """Serves one lake on this machine; `port` 0 takes any free port."""

    daemon_threads = True

    def __init__(
        self, lake: Lake, *, port: int = 0, allow_actions: bool = False, flags: str = ""
    ) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.gate = Gate(self.server_address[1])
        self.site = site_of(lake, self.gate, allow_actions=allow_actions, flags=flags)

    def handle_error(self, *_: Any) -> None:
        """Say nothing of browsers that go away, and of other faults one line."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            told = f"{type(error).__name__}: {self.site.looks.plain(error)}"
            print(f"rowlake: {printable_line(told)}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = SECONDS_TO_SEND
    server_version = "rowlake"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    @cached_property
    def _asked(self) -> Asked:
        split = urlsplit(self.path)
        return Asked(split.path, _fields(split.query))

    def do_GET(self) -> None:
        """Answer with a page."""
        if not self._is_for_us():
            return
        asked = self._asked
        if asked.path in STATIC:
            self._answer(HTTPStatus.OK, _static(asked.path), STATIC[asked.path])
        elif TOKEN in asked.given:
            self._let_in(asked)
        elif not self.server.gate.is_inside(self.headers):
            self._refuse(HTTPStatus.FORBIDDEN, _STRANGER)
        else:
            self._show(asked)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Start an action, if the form is of a page of this run."""
        if not self._is_for_us():
            return
        gate = self.server.gate
        given = self._form()
        if given is None or self._asked.path != "/action":
            self._refuse(HTTPStatus.BAD_REQUEST, "This form cannot be read.")
        elif not gate.is_inside(self.headers) or not gate.is_own_form(
            self.headers, given.get(CSRF)
        ):
            self._refuse(HTTPStatus.FORBIDDEN, _FOREIGN_FORM)
        else:
            self._act(Asked("/action", given))

    def _act(self, asked: Asked) -> None:
        def start(site: Site, asked: Asked) -> Element | None:
            return start_action(site, asked)

        found = self._tried(start, asked)
        if found is not None:
            self._page(*found)
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", "/activity")
        self._end(b"", HTML)

    def _form(self) -> dict[str, str] | None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_FORM_BYTES:
            return None
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        if kind != "application/x-www-form-urlencoded":
            return None
        return _fields(self.rfile.read(int(length)).decode("ascii", "replace"))

    def _is_for_us(self) -> bool:
        if self.server.gate.is_known_host(self.headers.get("Host")):
            return True
        self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server does not answer to that name.")
        return False

    def _let_in(self, asked: Asked) -> None:
        """Give the cookie to who has the token, and leave the token out of the address.

        The page goes on by itself: a redirect that another site began would not send the cookie.
        """
        if not self.server.gate.is_token(asked.text(TOKEN)):
            self._refuse(HTTPStatus.FORBIDDEN, _STRANGER)
            return
        body = el("body", el("main", el("p", el("a", "Open the lake", href="/")), class_="wide"))
        onward = el("meta", http_equiv="refresh", content="0; url=/")
        self.send_response(HTTPStatus.OK)
        self.send_header("Set-Cookie", self.server.gate.cookie)
        self._end(document("rowlake", body, head=(onward,)), HTML)

    def _show(self, asked: Asked) -> None:
        if asked.path in PARTS:
            found = self._tried(PARTS[asked.path], asked)
            if found is not None and found[0] is HTTPStatus.OK:
                self._answer(HTTPStatus.OK, render(found[1]).encode(), HTML)
                return
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here any more.")
            return
        make = PAGES.get(asked.path)
        if make is None:
            self._page(HTTPStatus.NOT_FOUND, self._trouble("There is no such page."))
            return
        found = self._tried(make, asked)
        if found is not None:
            self._page(*found)

    def _tried(
        self, make: Callable[[Site, Asked], Element | None], asked: Asked
    ) -> tuple[HTTPStatus, Element] | None:
        """Return the page that was asked for, or one that says what went wrong."""
        site = self.server.site
        try:
            made = make(site, asked)
            return None if made is None else (HTTPStatus.OK, made)
        except TableNotFoundError as error:
            return HTTPStatus.NOT_FOUND, self._trouble(site.looks.plain(error))
        except InvalidStatementError as error:
            return HTTPStatus.BAD_REQUEST, self._trouble(site.looks.plain(error))
        except RowlakeError as error:
            return HTTPStatus.BAD_GATEWAY, self._trouble(site.looks.plain(error))
        except Exception as error:  # noqa: BLE001 - one page's fault must not end the server
            told = f"{type(error).__name__}: {site.looks.plain(error)}"
            print(f"rowlake: {printable_line(asked.path)}: {printable_line(told)}", file=sys.stderr)
            return HTTPStatus.INTERNAL_SERVER_ERROR, self._trouble(f"This is a bug. {told}")

    def _trouble(self, text: str) -> Element:
        back = el("a", "All tables", href="/")
        said = card("This cannot be shown", el("p", text, class_="trouble"), el("p", back))
        return page(self.server.site, "", said)

    def _page(self, status: HTTPStatus, body: Element) -> None:
        self._answer(status, document("rowlake", body), HTML)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self._end(content, kind)

    def _end(self, content: bytes, kind: str) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


_STRANGER = "Open the whole address that `rowlake ui` printed: it has a token in it."
_FOREIGN_FORM = "This form was not sent by a page of this server. Nothing was run."


def _fields(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        return {}


def _static(path: str) -> bytes:
    return files("rowlake.ui").joinpath(path.lstrip("/")).read_bytes()
