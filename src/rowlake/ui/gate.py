"""Who may ask: the host that the browser meant, the token of this run, and forms of this page.

Comes in: headers and parameters of a request. Goes out: whether to answer. Secrets are compared in
constant time. A page of another site can neither read an answer (cookies are SameSite=Strict, no
CORS) nor send a form (CSRF token, origin), and a name that resolves to 127.0.0.1 (DNS rebinding)
is refused by its Host header.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message
    from typing import TypeAlias

    Headers: TypeAlias = Mapping[str, str] | Message

ADDRESS = "127.0.0.1"
TOKEN = "token"
CSRF = "csrf"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with no origin
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Gate:
    """The secrets of one run; `repr` shows none."""

    port: int
    token: str = field(default_factory=_new_secret, repr=False)
    session: str = field(default_factory=_new_secret, repr=False)
    csrf: str = field(default_factory=_new_secret, repr=False)

    @property
    def url(self) -> str:
        """The address that opens the page."""
        return f"http://{ADDRESS}:{self.port}/?{TOKEN}={self.token}"

    @property
    def cookie_name(self) -> str:
        """The cookie's name; cookies know no ports, so that it has the port in it."""
        return f"rowlake-ui-{self.port}"

    @property
    def cookie(self) -> str:
        """The header that keeps a browser in."""
        return f"{self.cookie_name}={self.session}; Path=/; HttpOnly; SameSite=Strict"

    def is_known_host(self, host: str | None) -> bool:
        """Return whether a Host header names this server as its address says."""
        return host in {f"{ADDRESS}:{self.port}", f"localhost:{self.port}"}

    def is_token(self, given: str | None) -> bool:
        """Return whether a token of the address is that of this run."""
        return _same(given, self.token)

    def is_inside(self, headers: Headers) -> bool:
        """Return whether a request brings the cookie of this run."""
        try:
            found = SimpleCookie(headers.get("Cookie", "")).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and _same(found.value, self.session)

    def is_own_form(self, headers: Headers, csrf: str | None) -> bool:
        """Return whether a form was sent by a page of this run."""
        origin = headers.get("Origin")
        allowed = {f"http://{ADDRESS}:{self.port}", f"http://localhost:{self.port}"}
        site = headers.get("Sec-Fetch-Site", "same-origin")
        is_own = (origin is None or origin in allowed) and site == "same-origin"
        return is_own and _same(csrf, self.csrf)


def _same(given: str | None, kept: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(errors="replace"), kept.encode())
