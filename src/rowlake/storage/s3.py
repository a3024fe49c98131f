"""S3 operations that pyarrow lacks: put-if-absent, and deleting many objects at once.

The client (obstore) is imported on first use, since few tasks need it.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rowlake.errors import UnsupportedFeatureError
from rowlake.storage.filesystems import (
    first_of,
    is_true,
    s3_credentials,
    s3_endpoint,
    s3_region,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Object metadata that identifies the call that created it.
_MAKER = "rowlake-maker"
# Buckets outside Amazon that were seen to refuse overwriting.
_SAFE: set[tuple[str, tuple[tuple[str, str], ...]]] = set()


def create(bucket: str, key: str, data: bytes, properties: Mapping[str, str]) -> bool:
    """Put an object unless it exists (`If-None-Match: *`); return whether this call created it.

    A request whose answer is lost is sent again by the client and then refused because of the
    object that it created itself; so after a refusal the owner of the object is checked.
    """
    import obstore

    validate_create(bucket, key, properties)
    store = _store(bucket, tuple(sorted(properties.items())))
    return _put_if_absent(obstore, store, key, data)


def validate_create(bucket: str, key: str, properties: Mapping[str, str]) -> None:
    """Refuse a server that overwrites objects all the same; each bucket is tried once."""
    chosen = tuple(sorted(properties.items()))
    if s3_endpoint(properties) and (bucket, chosen) not in _SAFE:
        _check_refusal(_store(bucket, chosen), key)
        _SAFE.add((bucket, chosen))


def _put_if_absent(obstore: Any, store: Any, key: str, data: bytes) -> bool:
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    maker = uuid.uuid4().hex
    try:
        obstore.put(store, key, data, mode="create", attributes={_MAKER: maker})
    except (AlreadyExistsError, PreconditionError):
        return bool(obstore.get(store, key).attributes.get(_MAKER) == maker)
    return True


def _check_refusal(store: Any, key: str) -> None:
    """Check that a store other than Amazon's refuses to overwrite; some ignore the condition."""
    import obstore

    probe = f"{key.rpartition('/')[0]}/rowlake-probe-{uuid.uuid4().hex}".removeprefix("/")
    try:
        _put_if_absent(obstore, store, probe, b"")
        is_overwritten = _put_if_absent(obstore, store, probe, b"")
    finally:
        _deleted(store, probe)
    if is_overwritten:
        raise UnsupportedFeatureError(
            "Cannot commit: this S3 server ignores If-None-Match, so concurrent commits would "
            "overwrite each other. Use a catalog (SQL, REST, …) or another server."
        )


def delete(bucket: str, keys: Sequence[str], properties: Mapping[str, str]) -> list[str]:
    """Delete objects, many per request; return the keys that could not be deleted."""
    import obstore
    from obstore.exceptions import BaseError

    store = _store(bucket, tuple(sorted(properties.items())))
    try:
        obstore.delete(store, list(keys))
    except (BaseError, OSError):
        return [key for key in keys if not _deleted(store, key)]
    return []


def _deleted(store: Any, key: str) -> bool:
    import obstore
    from obstore.exceptions import BaseError

    try:
        obstore.delete(store, key)
    except FileNotFoundError:
        return True
    except (BaseError, OSError):
        return False
    return True


@lru_cache(maxsize=32)
def _store(bucket: str, properties: tuple[tuple[str, str], ...]) -> Any:
    from obstore.store import S3Store

    given = dict(properties)
    endpoint = s3_endpoint(given)
    config: dict[str, Any] = {
        "endpoint": endpoint,
        "region": s3_region(given, bucket),
        "virtual_hosted_style_request": is_true(given, "s3.force-virtual-addressing")
        or endpoint is None,
        "skip_signature": is_true(given, "s3.anonymous") or None,
    }
    return S3Store(
        bucket,
        config={name: value for name, value in config.items() if value is not None},
        client_options=_client_options(given, endpoint),
        **_credentials(given),
    )


def _client_options(given: Mapping[str, str], endpoint: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {"allow_http": bool(endpoint and endpoint.startswith("http://"))}
    if seconds := given.get("s3.connect-timeout"):
        options["connect_timeout"] = timedelta(seconds=float(seconds))
    if seconds := given.get("s3.request-timeout"):
        options["timeout"] = timedelta(seconds=float(seconds))
    if proxy := given.get("s3.proxy-uri"):
        options["proxy_url"] = proxy
    return options


def _credentials(given: Mapping[str, str]) -> dict[str, Any]:
    if role := first_of(given, "s3.role-arn", "client.role-arn"):
        from obstore.auth.boto3 import StsCredentialProvider

        session = first_of(given, "s3.role-session-name", "client.role-session-name")
        return {
            "credential_provider": StsCredentialProvider(
                RoleArn=role, RoleSessionName=session or "rowlake"
            )
        }
    keys = s3_credentials(given)
    if not keys["access_key"]:
        return {}
    named = {
        "access_key_id": keys["access_key"],
        "secret_access_key": keys["secret_key"],
        "session_token": keys["session_token"],
    }
    return {name: value for name, value in named.items() if value}
