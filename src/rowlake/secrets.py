"""Passwords, keys and tokens: which properties hold them, and texts and listings without them.

Comes in: property names, properties and texts (of errors, drivers and servers). Goes out: the
same without the secrets. Imports nothing of ours, so that every room, the errors too, can use it.
A listing shows a secret as `REDACTED`, as Spark does; a text shows it as `HIDDEN`.

Not recognised: a secret in a text that stands neither in an address, nor after a known name, nor
among the properties that are given along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

REDACTED = "*********(redacted)"
HIDDEN = "***"

# Iceberg's own and rowlake's: what follows may be the name of a column, but is never a secret.
_NEVER = (
    "commit.",
    "compatibility.",
    "encryption.",
    "gc.",
    "history.",
    "read.",
    "rowlake.",
    "schema.",
    "write.",
)
_WORDS = frozenset(
    [
        "authorization",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "pwd",
        "secret",
        "token",
    ]
)
_PAIRS = frozenset(
    {
        ("access", "key"),
        ("account", "key"),
        ("adls", "sas"),
        ("api", "key"),
        ("azure", "sas"),
        ("connection", "string"),
        ("encryption", "key"),
        ("kerberos", "ticket"),
        ("private", "key"),
        ("secret", "key"),
        ("shared", "key"),
        ("sse", "key"),
    }
)
_JOINED = frozenset(["accesskey", "accountkey", "apikey", "authtoken", "privatekey", "secretkey"])
# Names that go on with one of these speak about a secret: `token-expires-at`, `token-count`.
_ABOUT = frozenset(
    [
        "algorithm",
        "class",
        "count",
        "enabled",
        "endpoint",
        "exchange",
        "expiration",
        "expires",
        "expiry",
        "file",
        "impl",
        "length",
        "limit",
        "lifetime",
        "max",
        "min",
        "name",
        "path",
        "policy",
        "provider",
        "refresh",
        "size",
        "ttl",
        "type",
        "uri",
        "url",
    ]
)
_SIGNATURES = frozenset({"sig", "signature"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Every repetition is bounded or ends where the next may start: texts may be hostile and long.
_NAME = r"[A-Za-z][\w.\-]{0,100}"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.|'')*'"
# Quotation marks of a text within a text: \"…\".
_ESCAPED = r"\\{1,8}[\"'][^\"'\\]{0,5000}\\{1,8}[\"']"
# A password goes up to the last @ before the path; one that has a slash, up to the last @.
_USER_INFO = re.compile(
    r"(://[^\s:/@?#\"'<>,]{0,200}:)(?:[^\s/?#\"'<>]{0,500}@|(?!\d+[/?#])[^\s\"'<>?]{0,500}@)"
)
_PARAMETER = re.compile(rf"(?<=[?&;])({_NAME})=([^\s&;\"'<>)]+)")
# Words have no digits: "basic statistics" is no credential.
_BEARER = re.compile(
    r"\b(Bearer|Basic)(\s+)(?=\S{0,200}[\d_~+/=]|\S{20})[A-Za-z0-9\-._~+/]{6,}=*", re.IGNORECASE
)
_PAIR = re.compile(
    rf"(?<![\w.\-])(?P<name>{_NAME})(?P<between>\\{{0,8}}[\"'`]?\s*(?:=>|=|:)\s*)"
    rf"(?P<value>{_QUOTED}|{_ESCAPED}|[^\s,;&\"'{{}}\[\]()<>]+)"
)
_LITERAL = re.compile(
    rf"(?<![\w.\-])(?P<name>{_NAME})(?P<between>[\"'`]?\s*(?:=>|=|,)?\s*)(?P<value>{_QUOTED})"
)
_ELEMENT = re.compile(r"<(\w+)>([^<>]+)</\1>")
_SHORTEST = 4
_LONGEST_NAME = 500
_NO_VALUES = frozenset(["true", "false", "none", "null"])
_LOOSE = frozenset(["authorization", "credential", "credentials", "token"])


def is_secret(key: str) -> bool:
    """Return whether a property of this name holds a secret (an access key's id included)."""
    return _names_secret(key[:_LONGEST_NAME])


@lru_cache(maxsize=4096)
def _names_secret(key: str) -> bool:
    if key.lower().startswith(_NEVER):
        return False
    words = _words(key)
    for place, word in enumerate(words):
        is_pair = tuple(words[place : place + 2]) in _PAIRS
        if word in _WORDS or word.endswith("password") or word in _JOINED or is_pair:
            rest = words[place + 1 + is_pair :]
            if not rest or not (rest[0] in _ABOUT or rest[-1] in _ABOUT):
                return True
    return False


def _words(key: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(key)]


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties to show: secrets hidden, also those inside of addresses."""
    return {
        key: REDACTED if is_secret(str(key)) else without_passwords(str(value))
        for key, value in properties.items()
    }


def redacted_repr(one: Any) -> str:
    """Return the text of a dataclass with the secrets of its mappings hidden (for `__repr__`)."""
    shown = []
    for field in fields(one):
        if field.repr:
            value = getattr(one, field.name)
            shown.append(f"{field.name}={_shown(value)}")
    return f"{type(one).__qualname__}({', '.join(shown)})"


def _shown(value: Any) -> str:
    return repr(_plain(value) if isinstance(value, Mapping) else value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: REDACTED if isinstance(key, str) and is_secret(key) else _plain(one)
            for key, one in value.items()
        }
    return without_passwords(value) if isinstance(value, str) else value


def without_passwords(text: str) -> str:
    """Return a text without what addresses hold: user:password@, ?token=…, signatures; Bearer …."""
    if "://" in text:
        text = _USER_INFO.sub(rf"\g<1>{HIDDEN}@", text)
    if "=" in text:
        text = _PARAMETER.sub(_hide_parameter, text)
    return _BEARER.sub(rf"\g<1>\g<2>{HIDDEN}", text)


def _hide_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={HIDDEN}" if _is_signing(found[1]) else found[0]


def _is_signing(name: str) -> bool:
    return is_secret(name) or not _SIGNATURES.isdisjoint(_words(name))


def without_secrets(text: str, properties: Mapping[str, Any] | None = None) -> str:
    """Return a foreign text (of a driver, a server, a storage) without secrets.

    Hides what addresses hold, values after known names (`password=…`, `"s3.session-token": "…"`,
    `<AWSAccessKeyId>…`), and the secrets of the properties wherever they stand.
    """
    for value in secrets_of(properties or {}):
        text = text.replace(value, HIDDEN)
    text = _ELEMENT.sub(_hide_element, without_passwords(text))
    return _with_values(_PAIR, text, _hidden_value)


def _with_values(
    pattern: re.Pattern[str], text: str, shown: Callable[[re.Match[str]], str | None]
) -> str:
    """Return a text with the values of secret names as `shown` has them (None: as they are).

    Looks into values of other names too: a message may quote what was sent.
    """
    parts, done, place = [], 0, 0
    while (found := pattern.search(text, place)) is not None:
        value = shown(found) if is_secret(found["name"]) else None
        place = found.start("value") + 1 if value is None else found.end()
        if value is not None:
            parts += [text[done : found.start("value")], value]
            done = place
    return "".join([*parts, text[done:]])


def _hide_element(found: re.Match[str]) -> str:
    return f"<{found[1]}>{HIDDEN}</{found[1]}>" if _is_signing(found[1]) else found[0]


def _hidden_value(found: re.Match[str]) -> str | None:
    value = found["value"]
    mark = value[: len(value) - len(value.lstrip("\\\"'"))]
    is_prose = ":" in found["between"] and found["name"].lower() in _LOOSE
    if value.strip("\\\"'") == HIDDEN or (is_prose and not mark):
        return None  # "the token: it has expired"
    return f"{mark}{HIDDEN}{mark}"


def secrets_of(properties: Mapping[str, Any]) -> list[str]:
    """Return the secret values of properties, the longest first, as written and URL-encoded."""
    found: set[str] = set()
    for key, given in properties.items():
        value = str(given)
        if isinstance(given, Mapping):
            found |= set(secrets_of(given))
        elif is_secret(str(key)):
            found |= {value, *_parts(str(key), value)}
        elif "://" in value:
            found |= _in_address(value)
    found |= {unquote(value) for value in found} | {quote(value, safe="") for value in found}
    found = {one for one in found if len(one) >= _SHORTEST and one.lower() not in _NO_VALUES}
    return sorted(found, key=len, reverse=True)


def _parts(key: str, value: str) -> set[str]:
    """Return what is secret by itself in `client:secret` and `Bearer token`."""
    if _LOOSE.isdisjoint(_words(key)):
        return set()
    return {value.partition(":")[2], value.rpartition(" ")[2]}


def _in_address(address: str) -> set[str]:
    found = {value for name, value in _PARAMETER.findall(address) if _is_signing(name)}
    user = _USER_INFO.search(address)
    return found | {user[0].removeprefix(user[1])[:-1]} if user else found


def statement_without_secrets(statement: str) -> str:
    """Return a statement with secret literals as stars, each character where it was."""

    def starred(found: re.Match[str]) -> str:
        value = found["value"]
        return value[0] + re.sub(r"[^\n]", "*", value[1:-1]) + value[0]

    return _with_values(_LITERAL, statement, starred)


def cause_without_secrets(
    error: BaseException, properties: Mapping[str, Any] | None = None
) -> BaseException | None:
    """Return an error to raise `from`; None where a traceback of it would show a secret."""
    seen: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        part = pending.pop()
        if part is None or any(part is one for one in seen):
            continue
        for text in (str(part), *map(str, getattr(part, "__notes__", ()))):
            if without_secrets(text, properties) != text:
                return None
        seen.append(part)
        pending += [part.__cause__, part.__context__]
    return error
