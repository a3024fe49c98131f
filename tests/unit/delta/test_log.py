"""The log: which files make up a version, and what a broken or strange one says."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.delta.actions import FILES
from rowlake.delta.commits import parse_actions
from rowlake.delta.log_files import list_log
from rowlake.errors import (
    CorruptTableError,
    InvalidStatementError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.storage.files import Storage
from tests.delta_logs import PROTOCOL, HandMade, column, features, metadata, people


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def made(tmp_path):
    return HandMade(tmp_path / "t").create()


def ids(lake, made, **moment):
    return sorted(lake.table(made.name).arrow(["id"], **moment)["id"].to_pylist())


def grown(made, count):
    for number in range(count):
        made.commit(made.add(f"f{number}.parquet", people(number)))
    return made


def checkpoint(made, version, name, adds, *others, **options):
    """Write a Parquet checkpoint with these adds and other actions."""
    pairs = pa.map_(pa.string(), pa.string())
    kinds = {
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", pairs),
            ]
        ),
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
        "add": pa.struct(
            [
                ("path", pa.string()),
                ("partitionValues", pairs),
                ("size", pa.int64()),
                ("dataChange", pa.bool_()),
                ("stats", pa.string()),
            ]
        ),
        "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())]),
    }
    rows = [*others, *({"add": one} for one in adds)]
    table = pa.table(
        {
            key: pa.array([_shaped(row.get(key), kind) for row in rows], kind)
            for key, kind in kinds.items()
        }
    )
    target = made.log / name.format(version=f"{version:020d}")
    target.parent.mkdir(exist_ok=True)
    pq.write_table(table, target, **options)
    return target


def _shaped(value, kind):
    if value is None:
        return None
    given = {one.name: value.get(one.name) for one in kind}
    return {key: list(one.items()) if isinstance(one, dict) else one for key, one in given.items()}


def test_versions_are_read_from_commits_alone(lake, made):
    grown(made, 3)
    made.commit(made.remove("f1.parquet"))
    assert ids(lake, made) == [0, 2]
    assert ids(lake, made, snapshot_id=3) == [0, 1, 2]
    with pytest.raises(InvalidStatementError, match="versions 0 to 4"):
        ids(lake, made, snapshot_id=5)


def test_a_checkpoint_stands_for_the_commits_before_it(lake, made):
    grown(made, 3)
    whole = [made.adds["f0.parquet"], made.adds["f2.parquet"]]
    checkpoint(made, 3, "{version}.checkpoint.parquet", whole, PROTOCOL, metadata())
    for version in range(3):
        (made.log / f"{version:020d}.json").unlink()
    made.commit(made.add("f9.parquet", people(9)), made.remove("f0.parquet"))
    assert ids(lake, made) == [2, 9]
    assert ids(lake, made, snapshot_id=3) == [0, 2]
    assert [one.snapshot_id for one in lake.table(made.name).snapshots()] == [3, 4]
    with pytest.raises(InvalidStatementError, match="versions 3 to 4"):
        ids(lake, made, snapshot_id=2)


def test_a_table_of_which_only_a_checkpoint_is_left_is_read(lake, made):
    grown(made, 1)
    checkpoint(made, 1, "{version}.checkpoint.parquet", made.adds.values(), PROTOCOL, metadata())
    for version in range(2):
        (made.log / f"{version:020d}.json").unlink()
    assert ids(lake, made) == [0]
    assert lake.table(made.name).snapshots()[0].operation == ""


def test_the_hint_of_the_last_checkpoint_is_never_needed(lake, made):
    grown(made, 2)
    for text in ("", "{nope", json.dumps({"version": 77, "size": 1})):
        (made.log / "_last_checkpoint").write_text(text)
        assert ids(lake, made) == [0, 1]


def test_a_checkpoint_of_several_parts_is_used_when_it_is_complete(lake, made):
    grown(made, 2)
    adds = list(made.adds.values())
    parts = "{version}.checkpoint.000000000%d.0000000002.parquet"
    checkpoint(made, 2, parts % 1, adds[:1], PROTOCOL, metadata())
    assert ids(lake, made) == [0, 1]
    second = checkpoint(made, 2, parts % 2, adds[1:])
    (made.log / f"{0:020d}.json").unlink()
    assert ids(lake, made) == [0, 1]
    second.unlink()
    with pytest.raises(CorruptTableError) as failure:
        ids(lake, made)
    assert failure.value.location == str(second)


def test_sidecars_are_found_by_name_and_never_outside_of_the_log(lake, made):
    grown(made, 2)
    checkpoint(made, 2, "_sidecars/s.parquet", made.adds.values())
    top = "{version}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    sidecar = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1}}
    checkpoint(made, 2, top, [], PROTOCOL, metadata(), sidecar)
    (made.log / f"{0:020d}.json").unlink()
    assert ids(lake, made) == [0, 1]
    (made.log / "_sidecars" / "s.parquet").unlink()
    made.commit()
    with pytest.raises(CorruptTableError, match=r"s\.parquet.*missing"):
        ids(lake, made)
    outside = {"sidecar": {"path": "../../../x.parquet", "sizeInBytes": 1}}
    checkpoint(made, 3, top, [], PROTOCOL, metadata(), outside)
    with pytest.raises(CorruptTableError, match="outside of the log"):
        ids(lake, made)


def test_compacted_commits_stand_for_those_they_cover(lake, made):
    grown(made, 3)
    path = made.log / f"{1:020d}.{3:020d}.compacted.json"
    only = {"add": made.adds["f1.parquet"]}
    made.write(path.name, only, made.remove("f0.parquet"))
    assert ids(lake, made) == [1]
    assert ids(lake, made, snapshot_id=2) == [0, 1]
    assert [one.operation for one in lake.table(made.name).snapshots()] == [
        "replace",
        *["append"] * 3,
    ]
    assert [
        one.is_compacted for one in list_log(str(made.folder), Storage()).segment().commits
    ] == [
        False,
        True,
    ]


def test_a_missing_commit_is_named(lake, made):
    grown(made, 3)
    missing = made.log / f"{2:020d}.json"
    missing.unlink()
    with pytest.raises(CorruptTableError) as failure:
        lake.table(made.name)
    assert failure.value.location == str(missing)


@pytest.mark.parametrize(
    "text",
    [
        '{"add": {"path": "x',
        "[1]",
        '{"add": {}}',
        '{"add": {"path": 5}}',
        '{"add": {"path": null}}',
        "[" * 100_000,
        '{"add": {"path": "x", "size": "many"}}',
        '{"add": 7}',
        "\xff",
    ],
)
def test_a_damaged_commit_is_named(lake, made, text):
    path = made.log / f"{1:020d}.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CorruptTableError) as failure:
        ids(lake, made)
    assert failure.value.location == str(path)


def test_a_damaged_checkpoint_is_named(lake, made):
    path = made.log / f"{0:020d}.checkpoint.parquet"
    path.write_bytes(b"PAR1 no")
    (made.log / f"{0:020d}.json").unlink()
    with pytest.raises(CorruptTableError) as failure:
        lake.table(made.name)
    assert failure.value.location == str(path)


def test_a_checksum_that_differs_from_the_log_is_an_error_and_a_damaged_one_is_none(lake, made):
    grown(made, 2)
    path = made.log / f"{2:020d}.crc"
    size = sum(one["size"] for one in made.adds.values())
    for text in ("nope", "[]", json.dumps({"numFiles": 2, "tableSizeBytes": size})):
        path.write_text(text)
        assert ids(lake, made) == [0, 1]
    path.write_text(json.dumps({"numFiles": 3, "tableSizeBytes": size}))
    made.commit()
    (made.log / f"{3:020d}.json").unlink()
    made.version = 2
    from rowlake.delta.state import forget_states

    forget_states()
    with pytest.raises(CorruptTableError, match="numFiles 2"):
        ids(lake, made)


def test_unknown_actions_and_fields_are_ignored(lake, made):
    add = made.add("f.parquet", people(1), somethingNew={"a": [1]})
    made.commit({"futureAction": {"x": 1}}, add, {"cdc": {"path": "c", "dataChange": False}})
    assert ids(lake, made) == [1]


def test_transactions_and_domains_are_kept(lake, made):
    made.commit({"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "b", "version": 7}})
    made.commit(
        {"txn": {"appId": "a", "version": 2}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    )
    made.commit({"domainMetadata": {"domain": "d", "configuration": "", "removed": True}})
    handle = lake.table(made.name).handle
    assert handle.state.actions.transactions == {"a": 2, "b": 7}
    assert handle.state.actions.domains == {}
    assert handle.state_at(2).actions.domains == {"d": "{}"}


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (features("deletionVectors", "timeTravelOfTheFuture"), "feature timeTravelOfTheFuture"),
        (features("catalogManaged"), "catalogManaged: its commits are the catalog's"),
        ({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}, "reader version 4"),
    ],
)
def test_what_a_reader_must_know_and_does_not_is_named(lake, tmp_path, protocol, message):
    made = HandMade(tmp_path / "t").create(protocol)
    with pytest.raises(UnsupportedFeatureError, match=message):
        lake.table(made.name)


def test_features_of_writers_do_not_concern_readers(lake, tmp_path):
    protocol = features("vacuumProtocolCheck", "v2Checkpoint")
    protocol["protocol"]["writerFeatures"] += ["identityColumns", "somethingForWriters"]
    made = HandMade(tmp_path / "t").create(protocol)
    assert ids(lake, made) == []


def test_a_log_without_metadata_or_protocol_is_damaged(lake, tmp_path):
    made = HandMade(tmp_path / "t")
    made.commit(metadata())
    with pytest.raises(CorruptTableError, match="no protocol action"):
        lake.table(made.name)
    other = HandMade(tmp_path / "u")
    other.commit(PROTOCOL)
    with pytest.raises(CorruptTableError, match="no metaData action"):
        lake.table(other.name)


def test_a_folder_without_a_log_is_no_table(lake, tmp_path):
    with pytest.raises(TableNotFoundError, match="no Delta table"):
        lake.table(f"delta.`{tmp_path}`")
    assert not lake.exists(f"delta.`{tmp_path}`")


def test_names_are_percent_decoded_once(lake, made):
    for path, file in {
        "a%20b%2525.parquet": "a b%25.parquet",
        "%C3%A9%3D1.parquet": "é=1.parquet",
        "p=x%253Ay/f.parquet": "p=x%3Ay/f.parquet",
    }.items():
        made.commit(made.add(path, people(made.version + 1), file=file))
    assert ids(lake, made) == [1, 2, 3]
    made.commit(made.remove("%C3%A9=1.parquet"))
    assert ids(lake, made) == [1, 3]


def test_absolute_paths_are_one_file_however_they_are_spelled(lake, made, tmp_path):
    elsewhere = HandMade(tmp_path / "else where")
    rows = elsewhere.add("f.parquet", people(5))["add"]
    place = str(tmp_path / "else%20where" / "f.parquet")
    made.commit({"add": {**rows, "path": f"file://{place}"}})
    assert ids(lake, made) == [5]
    made.commit(made.remove(f"file:{place}"))
    assert ids(lake, made) == []
    made.commit({"add": {**rows, "path": place}})
    assert ids(lake, made) == [5]


def test_the_last_action_of_a_file_wins(lake, made):
    add = made.add("f.parquet", people(1))
    made.commit(add)
    made.commit(made.remove("f.parquet"))
    made.commit(add)
    made.commit(add)
    assert lake.table(made.name).handle.state.files.num_rows == 1
    assert lake.table(made.name).handle.state.files.schema == FILES


def test_a_newer_version_is_seen_by_the_same_table(lake, made):
    table = lake.table(made.name)
    assert table.arrow().num_rows == 0
    grown(made, 1)
    assert table.arrow().num_rows == 1


def test_tables_of_absurd_schemas_are_refused(lake, tmp_path):
    deep = "long"
    for _ in range(200):
        deep = {"type": "array", "elementType": deep, "containsNull": True}
    for number, fields in enumerate(
        ([column("a", deep)], [column("a", {"type": "struct"})], [column("a", "decimal(99,2)")])
    ):
        made = HandMade(tmp_path / str(number)).create(metadata(fields))
        with pytest.raises(CorruptTableError, match="schema is damaged"):
            ids(lake, made)
    made = HandMade(tmp_path / "unknown").create(metadata([column("a", "geometry(OGC:CRS84)")]))
    with pytest.raises(UnsupportedFeatureError, match="unsupported column type geometry"):
        ids(lake, made)


def many_lines(made, count):
    """Return a commit of so many files that it is parsed as columns, with some odd lines."""
    vector = {"storageType": "i", "pathOrInlineDv": "abcde", "sizeInBytes": 4, "cardinality": 1}
    adds = [
        {
            "path": f"p=a%20{number % 3}/f{number}.parquet",
            "partitionValues": {"p": [None, "}", 'q"'][number % 3], "é": "x"},
            "size": number,
            "dataChange": number % 2 == 0,
            "stats": json.dumps({"numRecords": number, "minValues": {"id": "{"}}),
            **({"deletionVector": vector} if number % 5 == 0 else {}),
            **({"baseRowId": 3, "defaultRowCommitVersion": 1} if number % 7 == 0 else {}),
            "tags": {"x": "y"},
        }
        for number in range(count)
    ]
    return [
        {"commitInfo": {"operation": "WRITE"}},
        *({"add": one} for one in adds),
        made.remove("gone.parquet", deletionVector=vector),
        {"txn": {"appId": "a", "version": 5}},
    ]


def test_commits_of_many_files_are_parsed_like_those_of_few(made, monkeypatch):
    lines = many_lines(made, 60)
    content = "".join(json.dumps(one) + "\n" for one in lines).encode()
    few = parse_actions(content, "here", "/table", 9)
    monkeypatch.setattr("rowlake.delta.many_files.ENOUGH_BYTES", 10)
    many = parse_actions(content, "here", "/table", 9)
    assert many[0].to_pylist() == few[0].to_pylist()
    assert many[1] == few[1]
    assert few[0].num_rows == 61 and many[1].transactions == {"a": 5}


@pytest.mark.parametrize(
    "odd",
    [
        '{"add": {"path": "f", "size": 1.5}}',
        '{"add": {"size": 1}}',
        '{"add":{"path":"f","partitionValues":{"a":{"b":1}}}}',
        '{"add":{"path":"f"},"remove":{"path":"g"}}',
        '{"add":{"path":"f"}',
    ],
)
def test_odd_lines_among_many_files_are_judged_one_by_one(monkeypatch, odd):
    content = (json.dumps({"add": {"path": "x"}}).replace(" ", "") + "\n").encode() * 3
    content += odd.encode()

    def outcome():
        try:
            return parse_actions(content, "here", "/table", 9)[0].to_pylist()
        except CorruptTableError as error:
            return str(error)

    few = outcome()
    monkeypatch.setattr("rowlake.delta.many_files.ENOUGH_BYTES", 10)
    assert outcome() == few
