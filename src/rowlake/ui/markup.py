"""HTML by construction: a tree of elements whose texts and attributes are always escaped.

Comes in: names, texts and numbers, whoever chose them. Goes out: HTML. There is no way to put
ready-made markup into a tree, so nothing that a table holds can become markup. Inline scripts and
styles, event attributes and addresses outside of this server are refused when the tree is built.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, urlencode

from rowlake.errors import InternalError
from rowlake.model.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value: TypeAlias = str | int | float | bool | None
Node: TypeAlias = "Element | str | int | Iterable[Node] | None"

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_VOID = frozenset(["br", "hr", "img", "input", "link", "meta"])
_ADDRESSES = frozenset(["action", "formaction", "href", "src"])
_REFUSED_ATTRIBUTES = frozenset(["style", "srcdoc"])
_REFUSED_ELEMENTS = frozenset(["style", "iframe", "object", "embed", "base"])


@dataclass(frozen=True)
class Element:
    """One element; made by `el`."""

    name: str
    attributes: Mapping[str, Value]
    children: tuple[Node, ...]


def el(name: str, /, *children: Node, **attributes: Value) -> Element:
    """Return an element; `class_` is `class`, `data_x` is `data-x`.

    Attributes that are None or False are left out, True stands without a value.
    """
    named = {_attribute_name(key): value for key, value in attributes.items()}
    _check(name, named, children)
    return Element(name, named, children)


def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _check(name: str, attributes: Mapping[str, Value], children: tuple[Node, ...]) -> None:
    if not _NAME.fullmatch(name) or name in _REFUSED_ELEMENTS or (name == "script" and children):
        raise InternalError(f"A page may not have an element {name} like this.")
    for key, value in attributes.items():
        bad = key in _REFUSED_ATTRIBUTES or key.startswith("on") or not _NAME.fullmatch(key)
        if bad or (key in _ADDRESSES and value is not None and not _is_own(str(value))):
            raise InternalError(f"A page may not have an attribute {key} like this.")


def _is_own(address: str) -> bool:
    return address.startswith(("/", "#")) and not address.startswith(("//", "/\\"))


def address(path: str, /, **query: Value) -> str:
    """Return an address of this server, its query encoded; None is left out."""
    given = {key: str(value) for key, value in query.items() if value is not None}
    text = urlencode(given, errors="surrogatepass")
    return quote(path) + (f"?{text}" if text else "")


def render(node: Node) -> str:
    """Return a tree as HTML."""
    parts: list[str] = []
    _render(node, parts)
    return "".join(parts)


def _render(node: Node, parts: list[str]) -> None:
    if node is None:
        return
    if isinstance(node, (str, int)):
        parts.append(escaped(str(node)))
    elif isinstance(node, Element):
        parts.append(f"<{node.name}{_attributes(node)}>")
        if node.name not in _VOID:
            _render(node.children, parts)
            parts.append(f"</{node.name}>")
    else:
        for child in node:
            _render(child, parts)


def _attributes(element: Element) -> str:
    return "".join(
        f" {key}" if value is True else f' {key}="{escaped(_text(value))}"'
        for key, value in element.attributes.items()
        if value is not None and value is not False
    )


def _text(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def escaped(text: str) -> str:
    """Return text for HTML; characters that reorder lines or are no text are shown escaped."""
    return html.escape(printable_lines(text))


def document(title: str, body: Element, *, head: tuple[Element, ...] = ()) -> bytes:
    """Return a whole page."""
    whole = el(
        "html",
        el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", title),
            el("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
            el("link", rel="stylesheet", href="/static/page.css"),
            el("script", src="/static/page.js", defer=True),
            *head,
        ),
        body,
        lang="en",
    )
    return ("<!doctype html>" + render(whole)).encode()
