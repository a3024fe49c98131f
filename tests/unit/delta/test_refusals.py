"""Verbs that write: refused with a reason, before anything is written."""

from __future__ import annotations

import pytest

from rowlake import connect
from rowlake.errors import UnsupportedFeatureError
from tests.delta_logs import HandMade, column, metadata, people

REFUSED = {
    "create_branch": lambda t: t.create_branch("b"),
    "create_tag": lambda t: t.create_tag("b"),
    "add_files": lambda t: t.add_files([t.location + "/f.parquet"]),
    "orphans": lambda t: t.remove_orphan_files(dry_run=False),
    "drop": lambda t: t.lake.drop_table(t.identifier),
    "drop with files": lambda t: t.lake.drop_table(t.identifier, purge=True),
    "rename": lambda t: t.lake.rename_table(t.identifier, "ns.t"),
    "to_pyiceberg": lambda t: t.to_pyiceberg(),
    "equality deletes": lambda t: t.delete("id = 1", deletes="equality"),
    "vectors that no property allows": lambda t: t.delete("id = 1", deletes="vector"),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_what_delta_lacks_is_refused_before_anything_is_written(tmp_path, verb):
    with connect(str(tmp_path / "lake")) as lake:
        made = HandMade(tmp_path / "t").create()
        made.commit(made.add("f.parquet", people(1)))
        before = sorted(made.folder.rglob("*"))
        with pytest.raises(UnsupportedFeatureError):
            REFUSED[verb](lake.table(made.name))
        assert sorted(made.folder.rglob("*")) == before


WRITER_FEATURES = ("collations", "materializePartitionColumns", "someFeatureOf2030")
WRITES = {
    "append": lambda t: t.append(people(9)),
    "overwrite": lambda t: t.overwrite(people(9)),
    "truncate": lambda t: t.truncate(),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"name": "'x'"}),
    "upsert": lambda t: t.upsert(people(1), keys=["id"]),
    "merge": lambda t: t.merge(people(1), on=["id"]).when_matched_delete().execute(),
    "rewrite": lambda t: t.rewrite_data_files(),
    "set_properties": lambda t: t.set_properties({"a": "b"}),
    "replace": lambda t: t.lake.create_table(t.identifier, people(1).schema, replace=True),
}


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("feature", WRITER_FEATURES)
def test_tables_with_unknown_features_of_writers_are_never_written(tmp_path, verb, feature):
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    with connect(str(tmp_path / "lake")) as lake:
        made = HandMade(tmp_path / "t").create({"protocol": protocol})
        made.commit(made.add("f.parquet", people(1)))
        before = sorted(made.folder.rglob("*"))
        with pytest.raises(UnsupportedFeatureError, match=feature):
            WRITES[verb](lake.table(made.name))
        assert sorted(made.folder.rglob("*")) == before


def test_fields_of_structs_that_a_table_would_make_are_refused(tmp_path):
    for number, key in enumerate(
        ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")
    ):
        nested = {"type": "struct", "fields": [column("name", "string", **{key: "x"})]}
        with connect(str(tmp_path / "lake")) as lake:
            made = HandMade(tmp_path / f"t{number}").create(metadata([column("s", nested)]))
            with pytest.raises(UnsupportedFeatureError, match="name"):
                lake.table(made.name).append([{"s": {"name": "a"}}])


def test_branches_and_tags_are_refused_by_name(tmp_path):
    with connect(str(tmp_path / "lake")) as lake:
        table = lake.table(HandMade(tmp_path / "t").create().name)
        assert table.arrow(ref="main").num_rows == 0
        with pytest.raises(UnsupportedFeatureError, match="no branch or tag b"):
            table.arrow(ref="b")


def test_iceberg_tables_have_no_path(tmp_path):
    with (
        connect(str(tmp_path / "lake")) as lake,
        pytest.raises(UnsupportedFeatureError, match="register_table"),
    ):
        lake.table(f"iceberg.`{tmp_path}`")
