from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pyiceberg import exceptions as theirs
from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.types import LongType, NestedField
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from rowlake.catalog import commit as commit_module
from rowlake.catalog import tables
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.fate import Fate, fate_of
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.generic import GenericBackend, creation_updates
from rowlake.catalog.many import AllLanded, TableChange, commit_many
from rowlake.catalog.open import open_catalog
from rowlake.errors import StorageError, TableNotFoundError, UnsupportedFeatureError
from rowlake.iceberg.metadata_files import Definition, from_nothing, new_metadata
from rowlake.model.outcome import Conflict, Landed, Unknown
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def setting(**properties: str) -> list[Any]:
    return [SetPropertiesUpdate(updates=properties)]


def appending(handle: IcebergHandle, snapshot_id: int, rows: int = 10) -> list[Any]:
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
    return [
        AssertTableUUID(uuid=handle.metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=handle.metadata.current_snapshot_id),
    ]


def landed(outcome: object) -> IcebergHandle:
    assert isinstance(outcome, Landed), outcome
    return outcome.handle


# -- landing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_snapshots_land_in_every_format_version(
    catalog: Catalog, definition: Definition, version: str
) -> None:
    given = Definition(definition.schema, properties={"format-version": version})
    first = tables.create_table(catalog, "ns.v", given)
    second = landed(commit_updates(first, appending(first, 11), at_head(first)))
    third = landed(commit_updates(second, appending(second, 12), at_head(second)))
    loaded = tables.load_table(catalog, "ns.v")
    assert loaded.metadata.model_dump_json() == third.metadata.model_dump_json()
    assert [one.snapshot_id for one in loaded.metadata.snapshots] == [11, 12]
    assert [entry.metadata_file for entry in loaded.metadata.metadata_log] == [
        first.metadata_location,
        second.metadata_location,
    ]
    raw = json.loads(Path(str(third.metadata_location)).read_text())
    assert raw.get("next-row-id") == (20 if version == "3" else None)
    assert raw["current-snapshot-id"] == 12


def test_an_upgrade_to_v3_starts_row_ids(catalog: Catalog, table: IcebergHandle) -> None:
    upgrade = UpgradeFormatVersionUpdate(format_version=3)
    after = landed(commit_updates(table, [upgrade], []))
    assert after.metadata.format_version == 3
    assert json.loads(Path(str(after.metadata_location)).read_text())["next-row-id"] == 0
    appended = landed(commit_updates(after, appending(after, 5), at_head(after)))
    assert tables.refresh(appended).metadata.next_row_id == 10


def test_an_upgrade_and_a_snapshot_in_one_commit_count_rows(
    catalog: Catalog, table: IcebergHandle
) -> None:
    head = tables.load_table(catalog, "ns.t")
    added, ref = appending(head, 5)
    snapshot = added.snapshot.model_copy(update={"first_row_id": 0, "added_rows": 7})
    updates = [
        UpgradeFormatVersionUpdate(format_version=3),
        AddSnapshotUpdate(snapshot=snapshot),
        ref,
    ]
    after = landed(commit_updates(head, updates, at_head(head)))
    assert json.loads(Path(str(after.metadata_location)).read_text())["next-row-id"] == 7


def test_v1_metadata_follows_the_schema(catalog: Catalog, definition: Definition) -> None:
    given = Definition(definition.schema, properties={"format-version": "1"})
    first = tables.create_table(catalog, "ns.v", given)
    wider = Schema(*first.metadata.schema().fields, NestedField(3, "n", LongType()), schema_id=1)
    updates = [AddSchemaUpdate(schema_=wider), SetCurrentSchemaUpdate(schema_id=1)]
    after = landed(commit_updates(first, updates, []))
    raw = json.loads(Path(str(after.metadata_location)).read_text())
    assert [one["name"] for one in raw["schema"]["fields"]] == ["id", "s", "n"]


def test_a_commit_without_requirements_applies_to_the_newest_metadata(
    catalog: Catalog, table: IcebergHandle
) -> None:
    landed(commit_updates(table, setting(a="1"), []))
    landed(commit_updates(table, setting(b="2"), []))
    assert tables.refresh(table).metadata.properties == {"a": "1", "b": "2"}


def test_a_commit_that_changes_nothing_writes_nothing(
    catalog: Catalog, table: IcebergHandle, tmp_path: Path
) -> None:
    before = files_below(tmp_path)
    updates = [RemovePropertiesUpdate(removals=["never-set"])]
    assert landed(commit_updates(table, updates, [])).metadata == table.metadata
    assert files_below(tmp_path) == before


