"""Small tables and snapshots for tests of catalogs; no data files behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
)
from pyiceberg.types import LongType, NestedField, StringType

from rowlake.catalog import tables
from rowlake.catalog.commit import commit_updates
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from rowlake.iceberg.metadata_files import Definition
from rowlake.maintain.iceberg.purge import drop_with_files
from rowlake.model.outcome import Landed

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle


def definition(version: int, **properties: str) -> Definition:
    """Return a table of two columns; on v3 one has defaults."""
    given = {"initial_default": "none", "write_default": "some"} if version == 3 else {}
    return Definition(
        Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "s", StringType(), **given),
        ),
        properties={"format-version": str(version), **properties},
    )


def appending(handle: IcebergHandle, snapshot_id: int, rows: int = 10) -> list[Any]:
    """Return the updates that add a snapshot to the main branch."""
    head = handle.metadata.current_snapshot()
    first_row_id = getattr(handle.metadata, "next_row_id", None)
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=head.snapshot_id if head else None,
        sequence_number=handle.metadata.next_sequence_number(),
        manifest_list=f"{handle.metadata.location}/metadata/snap-{snapshot_id}.avro",
        summary=Summary(Operation.APPEND),
        schema_id=handle.metadata.current_schema_id,
        first_row_id=first_row_id,
        added_rows=rows if first_row_id is not None else None,
    )
    return [
        AddSnapshotUpdate(snapshot=snapshot),
        SetSnapshotRefUpdate(ref_name=MAIN_BRANCH, type="branch", snapshot_id=snapshot_id),
    ]


def at_head(handle: IcebergHandle) -> list[Any]:
    """Return the requirements that nobody committed since."""
    return [
        AssertTableUUID(uuid=handle.metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=handle.metadata.current_snapshot_id),
    ]


def appended(handle: IcebergHandle, snapshot_id: int) -> IcebergHandle:
    """Return the table after one more snapshot."""
    outcome = commit_updates(handle, appending(handle, snapshot_id), at_head(handle))
    assert isinstance(outcome, Landed), outcome
    return outcome.handle


def check_tables_and_namespaces(catalog: Catalog, *, renames: bool) -> None:
    """Create, list, load, rename, stage and drop in a catalog that has the namespace `ns`."""
    tables.create_namespace(catalog, "ns.inner", exist_ok=True)
    made = tables.create_table(catalog, "ns.inner.t", definition(2, owner="me"))
    odd = tables.create_table(catalog, ("ns", "Größe x"), definition(2))
    assert tables.list_tables(catalog, "ns.inner") == [("ns", "inner", "t")]
    assert tables.list_tables(catalog, "ns") == [("ns", "Größe x")]
    assert ("ns", "inner") in tables.list_namespaces(catalog, "ns")
    loaded = tables.load_table(catalog, "ns.inner.t")
    assert loaded.metadata == made.metadata
    assert loaded.metadata.properties["owner"] == "me"
    _check_staging(catalog)
    if renames:
        renamed = tables.rename_table(catalog, odd.name, "ns.plain")
        assert renamed.metadata.table_uuid == odd.metadata.table_uuid
        tables.drop_table(catalog, "ns.plain")
    else:
        with pytest.raises(UnsupportedFeatureError):
            tables.rename_table(catalog, odd.name, "ns.plain")
        drop_with_files(catalog, odd.name)
    with pytest.raises(InvalidStatementError, match="not empty"):
        tables.drop_namespace(catalog, "ns")
    drop_with_files(catalog, "ns.inner.t")
    tables.drop_namespace(catalog, "ns.inner")
    with pytest.raises(TableNotFoundError):
        tables.load_table(catalog, "ns.inner.t")


def _check_staging(catalog: Catalog) -> None:
    staged = tables.stage_table(catalog, "ns.staged", definition(3))
    assert not tables.table_exists(catalog, "ns.staged")
    made = appended(staged, 7)
    loaded = tables.load_table(catalog, "ns.staged")
    assert loaded.metadata.current_snapshot_id == 7
    assert loaded.metadata.format_version == 3
    assert loaded.metadata.next_row_id == 10
    assert loaded.metadata.schema().find_field("s").initial_default == "none"
    assert loaded.metadata.schema().find_field("s").write_default == "some"
    assert made.metadata.location == loaded.metadata.location
    tables.drop_table(catalog, "ns.staged")
