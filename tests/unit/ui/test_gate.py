"""Who gets an answer: hosts, tokens, cookies, forms, and the headers of every answer."""

from __future__ import annotations

import pytest

from rowlake.ui.gate import HEADERS, Gate
from tests.unit.ui.conftest import Browser


def test_the_server_listens_on_this_machine_only(server) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_without_a_token_nothing_is_shown(server) -> None:
    for path in ("/", "/table?name=ns.t", "/line?name=ns.t", "/operations", "/nowhere"):
        answer = Browser(server).get(path)
        assert (answer.status, "ns.t" in answer.text) == (403, False)


@pytest.mark.parametrize("token", ["", "x", "\u00e9", "0" * 43])
def test_a_wrong_token_is_refused(server, token: str) -> None:
    answer = Browser(server).get("/", token=token)
    assert (answer.status, answer.headers["Set-Cookie"]) == (403, None)


def test_the_token_becomes_a_cookie_and_leaves_the_address(server) -> None:
    browser = Browser(server)
    answer = browser.get("/", token=server.gate.token)
    cookie = answer.headers["Set-Cookie"]
    assert answer.status == 200
    assert 'http-equiv="refresh" content="0; url=/"' in answer.text
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert server.gate.token not in cookie + answer.text
    assert browser.log_in().get("/").status == 200


def test_a_cookie_of_another_run_is_refused(server) -> None:
    other = Gate(server.gate.port)
    assert Browser(server, other.cookie.partition(";")[0]).get("/").status == 403
    assert Browser(server, "\x7f; =;;").get("/").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]", ""])
def test_other_hosts_are_refused_with_token_and_cookie(server, browser, host: str) -> None:
    host = host.format(port=server.gate.port)
    for path in ("/", f"/?token={server.gate.token}", "/static/page.css"):
        assert browser.ask("GET", path, Host=host).status == 421
    assert browser.ask("POST", "/action", "csrf=1", Host=host).status == 421


def test_localhost_is_this_machine(server, browser) -> None:
    assert browser.ask("GET", "/", Host=f"localhost:{server.gate.port}").status == 200


def test_every_answer_has_strict_headers(server, browser) -> None:
    answers = [
        browser.get("/"),
        browser.get("/nowhere"),
        browser.get("/table", name="ns.nothing"),
        browser.get("/static/page.js"),
        browser.post("/action", csrf="wrong"),
        browser.ask("GET", "/", Host="evil.example"),
        Browser(server).get("/"),
    ]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["Server"].strip() == "rowlake"
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy


def test_head_has_no_body_and_other_methods_no_answer(browser) -> None:
    assert browser.ask("HEAD", "/").text == ""
    assert browser.ask("HEAD", "/").status == 200
    assert browser.ask("PUT", "/").status == 501
    assert browser.ask("DELETE", "/table?name=ns.t").status == 501


def test_secrets_of_a_run_are_not_in_its_repr(server) -> None:
    gate = server.gate
    shown = f"{gate!r} {server.site.gate!r}"
    assert not any(secret in shown for secret in (gate.token, gate.session, gate.csrf))


def test_static_files_are_those_of_the_page_alone(browser) -> None:
    assert browser.get("/static/icon.svg").headers["Content-Type"] == "image/svg+xml"
    assert browser.get("/static/../server.py").status == 404
    assert browser.get("/static/%2e%2e/server.py").status == 404
