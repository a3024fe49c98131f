"""Commits to several tables, all or nothing, where the catalog can do that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableRequest, Namespace, TableIdentifier

from rowlake.catalog.backend import backend_of, can_commit_many, kinds_of
from rowlake.catalog.commit import cause_of, failure, look, snapshots_in, text_of
from rowlake.catalog.fate import Fate, fate_of
from rowlake.errors import UnsupportedFeatureError, shown
from rowlake.iceberg._compat import rest_session
from rowlake.model.outcome import Conflict, Landed, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from requests import Response

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.catalog.sql import SqlBackend, Swap
    from rowlake.model.handle import TableHandle

# How a server answers that has no such endpoint; 404 is also the answer for a missing table.
_NO_ENDPOINT = frozenset({404, 405, 501})


@dataclass(frozen=True)
class TableChange:
    """What one table of a commit gets."""

    handle: IcebergHandle
    updates: Sequence[TableUpdate]
    requirements: Sequence[TableRequirement]


@dataclass(frozen=True)
class AllLanded:
    """Every change is in its table; handles in the order of the changes."""

    handles: tuple[TableHandle, ...]


ManyOutcome: TypeAlias = AllLanded | Conflict | Unknown


def commit_many(changes: Sequence[TableChange]) -> ManyOutcome:
    """Commit to several tables of one catalog, all or nothing.

    Raises UnsupportedFeatureError where the catalog cannot, before anything is written.
    """
    if not changes:
        return AllLanded(())
    catalog = _one_catalog(changes)
    if not can_commit_many(catalog):
        raise _cannot(catalog)
    kinds = kinds_of(catalog)
    try:
        if "EmbeddedCatalog" in kinds:
            return _commit_sql(backend_of(catalog).changes, changes)  # type: ignore[attr-defined]
        if "SqlCatalog" in kinds:
            return _commit_sql(backend_of(catalog), changes)  # type: ignore[arg-type]
        return _commit_rest(catalog, changes)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001  (each is told apart)
        return _after(changes, error)


def _cannot(catalog: Catalog) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{catalog.name} cannot commit to several tables at once: use a SQL catalog, or a REST "
        "catalog with multi-table commits."
    )


def _one_catalog(changes: Sequence[TableChange]) -> Catalog:
    catalogs = {id(change.handle.catalog) for change in changes}
    names = {change.handle.identifier for change in changes}
    staged = [change.handle.name for change in changes if change.handle.is_staged]
    if len(catalogs) > 1:
        raise UnsupportedFeatureError("Tables of several catalogs cannot commit together.")
    if len(names) < len(changes):
        raise UnsupportedFeatureError("A table can be in such a commit once only.")
    if staged:
        raise UnsupportedFeatureError(f"{staged[0]} must be created before it commits with others.")
    return changes[0].handle.catalog


def _commit_sql(backend: SqlBackend, changes: Sequence[TableChange]) -> AllLanded:
    swaps: list[Swap] = []
    try:
        swaps.extend(
            backend.prepare(change.handle, change.updates, change.requirements)
            for change in changes
        )
    except BaseException:
        backend.discard(swaps)
        raise
    backend.swap([swap for swap in swaps if swap.after is not swap.base])
    return AllLanded(tuple(swap.after for swap in swaps))


def _commit_rest(catalog: RestCatalog, changes: Sequence[TableChange]) -> AllLanded:
    requests = [_request(change) for change in changes]
    body = '{"table-changes": [' + ", ".join(requests) + "]}"
    answer = rest_session(catalog).post(
        catalog.url("transactions/commit"), data=body.encode("utf-8")
    )
    if answer.status_code in _NO_ENDPOINT and "NoSuchTable" not in answer.text:
        raise _cannot(catalog)
    if answer.status_code != 409:
        answer.raise_for_status()
    return _checked(changes, answer)


def _checked(changes: Sequence[TableChange], answer: Response) -> AllLanded:
    """Look whether all tables have their change, or none; servers are known that break this.

    The REST adapter in Iceberg's Java library, which several servers are built on, checks all
    tables first and then commits one by one: another writer in between gets some changes lost,
    under an answer that says that all landed, or that none did.
    """
    try:
        backend = backend_of(changes[0].handle.catalog)
        handles = tuple(backend.load(change.handle.identifier, None) for change in changes)
    except Exception as error:
        raise CommitStateUnknownException(str(error)) from error
    sent = [snapshots_in(change.updates) for change in changes]
    there = [{one.snapshot_id for one in handle.metadata.snapshots} for handle in handles]
    if answer.status_code == 409 and not any(map(set.intersection, sent, there)):
        raise CommitFailedException(answer.text)
    if answer.status_code != 409 and all(map(set.issubset, sent, there)):
        return AllLanded(handles)
    names = {True: [], False: []}  # type: dict[bool, list[str]]
    for ours, found, handle in zip(sent, there, handles, strict=True):
        names[ours <= found].append(handle.name)
    raise CommitStateUnknownException(
        f"the catalog answered {answer.status_code}, but it committed to {shown(names[True])} and "
        f"not to {shown(names[False])}: its multi-table commits are not atomic"
    )


def _request(change: TableChange) -> str:
    identifier = change.handle.identifier
    request = CommitTableRequest(
        identifier=TableIdentifier(namespace=Namespace(list(identifier[:-1])), name=identifier[-1]),
        requirements=tuple(change.requirements),
        updates=tuple(change.updates),
    )
    return request.model_dump_json()


def _after(changes: Sequence[TableChange], error: Exception) -> ManyOutcome:
    handle, fate = changes[0].handle, fate_of(error)
    if fate is Fate.CONFLICT:
        return Conflict(text_of(error, handle))
    if fate is Fate.FAILED:
        raise failure(handle, error) from cause_of(error, handle)
    cause = text_of(error, handle)
    seen = [look(change.handle, change.updates, cause) for change in changes]
    landed = [one.handle for one in seen if isinstance(one, Landed)]
    return AllLanded(tuple(landed)) if len(landed) == len(seen) else Unknown(cause)
