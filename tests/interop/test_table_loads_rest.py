"""On a REST catalog a statement asks the server for each of its tables once, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import requests

import rowlake
from tests.parts.rest import rest_catalog
from tests.parts.table_loads import ABOUT_ONE, STATEMENTS, TARGET, fill

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture
def lake(spark: Any, rest: str) -> Iterator[rowlake.Lake]:
    with rowlake.connect(catalog={"type": "rest", "uri": rest}, spark=spark) as found:
        fill(found)
        yield found
        for name in found.tables("db"):
            found.drop_table(name)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_asks_for_each_of_its_tables_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    statement, tables = STATEMENTS[name]
    asked = asked_by(lake, monkeypatch, statement)
    expected = sorted(("GET", table.partition(".")[2]) for table in tables)
    assert sorted(one for one in asked if one[0] != "POST") == expected
    assert sum(method == "POST" for method, _ in asked) == (0 if "select" in name else 1)


SHOWN = ("describe", "show create", "show properties", "explain merge", "call ancestors")


@pytest.mark.parametrize("name", SHOWN)
def test_a_statement_that_shows_a_table_asks_for_it_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert asked_by(lake, monkeypatch, ABOUT_ONE[name]) == [("GET", TARGET.partition(".")[2])]


def asked_by(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, statement: str
) -> list[tuple[str, str]]:
    """Return the method and the last part of the path of each request of a statement."""
    asked: list[tuple[str, str]] = []
    send = requests.Session.send

    def noted(self: Any, request: Any, **given: Any) -> Any:
        asked.append((request.method, urlsplit(request.url).path.rpartition("/")[2]))
        return send(self, request, **given)

    monkeypatch.setattr(requests.Session, "send", noted)
    lake.sql(statement).collect()
    return asked
