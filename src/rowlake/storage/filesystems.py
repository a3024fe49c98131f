"""pyarrow file systems, configured by PyIceberg's property names and cached per process.

Credentials and endpoints come from the properties, else from the environment as the storage's
own tools read it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from rowlake.errors import UnsupportedFeatureError
from rowlake.storage.locations import AZURE, GCS, HADOOP, LOCAL, S3, Parts

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIXES = ("s3.", "client.", "gcs.", "adls.", "hdfs.")
_TRUE = frozenset({"true", "1", "yes", "y", "on", "t"})
_KEPT = 32


def io_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties that open files, as text, without the rest (a catalog's secrets)."""
    return {
        key: str(value)
        for key, value in properties.items()
        if key.startswith(PREFIXES) and value is not None
    }


def filesystem_of(parts: Parts, properties: Mapping[str, str]) -> fs.FileSystem:
    """Return the file system of a location; one per scheme, authority and properties."""
    if parts.scheme == LOCAL:
        return _local()
    authority = parts.authority
    return _remote(parts.scheme, authority, tuple(sorted(properties.items())))


@lru_cache(maxsize=1)
def _local() -> fs.FileSystem:
    return fs.LocalFileSystem()


@lru_cache(maxsize=_KEPT)
def _remote(scheme: str, authority: str, properties: tuple[tuple[str, str], ...]) -> fs.FileSystem:
    given = dict(properties)
    if scheme in S3:
        return fs.S3FileSystem(**s3_options(given, bucket=authority))
    if scheme in GCS:
        return _of_pyarrow("GcsFileSystem", scheme)(**_gcs_options(given))
    if scheme in AZURE:
        return _of_pyarrow("AzureFileSystem", scheme)(**_azure_options(given, authority))
    if scheme in HADOOP:
        return _hadoop(scheme, authority, given)
    raise UnsupportedFeatureError(f"Unsupported location scheme {scheme}://.")


def _of_pyarrow(name: str, scheme: str) -> Any:
    found = getattr(fs, name, None)
    if found is None:
        raise UnsupportedFeatureError(
            f"This build of pyarrow has no {name}, so {scheme}:// locations cannot be opened. "
            f"Install a pyarrow with it."
        )
    return found


def first_of(properties: Mapping[str, str], *names: str) -> str | None:
    """Return the first property that is set; names in capitals are environment variables."""
    for name in names:
        value = os.environ.get(name) if name.isupper() else properties.get(name)
        if value:
            return value
    return None


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """Return whether a property is set to a true value."""
    return properties.get(name, "").strip().lower() in _TRUE


def s3_endpoint(properties: Mapping[str, str]) -> str | None:
    """Return the endpoint; None for Amazon's own."""
    return first_of(properties, "s3.endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def s3_region(properties: Mapping[str, str], bucket: str) -> str | None:
    """Return the region: as given, else any for a custom endpoint, else the bucket's."""
    given = first_of(properties, "s3.region", "client.region", "AWS_REGION", "AWS_DEFAULT_REGION")
    if given:
        return given
    return "us-east-1" if s3_endpoint(properties) else _region_of_bucket(bucket)


@lru_cache(maxsize=_KEPT)
def _region_of_bucket(bucket: str) -> str | None:
    try:
        region: str = fs.resolve_s3_region(bucket)
    except OSError:
        return None  # the first real request says what is wrong
    return region


def s3_credentials(properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return key, secret and token as given in the properties (None: the environment's chain)."""
    return {
        "access_key": first_of(properties, "s3.access-key-id", "client.access-key-id"),
        "secret_key": first_of(properties, "s3.secret-access-key", "client.secret-access-key"),
        "session_token": first_of(properties, "s3.session-token", "client.session-token"),
    }


def s3_options(properties: Mapping[str, str], bucket: str) -> dict[str, Any]:
    """Return the arguments of pyarrow's S3 file system."""
    options: dict[str, Any] = {
        **s3_credentials(properties),
        "endpoint_override": s3_endpoint(properties),
        "region": s3_region(properties, bucket),
        "proxy_options": properties.get("s3.proxy-uri"),
        "role_arn": first_of(properties, "s3.role-arn", "client.role-arn"),
        "session_name": first_of(properties, "s3.role-session-name", "client.role-session-name"),
        "connect_timeout": _seconds(properties, "s3.connect-timeout"),
        "request_timeout": _seconds(properties, "s3.request-timeout"),
        "force_virtual_addressing": is_true(properties, "s3.force-virtual-addressing") or None,
        "anonymous": is_true(properties, "s3.anonymous") or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _seconds(properties: Mapping[str, str], name: str) -> float | None:
    value = properties.get(name)
    if not value:
        return None
    try:
        return float(value)
    except ValueError:
        raise UnsupportedFeatureError(f"{name} must be a number of seconds, not {value}.") from None


def _gcs_options(properties: Mapping[str, str]) -> dict[str, Any]:
    from datetime import datetime, timezone

    options: dict[str, Any] = {}
    if token := properties.get("gcs.oauth2.token"):
        options["access_token"] = token
    if expiry := properties.get("gcs.oauth2.token-expires-at"):
        options["credential_token_expiration"] = datetime.fromtimestamp(
            int(expiry) / 1000, tz=timezone.utc
        )
    if region := properties.get("gcs.default-bucket-location"):
        options["default_bucket_location"] = region
    if host := properties.get("gcs.service.host"):
        scheme, _, endpoint = host.rpartition("://")
        options |= {"scheme": scheme or "https", "endpoint_override": endpoint}
    return options


def _azure_options(properties: Mapping[str, str], host: str) -> dict[str, Any]:
    names = (
        "account-name",
        "account-key",
        "blob-storage-authority",
        "dfs-storage-authority",
        "blob-storage-scheme",
        "dfs-storage-scheme",
        "sas-token",
        "client-id",
        "client-secret",
        "tenant-id",
    )
    options = {
        name.replace("-", "_"): properties[f"adls.{name}"]
        for name in names
        if f"adls.{name}" in properties
    }
    account = host.partition(".")[0]
    if account:
        options.setdefault("account_name", account)
    return options


def _hadoop(scheme: str, authority: str, properties: Mapping[str, str]) -> fs.FileSystem:
    hadoop = _of_pyarrow("HadoopFileSystem", scheme)
    if authority:
        return hadoop.from_uri(f"{scheme}://{authority}")
    options: dict[str, Any] = {"host": properties.get("hdfs.host", "default")}
    if port := properties.get("hdfs.port"):
        options["port"] = int(port)
    if user := properties.get("hdfs.user"):
        options["user"] = user
    if ticket := properties.get("hdfs.kerberos_ticket"):
        options["kerb_ticket"] = ticket
    return hadoop(**options)
