"""Which names hold secrets, and what texts, listings and causes look like without them."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import time

import pytest

import rowlake
from rowlake.engine.session import HIDDEN_OPTIONS
from rowlake.errors import InvalidStatementError, StorageError
from rowlake.secrets import (
    REDACTED,
    cause_without_secrets,
    is_secret,
    redacted,
    redacted_repr,
    secrets_of,
    statement_without_secrets,
    without_passwords,
    without_secrets,
)

SECRET = [
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3.session-token",
    "client.access-key-id",
    "glue.session-token",
    "dynamodb.secret-access-key",
    "adls.account-key",
    "adls.sas-token",
    "adls.sas-token.acc.dfs.core.windows.net",
    "adls.client-secret",
    "adls.connection-string",
    "adls.token",
    "gcs.oauth2.token",
    "hf.token",
    "hdfs.kerberos_ticket",
    "token",
    "credential",
    "password",
    "secret",
    "header.Authorization",
    "header.X-Api-Key",
    "auth.basic.password",
    "fs.azure.sas.container.acc.blob.core.windows.net",
    "fs.s3a.secret.key",
    "fs.s3a.access.key",
    "fs.s3a.session.token",
    "s3.sse.key",
    "option.password",
    "PGPASSWORD",
    "fs.azure.account.key.acc.blob.core.windows.net",
    "fs.azure.account.oauth2.client.secret",
    "dbPassword",
    "AWS_SECRET_ACCESS_KEY",
    "awsSecretAccessKey",
    "catalog.s3.session-token",
    "db.passwd",
    "my_private_key",
    "apikey",
    "client.credentials-provider.s3.secret-access-key",
]

PLAIN = [
    "write.parquet.bloom-filter-enabled.column.token",
    "write.metadata.metrics.column.password",
    "write.parquet.stats-enabled.column.secret",
    "write.format.default",
    "commit.retry.num-retries",
    "gc.enabled",
    "history.expire.max-snapshot-age-ms",
    "rowlake.optimize.enabled",
    "schema.name-mapping.default",
    "encryption.key-id",
    "read.split.target-size",
    "comment",
    "owner",
    "format-version",
    "primary-key",
    "sort.key",
    "key",
    "s3.endpoint",
    "s3.region",
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "user",
    "username",
    "token-refresh-enabled",
    "token-count",
    "max-token-length",
    "tokens",
    "tokenizer",
    "source.sas.dataset",
    "passenger",
    "compass",
    "oauth2-server-uri",
    "rest.authorization-url",
    "s3.signer.uri",
    "client.credentials-provider",
    "fs.s3a.aws.credentials.provider",
    "auth.google.credentials_path",
    "client.refresh-credentials-endpoint",
    "s3.access-grants.enabled",
    "adls.client-id",
    "adls.account-name",
    "added-records",
    "engine-name",
    "wap.id",
]


@pytest.mark.parametrize("key", SECRET)
def test_names_of_secrets_are_known(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", [*SECRET, "uri"])
def test_plans_of_sessions_made_here_hide_options_of_such_names(key: str) -> None:
    sparks_own = "secret|password|token|access[.]?key"
    assert re.search(f"{HIDDEN_OPTIONS}|{sparks_own}", f"catalog.{key}")


@pytest.mark.parametrize("key", PLAIN)
def test_names_that_only_look_like_secrets_are_none(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql://u:pw@h/db", "postgresql://u:***@h/db"),
        ("at postgresql+psycopg2://u:p@ss@h:1/db now", "at postgresql+psycopg2://u:***@h:1/db now"),
        ("postgresql://u:p/w@h:5/db", "postgresql://u:***@h:5/db"),
        ("://:pw@h", "://:***@h"),
        ("mysql://h/d?user=a&password=b&ssl=1", "mysql://h/d?user=a&password=***&ssl=1"),
        (
            "https://b/k?X-Amz-Credential=A%2F1&X-Amz-Expires=9&X-Amz-Signature=ab",
            "https://b/k?X-Amz-Credential=***&X-Amz-Expires=9&X-Amz-Signature=***",
        ),
        ("abfss://c@a.net/k?sv=1&sig=ab%3D", "abfss://c@a.net/k?sv=1&sig=***"),
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer ***"),
        ("hdfs://nn:8020/a@b/c", "hdfs://nn:8020/a@b/c"),
        ("abfss://c@a.dfs.core.windows.net/x:y@z", "abfss://c@a.dfs.core.windows.net/x:y@z"),
        ("s3://b/day=2024-01-01/x?y.parquet", "s3://b/day=2024-01-01/x?y.parquet"),
        ("column token: string", "column token: string"),
        ("basic statistics of bearer tokens", "basic statistics of bearer tokens"),
        ("http://h,b:x@y", "http://h,b:x@y"),
    ],
)
def test_addresses_lose_passwords_and_signatures(text: str, clean: str) -> None:
    assert without_passwords(text) == clean
    assert without_secrets(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("invalid dsn: user=x password=ab host=z", "invalid dsn: user=x password=*** host=z"),
        ("{'s3.session-token': 'a b', 'n': 1}", "{'s3.session-token': '***', 'n': 1}"),
        ('{"token":"ab","n":1}', '{"token":"***","n":1}'),
        ("<AWSAccessKeyId>AK</AWSAccessKeyId><Code>C</Code>",
         "<AWSAccessKeyId>***</AWSAccessKeyId><Code>C</Code>"),
        ("AccountName=n;AccountKey=ab==;X=1", "AccountName=n;AccountKey=***;X=1"),
        ("Invalid token: it has expired", "Invalid token: it has expired"),
        ("password authentication failed", "password authentication failed"),
    ],
)  # fmt: skip
def test_texts_of_others_lose_values_of_secret_names(text: str, clean: str) -> None:
    assert without_secrets(text) == clean


def test_secrets_of_properties_are_hidden_wherever_they_stand() -> None:
    properties = {
        "credential": "client:deep-secret",
        "uri": "postgresql://u:sl%2Fash@h/d?password=in-query",
        "header.Authorization": "Bearer of-header",
        "auth": {"basic": {"password": "nested-one"}},
        "s3.secret-access-key": "abc",
        "s3.region": "eu-west-1",
    }
    text = "deep-secret, sl/ash, sl%2Fash, in-query, of-header, nested-one, eu-west-1, client"
    assert without_secrets(text, properties) == "***, ***, ***, ***, ***, ***, eu-west-1, client"
    assert "abc" not in secrets_of(properties), "too short to be told from words"


def test_listings_show_that_there_is_a_secret_but_not_which() -> None:
    shown = redacted({"password": "x", "owner": "me", "source": "jdbc:pg://u:pw@h/d"})
    assert shown == {"password": REDACTED, "owner": "me", "source": "jdbc:pg://u:***@h/d"}


def test_statements_keep_their_length_without_secret_literals() -> None:
    text = "SET ('s3.secret-access-key' = 'ab\nc', password \"x\", a = 'b') map('token', 'y')"
    clean = "SET ('s3.secret-access-key' = '**\n*', password \"*\", a = 'b') map('token', '*')"
    assert statement_without_secrets(text) == clean
    compared = "WHERE t.token = s.token AND note = 'x'"
    assert statement_without_secrets(compared) == compared


def test_a_wrong_statement_is_shown_without_its_secret() -> None:
    statement = "ALTER TABLE t SET TBLPROPERTIES ('password' = 's3cr3t') nonsense"
    error = InvalidStatementError("Unexpected", statement=statement, position=56)
    assert "s3cr3t" not in str(error) and "s3cr3t" not in error.statement
    assert str(error).splitlines()[2] == " " * 58 + "^"


def test_fields_of_errors_are_clean_too() -> None:
    error = StorageError("http://u:s3cr3t@h/x", "GET http://h/x?sig=s3cr3t failed")
    assert "s3cr3t" not in f"{error}{error.location}{error.cause}{vars(error)}"


def test_a_cause_that_shows_a_secret_is_dropped_and_others_stay() -> None:
    plain = OSError("no space")
    assert cause_without_secrets(plain) is plain
    inner = OSError("at http://u:pw@h")
    outer = ValueError("failed")
    outer.__cause__ = inner
    assert cause_without_secrets(outer) is None
    assert cause_without_secrets(ValueError("key 12345678"), {"token": "12345678"}) is None


@pytest.mark.parametrize(
    "part", ["a", "://:", "a='", " =", "?a=&", "<a>", 'a"', "a,'\\", "Bearer "]
)
def test_long_texts_do_not_take_long(part: str) -> None:
    text = part * (200_000 // len(part))
    started = time.process_time()
    without_secrets(text)
    statement_without_secrets(text)
    assert time.process_time() - started < 3


def test_every_dataclass_with_properties_hides_secrets_in_its_text() -> None:
    named = [one.name for one in pkgutil.walk_packages(rowlake.__path__, "rowlake.")]
    modules = [importlib.import_module(name) for name in named if not name.endswith("__main__")]
    found = {one for module in modules for one in vars(module).values() if _has_properties(one)}
    assert len(found) > 10
    others = {one.__qualname__ for one in found if one.__repr__ is not redacted_repr}
    assert others <= {"DeltaHandle", "IcebergHandle", "Blob"}


def _has_properties(one: object) -> bool:
    names = {"properties", "io_properties", "config", "summary", "defaults"}
    return (
        isinstance(one, type)
        and dataclasses.is_dataclass(one)
        and any(
            field.name in names and str(field.type).startswith(("Mapping[str", "dict[str"))
            for field in dataclasses.fields(one)
        )
    )
