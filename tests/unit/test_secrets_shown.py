"""Secrets are planted in catalogs, storages and metadata; no way out may show them.

Each secret is a text of its own, so that a leak says where it came from.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.catalog import tables
from rowlake.catalog.open import open_catalog
from rowlake.cli import app as cli
from rowlake.engine.worker import pack
from rowlake.errors import InvalidStatementError, RowlakeError, StorageError
from rowlake.iceberg.metadata import view_of
from rowlake.secrets import REDACTED
from rowlake.sql.execute.show import create_text, table_properties
from rowlake.storage.files import Storage
from rowlake.verbs.read import planned_view
from tests.lakes import SALES, sales

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.lake import Lake

KEY, PASSWORD, SESSION, TOKEN = (f"s3cr3t-{one}" for one in ("key", "pass", "session", "token"))
STORAGE = {
    "s3.access-key-id": KEY,
    "s3.secret-access-key": PASSWORD,
    "s3.session-token": SESSION,
    "s3.region": "us-east-1",
}
MARK = "s3cr3t"


@pytest.fixture(autouse=True)
def nothing_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Every test ends with logs of rowlake that show no secret."""
    caplog.set_level(logging.DEBUG, "rowlake")
    yield
    logged = [one for one in caplog.records if one.name.startswith("rowlake")]
    assert not [one for one in logged if MARK in one.getMessage()]


def error_of(call: Callable[[], Any], kind: type[RowlakeError] = RowlakeError) -> RowlakeError:
    """Return what a call raises, after a look at all that it shows."""
    with pytest.raises(kind) as raised:
        call()
    error = raised.value
    told = "".join(traceback.format_exception(error))
    seen = {"text": str(error), "fields": repr(vars(error)), "traceback": told, "repr": repr(error)}
    assert not [(where, text) for where, text in seen.items() if MARK in text.lower()]
    return error


# --- catalogs


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql+psycopg2://u:{PASSWORD}@127.0.0.1:9/db",
        f"postgresql+psycopg2://u:{PASSWORD}@x@127.0.0.1:9/db",
        f"postgresql+psycopg2://127.0.0.1:9/db?user=u&password={PASSWORD}",
        f"postgresql+psycopg2://u:{PASSWORD}@127.0.0.1:port/db",
        f"postgresql+psycopg2://u:{PASSWORD}/x@127.0.0.1:9/db",
        f"postgresql+psycopg2://127.0.0.1:9/db?user=u&password={PASSWORD}&nonsense=1",
        f"nonsense://u:{PASSWORD}@127.0.0.1:9/db?password={PASSWORD}",
    ],
)
def test_a_database_that_cannot_be_reached(uri: str, tmp_path: Path) -> None:
    error = error_of(lambda: connect(str(tmp_path), {"type": "sql", "uri": uri}).tables())
    assert "127.0.0.1" in str(error), "but where it was looked for"


@pytest.mark.parametrize("given", [{"token": TOKEN}, {"credential": f"client:{TOKEN}"}])
def test_a_rest_catalog_that_cannot_be_reached(given: dict[str, str]) -> None:
    uri = f"http://u:{PASSWORD}@127.0.0.1:9/?token={TOKEN}"
    error_of(lambda: connect(None, {"type": "rest", "uri": uri, **given}).tables())


class Echo(BaseHTTPRequestHandler):
    """Says what it was sent, in an error of the status that the server has."""

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        sent = {
            "body": self.rfile.read(size).decode(errors="replace"),
            "headers": dict(self.headers),
            "path": self.path,
            "s3.secret-access-key": PASSWORD,
        }
        status = 200 if self.path.endswith("/config") else self.server.status  # type: ignore[attr-defined]
        text = json.dumps({"error": {"message": str(sent), "type": "E", "code": status}})
        if self.path.endswith("/config"):
            text = '{"defaults": {}, "overrides": {}}'
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def echo() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 418, 500, 503])
def test_a_rest_catalog_that_says_what_it_was_sent(echo: ThreadingHTTPServer, status: int) -> None:
    echo.status = status  # type: ignore[attr-defined]
    uri = f"http://127.0.0.1:{echo.server_port}"
    catalog = open_catalog(None, {"type": "rest", "uri": uri, "token": TOKEN, **STORAGE})
    assert MARK not in repr(catalog)
    error_of(lambda: tables.load_table(catalog, "ns.t"))


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_rest_catalog_that_refuses_to_sign_in(echo: ThreadingHTTPServer, status: int) -> None:
    echo.status = status  # type: ignore[attr-defined]
    given = {"type": "rest", "uri": f"http://127.0.0.1:{echo.server_port}"}
    error_of(lambda: open_catalog(None, {**given, "credential": f"client:{TOKEN}"}))


