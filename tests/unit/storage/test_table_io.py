"""A table's metadata cannot send the catalog's credentials to a place of its choice."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from rowlake.catalog.generic import handle_of
from rowlake.storage.table_io import table_io_properties
from tests.lakes import SALES

if TYPE_CHECKING:
    from pathlib import Path

S3 = {"s3.access-key-id": "ours", "s3.secret-access-key": "secret", "s3.session-token": "session"}
EVIL = {
    "s3.endpoint": "http://evil",
    "s3.proxy-uri": "http://evil",
    "s3.role-arn": "arn:evil",
    "client.role-arn": "arn:evil",
    "gcs.service.host": "http://evil",
    "adls.blob-storage-authority": "evil",
    "adls.dfs-storage-scheme": "http",
    "adls.account-name": "evil",
    "hdfs.host": "evil",
}


@pytest.mark.parametrize("catalog", [S3, {"gcs.oauth2.token": "t"}, {"adls.sas-token": "t"}, {}])
@pytest.mark.parametrize("key", EVIL)
def test_a_table_does_not_direct_requests(key: str, catalog: dict[str, str]) -> None:
    assert table_io_properties(catalog, {key: EVIL[key]}, name="ns.t") == catalog


def test_a_table_brings_no_credentials_and_no_settings_of_its_own() -> None:
    own = {"s3.access-key-id": "theirs", "s3.secret-access-key": "x", "s3.region": "evil.com/"}
    assert table_io_properties(S3, {**EVIL, **own}, name="ns.t") == S3


@pytest.mark.parametrize("catalog", [None, "filesystem"])
def test_metadata_of_others_does_not_direct_requests(catalog: str | None, tmp_path: Path) -> None:
    with connect(str(tmp_path), catalog) as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", SALES)
        table.set_properties({"s3.endpoint": "http://evil", "gcs.service.host": "http://evil"})
        assert not lake.table("ns.t").handle.io_properties
        table.set_properties({"owner": "me"})
        assert not table.handle.io_properties


def test_what_a_rest_server_sends_along_is_the_catalogs() -> None:
    sent = {"s3.endpoint": "http://server", "s3.access-key-id": "vended"}
    metadata = SimpleNamespace(properties={"s3.endpoint": "http://evil", "s3.proxy-uri": "evil"})
    io = SimpleNamespace(properties={**S3, **metadata.properties, **sent})
    table = SimpleNamespace(metadata=metadata, metadata_location="/m", io=io, config=sent)
    handle = handle_of(SimpleNamespace(properties=S3), ("ns", "t"), table)  # type: ignore[arg-type]
    assert handle.io_properties == {**S3, **sent}


def test_ignoring_is_said_once_without_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        table_io_properties(S3, {"s3.endpoint": "http://u:s3cr3t@evil"}, name=f"ns.{tmp_path.name}")
    (said,) = [one.getMessage() for one in caplog.records]
    assert "s3.endpoint" in said and "ns.test_ignoring" in said
    assert "s3cr3t" not in said and json.dumps(S3) not in said
