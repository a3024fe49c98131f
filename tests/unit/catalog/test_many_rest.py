"""What a REST server answers to a commit to several tables, and what that means."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, Endpoint, RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.update import AssertTableUUID, SetPropertiesUpdate
from pyiceberg.types import LongType, NestedField

from rowlake.catalog import commit as commit_module
from rowlake.catalog.handle import TableHandle
from rowlake.catalog.many import AllLanded, TableChange, commit_many
from rowlake.catalog.metadata import Definition, new_metadata
from rowlake.catalog.outcome import Conflict, Unknown
from rowlake.errors import RowlakeError, StorageError, UnsupportedFeatureError


@dataclass
class Server:
    """Answers every POST with one status; `None` breaks the connection."""

    status: int | None
    text: str = ""
    posted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def post(self, url: str, data: bytes) -> requests.Response:
        self.posted.append((url, json.loads(data)))
        if self.status is None:
            raise requests.ConnectionError("broken pipe")
        answer = requests.Response()
        answer.status_code, answer._content = self.status, self.text.encode()
        return answer


def catalog_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> RestCatalog:
    catalog = RestCatalog.__new__(RestCatalog)
    catalog.name, catalog.properties = "far", {"uri": "http://127.0.0.1:9"}
    catalog._session = server  # type: ignore[assignment]
    catalog._supported_endpoints = set(DEFAULT_ENDPOINTS)
    monkeypatch.setattr(RestCatalog, "url", lambda _, path: f"http://127.0.0.1:9/v1/{path}")
    monkeypatch.setattr(RestCatalog, "load_table", _no_answer)
    return catalog


def _no_answer(*_: object) -> None:
    raise requests.ConnectionError("no answer")


def changes_of(catalog: RestCatalog) -> list[TableChange]:
    definition = Definition(Schema(NestedField(1, "x", LongType())))
    changes = []
    for name in ("a", "b"):
        metadata = new_metadata(definition, f"/t/{name}")
        handle = TableHandle(("ns", name), catalog, metadata, f"/t/{name}/v1", {})
        holds = [AssertTableUUID(uuid=metadata.table_uuid)]
        changes.append(TableChange(handle, [SetPropertiesUpdate(updates={"k": name})], holds))
    return changes


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_module, "LOOKS", (0.0,))


def test_all_tables_go_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(409, "stale")
    outcome = commit_many(changes_of(catalog_of(server, monkeypatch)))
    assert outcome == Conflict("stale")
    ((url, body),) = server.posted
    assert url.endswith("/v1/transactions/commit")
    assert [one["identifier"]["name"] for one in body["table-changes"]] == ["a", "b"]
    assert [one["updates"][0]["updates"] for one in body["table-changes"]] == [
        {"k": "a"},
        {"k": "b"},
    ]
    assert {one["requirements"][0]["type"] for one in body["table-changes"]} == {
        "assert-table-uuid"
    }


@pytest.mark.parametrize("status", [500, 502, 503, 504, None])
def test_no_clear_answer_leaves_the_outcome_open(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = commit_many(changes_of(catalog_of(Server(status), monkeypatch)))
    assert isinstance(outcome, Unknown)


def test_what_landed_but_cannot_be_read_is_never_taken_for_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = commit_many(changes_of(catalog_of(Server(204), monkeypatch)))
    assert isinstance(outcome, (Unknown, AllLanded))


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_the_endpoint_is_refused(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(status, '{"error": {"type": "NoSuchRoute"}}')
    with pytest.raises(UnsupportedFeatureError, match="several tables"):
        commit_many(changes_of(catalog_of(server, monkeypatch)))


def test_a_missing_table_is_not_a_missing_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(404, '{"error": {"type": "NoSuchTableException"}}')
    try:
        outcome = commit_many(changes_of(catalog_of(server, monkeypatch)))
    except RowlakeError as error:
        assert not isinstance(error, (UnsupportedFeatureError, StorageError))
    else:
        assert isinstance(outcome, Conflict)


def test_a_server_that_lists_other_endpoints_only_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(204)
    catalog = catalog_of(server, monkeypatch)
    catalog._supported_endpoints = {Endpoint.from_string("GET /v1/{prefix}/namespaces")}
    with pytest.raises(UnsupportedFeatureError, match="far cannot commit to several tables"):
        commit_many(changes_of(catalog))
    assert server.posted == []