def test_a_staged_table_appears_with_its_first_snapshot(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    before = files_below(tmp_path)
    staged = tables.stage_table(catalog, "ns.ctas", definition)
    assert staged.is_staged
    assert not tables.table_exists(catalog, "ns.ctas")
    assert files_below(tmp_path) == before
    after = landed(commit_updates(staged, appending(staged, 1), []))
    loaded = tables.load_table(catalog, "ns.ctas")
    assert loaded.metadata == after.metadata
    assert loaded.metadata.current_snapshot_id == 1
    assert loaded.metadata.metadata_log == []


def test_of_two_staged_tables_of_one_name_the_second_is_a_conflict(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    one, two = (tables.stage_table(catalog, "ns.ctas", definition) for _ in range(2))
    landed(commit_updates(one, (), []))
    before = files_below(tmp_path)
    assert isinstance(commit_updates(two, (), []), Conflict)
    assert files_below(tmp_path) == before


# -- conflicts --------------------------------------------------------------------------------


def test_a_moved_head_is_a_conflict_that_leaves_no_file(
    catalog: Catalog, table: IcebergHandle, tmp_path: Path
) -> None:
    landed(commit_updates(table, appending(table, 1), at_head(table)))
    before = files_below(tmp_path)
    outcome = commit_updates(table, appending(table, 2), at_head(table))
    assert isinstance(outcome, Conflict)
    assert files_below(tmp_path) == before
    assert tables.refresh(table).metadata.current_snapshot_id == 1


def test_a_race_lost_between_reading_and_swapping_is_a_conflict_that_leaves_no_file(
    catalog: Catalog, table: IcebergHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner: list[object] = []
    method = "create" if isinstance(catalog, FileSystemCatalog) else "write"
    original = getattr(Storage, method)

    def overtaken(self: Storage, location: str, data: bytes) -> object:
        if "metadata.json" in location and not winner:
            winner.append(None)
            winner[0] = commit_updates(tables.load_table(catalog, "ns.t"), setting(w="1"), [])
        return original(self, location, data)

    monkeypatch.setattr(Storage, method, overtaken)
    assert isinstance(commit_updates(table, setting(l="1"), []), Conflict)
    assert isinstance(winner[0], Landed)
    monkeypatch.undo()
    assert tables.refresh(table).metadata.properties == {"w": "1"}
    metadata_files = [name for name in files_below(tmp_path) if name.endswith(".metadata.json")]
    assert len(metadata_files) == 2


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_commit_to_another_branch_makes_a_snapshot_stale(
    catalog: Catalog, definition: Definition, version: str
) -> None:
    given = Definition(definition.schema, properties={"format-version": version})
    first = tables.create_table(catalog, "ns.v", given)
    head = landed(commit_updates(first, appending(first, 1), at_head(first)))
    side = appending(head, 2)
    side[1] = SetSnapshotRefUpdate(ref_name="side", type="branch", snapshot_id=2)
    landed(commit_updates(head, side, []))
    outcome = commit_updates(head, appending(head, 3), at_head(head))
    assert isinstance(outcome, Conflict)
    assert "already" in outcome.cause
    fresh = tables.refresh(head)
    after = landed(commit_updates(fresh, appending(fresh, 3), at_head(fresh)))
    assert [one.sequence_number for one in after.metadata.snapshots] == [1, 2, 3]


def test_committing_to_a_dropped_table_says_so(catalog: Catalog, table: IcebergHandle) -> None:
    tables.drop_table(catalog, "ns.t")
    with pytest.raises(TableNotFoundError):
        commit_updates(table, setting(a="1"), [])


def test_storage_that_refuses_means_not_landed(
    catalog: Catalog, table: IcebergHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Storage, location: str, data: bytes) -> None:
        raise StorageError(location, "no space left")

    monkeypatch.setattr(Storage, "write", refuse)
    monkeypatch.setattr(Storage, "create", refuse)
    with pytest.raises(StorageError, match="no space left"):
        commit_updates(table, setting(a="1"), [])
    monkeypatch.undo()
    assert tables.refresh(table).metadata.properties == {}


# -- unknown ----------------------------------------------------------------------------------


class Answered:
    def __init__(self, status: int) -> None:
        self.status_code = status


def http(status: int, kind: type[Exception]) -> Exception:
    error = kind("text")
    error.__cause__ = requests.HTTPError("text", response=Answered(status))  # type: ignore[arg-type]
    return error


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (http(409, theirs.CommitFailedException), Fate.CONFLICT),
        (http(400, theirs.BadRequestError), Fate.CONFLICT),
        (http(422, theirs.RESTError), Fate.CONFLICT),
        (http(429, theirs.TooManyRequestsError), Fate.CONFLICT),
        (http(401, theirs.UnauthorizedError), Fate.FAILED),
        (http(403, theirs.ForbiddenError), Fate.FAILED),
        (http(500, theirs.CommitStateUnknownException), Fate.UNKNOWN),
        (http(501, NotImplementedError), Fate.UNKNOWN),
        (http(503, theirs.ServiceUnavailableError), Fate.UNKNOWN),
        (http(507, theirs.ServerError), Fate.UNKNOWN),
        (requests.ReadTimeout("slow"), Fate.UNKNOWN),
        (requests.ConnectionError("reset by peer"), Fate.UNKNOWN),
        (requests.exceptions.ChunkedEncodingError("cut"), Fate.UNKNOWN),
        (OSError("thrift transport"), Fate.UNKNOWN),
        (RuntimeError("who knows"), Fate.UNKNOWN),
        (ValueError("cannot add snapshot"), Fate.FAILED),
        (StorageError("/x", "no space"), Fate.FAILED),
    ],
)
def test_how_a_failure_leaves_a_commit(error: Exception, fate: Fate) -> None:
    assert fate_of(error) is fate


def test_a_connection_never_made_means_not_landed() -> None:
    with pytest.raises(requests.ConnectionError) as caught:
        requests.get("http://127.0.0.1:1/", timeout=5)
    assert fate_of(caught.value) is Fate.FAILED


class LosesAnswers(GenericBackend):
    """A catalog whose answer to a commit is lost, after or before it did its work."""

    def commit(self, handle: Any, updates: Any, requirements: Any) -> Any:
        if self.catalog.properties["does"] == "true":
            backend = commit_module_backend(self.catalog)
            backend.commit(handle, updates, requirements)
        raise requests.ReadTimeout("no answer")


commit_module_backend = commit_module.backend_of


@pytest.mark.parametrize("does", [True, False])
def test_a_lost_answer_is_landed_only_where_our_snapshot_is_there(
    catalog: Catalog, table: IcebergHandle, monkeypatch: pytest.MonkeyPatch, does: bool
) -> None:
    catalog.properties["does"] = str(does).lower()
    monkeypatch.setattr(commit_module, "LOOKS", (0.0, 0.0))
    lossy = LosesAnswers(catalog)
    monkeypatch.setattr(commit_module, "backend_of", lambda _: lossy)
    outcome = commit_updates(table, appending(table, 77), at_head(table))
    if does:
        assert landed(outcome).metadata.current_snapshot_id == 77
    else:
        assert isinstance(outcome, Unknown)
        assert "no answer" in outcome.cause
    assert isinstance(commit_updates(table, setting(a="1"), []), Unknown)


@pytest.mark.parametrize("landing", [True, False])
def test_a_database_that_breaks_at_commit_is_asked_again(
    tmp_path: Path, definition: Definition, monkeypatch: pytest.MonkeyPatch, landing: bool
) -> None:
    catalog = open_catalog(str(tmp_path))
    tables.create_namespace(catalog, "ns")
    table = tables.create_table(catalog, "ns.t", definition)
    before = files_below(tmp_path)
    original = Session.commit

    def breaking(self: Session) -> None:
        if landing:
            original(self)
        raise OperationalError("COMMIT", {}, Exception("server closed the connection"))

    monkeypatch.setattr(Session, "commit", breaking)
    outcome = commit_updates(table, setting(a="1"), [])
    monkeypatch.undo()
    if landing:
        assert tables.refresh(table).metadata == landed(outcome).metadata
    else:
        assert isinstance(outcome, Conflict)
        assert files_below(tmp_path) == before
        assert tables.refresh(table) is table


# -- metadata files ---------------------------------------------------------------------------


def test_old_metadata_files_go_where_the_table_says_so(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    given = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "2",
    }
    handle = tables.create_table(catalog, "ns.v", Definition(definition.schema, properties=given))
    for number in range(6):
        handle = landed(commit_updates(handle, setting(n=str(number)), []))
    kept = [name for name in files_below(tmp_path) if name.endswith(".metadata.json")]
    assert len(kept) == 3
    assert len(handle.metadata.metadata_log) == 2
    assert tables.load_table(catalog, "ns.v").metadata == handle.metadata


def test_cleaning_up_after_landing_cannot_fail_the_commit(
    catalog: Catalog, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    handle = tables.create_table(catalog, "ns.v", Definition(definition.schema, properties=given))
    handle = landed(commit_updates(handle, setting(n="1"), []))

    def explode(*_: object) -> None:
        raise RuntimeError("not now")

    monkeypatch.setattr(Storage, "delete", explode)
    assert landed(commit_updates(handle, setting(n="2"), [])).metadata.properties["n"] == "2"


def test_metadata_files_are_compressed_where_the_table_says_so(
    catalog: Catalog, definition: Definition
) -> None:
    given = {"write.metadata.compression-codec": "gzip"}
    handle = tables.create_table(catalog, "ns.v", Definition(definition.schema, properties=given))
    handle = landed(commit_updates(handle, setting(a="1"), []))
    location = str(handle.metadata_location)
    assert location.endswith(".gz.metadata.json")
    assert json.loads(gzip.decompress(Path(location).read_bytes()))["format-version"] == 2
    assert tables.load_table(catalog, "ns.v").metadata == handle.metadata
    with pytest.raises(UnsupportedFeatureError, match="none or gzip"):
        tables.create_table(
            catalog,
            "ns.w",
            Definition(
                definition.schema, properties={"write.metadata.compression-codec": "brotli"}
            ),
        )


def test_metadata_goes_where_the_table_says_except_without_a_catalog(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    given = Definition(
        definition.schema, properties={"write.metadata.path": f"{tmp_path}/elsewhere"}
    )
    if isinstance(catalog, FileSystemCatalog):
        with pytest.raises(UnsupportedFeatureError, match=r"write\.metadata\.path"):
            tables.create_table(catalog, "ns.v", given)
        return
    made = tables.create_table(catalog, "ns.v", given)
    assert str(made.metadata_location).startswith(f"{tmp_path}/elsewhere/00000-")


def test_creation_updates_make_the_same_table(definition: Definition) -> None:
    for version in ("1", "2", "3"):
        given = {"format-version": version, "a": "b"}
        metadata = new_metadata(Definition(definition.schema, properties=given), "/t")
        made = from_nothing(creation_updates(metadata))
        same = {"last_updated_ms": 0}
        assert made.model_copy(update=same) == metadata.model_copy(update=same)


# -- several tables ---------------------------------------------------------------------------


def test_several_tables_commit_together_or_not_at_all(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    one, two = (tables.create_table(catalog, name, definition) for name in ("ns.a", "ns.b"))
    changes = [
        TableChange(one, appending(one, 1), at_head(one)),
        TableChange(two, appending(two, 2), at_head(two)),
    ]
    if isinstance(catalog, FileSystemCatalog):
        with pytest.raises(UnsupportedFeatureError, match="several tables"):
            commit_many(changes)
        return
    outcome = commit_many(changes)
    assert isinstance(outcome, AllLanded)
    assert [handle.metadata.current_snapshot_id for handle in outcome.handles] == [1, 2]
    three = TableChange(outcome.handles[0], appending(outcome.handles[0], 3), [])
    stale = TableChange(two, appending(two, 4), at_head(two))
    before = files_below(tmp_path)
    assert isinstance(commit_many([three, stale]), Conflict)
    assert files_below(tmp_path) == before
    assert tables.refresh(one).metadata.current_snapshot_id == 1
    assert tables.refresh(two).metadata.current_snapshot_id == 2


def test_a_race_lost_in_one_table_moves_none(tmp_path: Path, definition: Definition) -> None:
    catalog = open_catalog(str(tmp_path))
    tables.create_namespace(catalog, "ns")
    one, two = (tables.create_table(catalog, name, definition) for name in ("ns.a", "ns.b"))
    backend: Any = commit_module.backend_of(catalog).changes  # type: ignore[attr-defined]
    swaps = [backend.prepare(handle, setting(x="1"), []) for handle in (one, two)]
    landed(commit_updates(two, setting(y="1"), []))
    with pytest.raises(theirs.CommitFailedException):
        backend.swap(swaps)
    assert tables.refresh(one) is one
    assert tables.refresh(two).metadata.properties == {"y": "1"}


def test_a_commit_of_many_refuses_what_it_cannot_promise(
    tmp_path: Path, definition: Definition
) -> None:
    catalog, other = open_catalog(f"{tmp_path}/a"), open_catalog(f"{tmp_path}/b")
    for opened in (catalog, other):
        tables.create_namespace(opened, "ns")
    one = TableChange(tables.create_table(catalog, "ns.t", definition), setting(a="1"), [])
    far = TableChange(tables.create_table(other, "ns.t", definition), setting(a="1"), [])
    staged = TableChange(tables.stage_table(catalog, "ns.u", definition), (), [])
    for changes in ([one, far], [one, one], [one, staged]):
        with pytest.raises(UnsupportedFeatureError):
            commit_many(changes)
    assert commit_many([]) == AllLanded(())
