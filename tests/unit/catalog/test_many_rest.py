"""What a REST server answers to a commit to several tables, and what that means."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, Endpoint, RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID
from pyiceberg.types import LongType, NestedField

from rowlake.catalog import commit as commit_module
from rowlake.catalog.handle import IcebergHandle
from rowlake.catalog.many import AllLanded, TableChange, commit_many
from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.metadata_files import Definition, apply_updates, new_metadata
from rowlake.model.outcome import Conflict, Unknown


@dataclass
class Server:
    """Answers every POST with one status (None breaks the connection); commits to some tables."""

    status: int | None
    text: str = ""
    takes: tuple[str, ...] = ()
    is_up: bool = True
    changes: dict[str, TableChange] = field(default_factory=dict)
    posted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def post(self, url: str, data: bytes) -> requests.Response:
        self.posted.append((url, json.loads(data)))
        if self.status is None:
            raise requests.ConnectionError("broken pipe")
        answer = requests.Response()
        answer.status_code, answer._content = self.status, self.text.encode()
        return answer

    def load_table(self, identifier: tuple[str, ...]) -> Any:
        if not self.is_up:
            raise requests.ConnectionError("no answer")
        change = self.changes[identifier[-1]]
        metadata = change.handle.metadata
        if self.posted and identifier[-1] in self.takes:
            metadata = apply_updates(metadata, None, change.updates)
        io = SimpleNamespace(properties={})
        return SimpleNamespace(metadata=metadata, metadata_location="/m", io=io, config={})


def changes_on(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[TableChange]:
    """Return a change for each of two tables of a server."""
    catalog = RestCatalog.__new__(RestCatalog)
    catalog.name, catalog.properties = "far", {"uri": "http://127.0.0.1:9"}
    catalog._session = server  # type: ignore[assignment]
    catalog._supported_endpoints = set(DEFAULT_ENDPOINTS)
    monkeypatch.setattr(RestCatalog, "url", lambda _, path: f"http://127.0.0.1:9/v1/{path}")
    monkeypatch.setattr(RestCatalog, "load_table", lambda _, name: server.load_table(name))
    definition = Definition(Schema(NestedField(1, "x", LongType())))
    for number, name in enumerate(("a", "b"), 1):
        metadata = new_metadata(definition, f"/t/{name}")
        handle = IcebergHandle(("ns", name), catalog, metadata, f"/t/{name}/v1", {})
        snapshot = Snapshot(
            snapshot_id=number, sequence_number=1, manifest_list="/l", summary=Summary("append")
        )
        updates = [AddSnapshotUpdate(snapshot=snapshot)]
        holds = [AssertTableUUID(uuid=metadata.table_uuid)]
        server.changes[name] = TableChange(handle, updates, holds)
    return list(server.changes.values())


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_module, "LOOKS", (0.0,))


def test_all_tables_go_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(204, takes=("a", "b"))
    outcome = commit_many(changes_on(server, monkeypatch))
    assert isinstance(outcome, AllLanded)
    assert [len(handle.metadata.snapshots) for handle in outcome.handles] == [1, 1]
    ((url, body),) = server.posted
    assert url.endswith("/v1/transactions/commit")
    assert [one["identifier"]["name"] for one in body["table-changes"]] == ["a", "b"]
    sent = [one["updates"][0]["snapshot"]["snapshot-id"] for one in body["table-changes"]]
    assert sent == [1, 2]
    assert {one["requirements"][0]["type"] for one in body["table-changes"]} == {
        "assert-table-uuid"
    }


def test_a_refusal_that_left_no_trace_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit_many(changes_on(Server(409, "stale"), monkeypatch)) == Conflict("stale")


@pytest.mark.parametrize("status", [204, 409])
def test_a_commit_that_the_server_tore_apart_is_told(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = commit_many(changes_on(Server(status, takes=("a",)), monkeypatch))
    assert isinstance(outcome, Unknown)
    assert f"answered {status}" in outcome.cause
    assert "committed to ns.a and not to ns.b" in outcome.cause


@pytest.mark.parametrize("status", [204, 409, 500, 502, 503, 504, None])
def test_what_cannot_be_looked_at_is_left_open(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = commit_many(changes_on(Server(status, is_up=False), monkeypatch))
    assert isinstance(outcome, Unknown)


@pytest.mark.parametrize("status", [500, 503, None])
def test_a_commit_without_an_answer_is_found(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(status, takes=("a", "b"))
    assert isinstance(commit_many(changes_on(server, monkeypatch)), AllLanded)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_the_endpoint_is_refused(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(status, '{"error": {"type": "NoSuchRoute"}}')
    with pytest.raises(UnsupportedFeatureError, match="several tables"):
        commit_many(changes_on(server, monkeypatch))


def test_a_missing_table_is_not_a_missing_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(404, '{"error": {"type": "NoSuchTableException"}}')
    assert isinstance(commit_many(changes_on(server, monkeypatch)), Conflict)


def test_a_server_that_lists_other_endpoints_only_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(204)
    changes = changes_on(server, monkeypatch)
    offered = {Endpoint.from_string("GET /v1/{prefix}/namespaces")}
    monkeypatch.setattr(changes[0].handle.catalog, "_supported_endpoints", offered)
    with pytest.raises(UnsupportedFeatureError, match="far cannot commit to several tables"):
        commit_many(changes)
    assert server.posted == []