@pytest.mark.parametrize(
    "given",
    [
        [("s3.secret-access-key", PASSWORD)],
        f"postgresql://u:{PASSWORD}@h/db",
        f"postgresql://h/db?password={PASSWORD}",
        {"type": "nonsense", "uri": f"x://u:{PASSWORD}@h", "token": TOKEN},
        {"type": "rest", "token": TOKEN},
    ],
    ids=["list", "uri as name", "query as name", "wrong type", "no uri"],
)
def test_what_is_no_catalog(given: Any, tmp_path: Path) -> None:
    error_of(lambda: connect(str(tmp_path), given), InvalidStatementError)


# --- storages


def test_a_storage_that_says_what_it_was_sent(echo: ThreadingHTTPServer) -> None:
    echo.status = 403  # type: ignore[attr-defined]
    endpoint = {"s3.endpoint": f"http://127.0.0.1:{echo.server_port}"}
    storage = Storage({**STORAGE, **endpoint})
    for call in (
        lambda: storage.read("s3://bucket/key"),
        lambda: storage.create("s3://bucket/key", b"x"),
        lambda: storage.write("s3://bucket/key", b"x"),
        lambda: list(storage.list("s3://bucket/folder")),
        lambda: connect("s3://bucket/w", {"type": "filesystem", **STORAGE, **endpoint}).tables("n"),
    ):
        error_of(call, StorageError)
    assert MARK not in repr(storage)


def test_a_storage_that_is_not_there() -> None:
    local = Storage({})
    error_of(lambda: local.read(f"/nowhere/x?X-Amz-Signature={PASSWORD}"), StorageError)
    error_of(lambda: local.read(f"sftp://u:{PASSWORD}@h/x"))


