"""Markup is escaped by construction, and refuses what could run."""

from __future__ import annotations

import pytest

from rowlake.errors import InternalError
from rowlake.ui.markup import address, document, el, render

HOSTILE = "<script>alert('x')</script>\"&"


def test_texts_and_attributes_are_escaped() -> None:
    escaped = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;"
    assert render(el("p", HOSTILE)) == f"<p>{escaped}</p>"
    assert render(el("p", title=HOSTILE)) == f'<p title="{escaped}"></p>'
    assert render([HOSTILE, None, 7]) == f"{escaped}7"


def test_characters_that_reorder_text_or_are_none_are_shown_escaped() -> None:
    assert render("a\u202eb\x1b[0m\ud800") == "a\\u202eb\\x1b[0m\\ud800"
    assert document("\ud800", el("body")).isascii()


def test_attributes_that_are_none_or_false_are_left_out() -> None:
    made = el("input", class_="a", data_x=1.5, hidden=True, checked=False, value=None)
    assert render(made) == '<input class="a" data-x="1.5" hidden>'


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("a", {"href": "javascript:alert(1)"}),
        ("a", {"href": "//evil.example"}),
        ("a", {"href": "/\\evil.example"}),
        ("form", {"action": "https://evil.example"}),
        ("script", {"src": "https://evil.example/x.js"}),
        ("p", {"onclick": "alert(1)"}),
        ("p", {"style": "color: red"}),
        ("p", {"a b": "c"}),
        ("iframe", {}),
        ("p><script", {}),
    ],
)
def test_what_could_run_or_lead_away_is_refused(name: str, attributes: dict[str, str]) -> None:
    with pytest.raises(InternalError):
        el(name, **attributes)


def test_a_script_has_no_text() -> None:
    with pytest.raises(InternalError):
        el("script", "alert(1)")


def test_addresses_encode_their_query() -> None:
    assert address("/table", name="a b&c=<", first=None) == "/table?name=a+b%26c%3D%3C"
    assert address("/") == "/"