# --- tables, with metadata that others wrote


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake with a table whose metadata has secrets."""
    place = str(tmp_path / "lake")
    with connect(place, {"type": "filesystem", **STORAGE}) as opened:
        opened.create_namespace("ns")
        table = opened.create_table("ns.t", SALES, properties={"owner": "me"})
        table.append(sales(4))
        folder = Path(table.location) / "metadata"
        number = int((folder / "version-hint.text").read_text())
        content = json.loads((folder / f"v{number}.metadata.json").read_text())
        content["properties"] |= {**STORAGE, "jdbc": f"jdbc:pg://u:{PASSWORD}@h/d?token={TOKEN}"}
        content["snapshots"][-1]["summary"] |= {"password": PASSWORD}
        (folder / f"v{number + 1}.metadata.json").write_text(json.dumps(content))
        (folder / "version-hint.text").write_text(str(number + 1))
        yield opened


def test_texts_of_objects(lake: Lake) -> None:
    table = lake.table("ns.t")
    handle = table.handle
    read = planned_view(view_of(handle))
    shown = [lake, lake.catalog, lake.engine, vars(lake.engine), table, handle, handle.storage]
    shown += [view_of(handle), read, read.context, table.snapshots(), handle.to_pyiceberg().io]
    assert not [one for one in shown if MARK in repr(one) or MARK in str(one)]
    assert handle.metadata_location in repr(handle)
    assert KEY == handle.io_properties["s3.access-key-id"] == table.properties["s3.access-key-id"]
    assert len(pack(read.context)), "travels with its secrets"
    assert read.context.io_properties["s3.session-token"] == SESSION


def test_listings_of_properties_and_summaries(lake: Lake) -> None:
    table = lake.table("ns.t")
    shown = table_properties(table)
    assert shown["s3.session-token"] == REDACTED and shown["owner"] == "me"
    assert shown["jdbc"] == "jdbc:pg://u:***@h/d?token=***"
    texts = [create_text(table), str(shown), str(table.health()), repr(table.health())]
    names = ("snapshots", "history", "refs", "metadata_log_entries", "files", "manifests")
    texts += [str(table.inspect(name).to_pylist()) for name in names]
    assert not [text for text in texts if MARK in text]
    assert "owner" in create_text(table)


@pytest.mark.parametrize("output", ["table", "json", "csv"])
@pytest.mark.parametrize("command", ["describe", "snapshots", "history", "health"])
def test_the_command_line(
    lake: Lake, command: str, output: str, monkeypatch: Any, capfd: Any
) -> None:
    place = lake.catalog.properties["warehouse"]
    given = ["--warehouse", place, "--catalog", "filesystem", "--output", output]
    assert run_cli(monkeypatch, command, "ns.t", *given) == 0
    out, err = capfd.readouterr()
    assert MARK not in out + err
    assert command != "describe" or "s3.session-token" in out


@pytest.mark.parametrize(
    "given",
    [
        ["describe", "ns.t", "--catalog", f"postgresql://u:{PASSWORD}@h/db"],
        ["describe", "ns.t", "--catalog", f"postgresql://h/db?user=u&password={PASSWORD}"],
        ["tables", "--warehouse", f"sftp://u:{PASSWORD}@h/w"],
        ["tables", "ns", f"postgresql://u:{PASSWORD}@h/db"],
        ["tables", f"--catlog=postgresql://u:{PASSWORD}@h/db"],
        ["describe", "ns.t", "--output", f"http://u:{PASSWORD}@h"],
        ["delete", "ns.t", "--where", "id = 1", "--property", f"token={TOKEN}"],
    ],
)
def test_wrong_usage_of_the_command_line(
    given: list[str], monkeypatch: Any, capfd: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(monkeypatch, *given) != 0
    out, err = capfd.readouterr()
    assert MARK not in (out + err).lower()
    assert err


def run_cli(monkeypatch: Any, *given: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rowlake", *given])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


# --- secrets that would be written


@pytest.mark.parametrize("catalog", [None, "filesystem"])
def test_secrets_are_refused_as_properties(catalog: str | None, tmp_path: Path) -> None:
    secret = {"s3.secret-access-key": PASSWORD}
    with connect(str(tmp_path / "lake"), catalog) as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", SALES)
        table.append(sales(4))
        before = {str(one) for one in tmp_path.rglob("*") if one.is_file()}

        def evolved() -> None:
            with table.evolve().transaction() as changes:
                changes.set_properties(secret)

        def in_transaction() -> None:
            with lake.transaction() as tx:
                tx.table("ns.t").set_properties(secret)

        def evolved_in_transaction() -> None:
            with lake.transaction() as tx, tx.table("ns.t").evolve().transaction() as changes:
                changes.set_properties(secret)

        for call in (
            lambda: lake.create_table("ns.new", SALES, properties=secret),
            lambda: lake.create_table("ns.t", SALES, properties=secret, replace=True),
            lambda: lake.catalog.create_table(("ns", "new"), table.schema, properties=secret),
            lambda: table.set_properties(secret),
            lambda: table.append(sales(1, 9), properties=secret),
            lambda: table.overwrite(sales(1, 9), properties=secret),
            lambda: table.delete("id = 1", properties=secret),
            evolved,
            in_transaction,
            evolved_in_transaction,
        ):
            error = error_of(call, InvalidStatementError)
            assert "plain text" in str(error) and "catalog" in str(error)
        after = {str(one) for one in tmp_path.rglob("*") if one.is_file()}
        assert {one for one in after - before if "sqlite" not in one and ".db" not in one} == set()
        assert lake.tables("ns") == ["ns.t"]
        assert sum(table.files()["record_count"].to_pylist()) == 4


def test_names_of_columns_are_no_secrets(tmp_path: Path) -> None:
    named = {
        "write.metadata.metrics.column.password": "none",
        "write.parquet.bloom-filter-enabled.column.token": "true",
    }
    with connect(str(tmp_path)) as lake:
        lake.create_namespace("ns")
        schema = pa.schema([("password", pa.string()), ("token", pa.string())])
        table = lake.create_table("ns.t", schema, properties=named)
        table.set_properties(named)
        table.append(pa.table({"password": ["a"], "token": ["b"]}))
        assert table_properties(table).items() >= named.items()


def test_a_table_that_has_secrets_is_still_written_and_rid_of_them(lake: Lake) -> None:
    table = lake.table("ns.t")
    table.append(sales(2, 10))
    table.set_properties({"owner": "you"})
    assert table.properties["s3.session-token"] == SESSION
    table.unset_properties([*STORAGE, "jdbc"])
    assert sum(table.files()["record_count"].to_pylist()) == 6
    assert not [key for key in table.properties if key.startswith("s3.")]
