"""Tables of the file-system catalog are where they say they are, or they are only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.types import StringType

from rowlake import connect
from rowlake.catalog import tables
from rowlake.errors import InvalidStatementError, RowlakeError, UnsupportedFeatureError
from tests.hostile_tables import contents, edit, make_victim
from tests.lakes import SALES, sales

if TYPE_CHECKING:
    from rowlake.lake import Lake


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_victim(tmp_path / "victim")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = connect(warehouse=str(tmp_path / "wh"), catalog="filesystem")
    found.create_namespace("ns")
    table = found.create_table("ns.t", SALES)
    table.append(sales(3))
    return found


def says(lake: Lake, location: str) -> Lake:
    newest = str(lake.table("ns.t").handle.metadata_location)
    edit(newest, lambda raw: raw.update({"location": location}))
    return connect(warehouse=lake.catalog.properties["warehouse"], catalog="filesystem")


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.append(sales(1)),
        lambda table: table.delete("id = 1"),
        lambda table: table.set_properties({"a": "b"}),
        lambda table: table.evolve().update_schema().add_column("x", StringType()).commit(),
        lambda table: table.expire_snapshots(retain_last=1),
        lambda table: table.remove_orphan_files(dry_run=False),
        lambda table: table.vacuum(dry_run=False),
        lambda table: table.compute_table_stats(),
        lambda table: table.lake.drop_table("ns.t", purge=True),
    ],
    ids=["append", "delete", "set", "evolve", "expire", "orphans", "vacuum", "stats", "purge"],
)
def test_a_table_that_says_that_it_is_elsewhere_is_only_read(
    lake: Lake, victim: Path, act: Any
) -> None:
    before = contents(victim)
    again = says(lake, str(victim))
    table = again.table("ns.t")
    assert table.arrow().num_rows == 3
    home = Path(lake.catalog.properties["warehouse"]) / "ns" / "t"
    there = contents(home)
    with pytest.raises(RowlakeError) as caught:
        act(table)
    assert isinstance(caught.value, UnsupportedFeatureError)
    assert str(home) in str(caught.value)
    assert str(victim) in str(caught.value)
    assert contents(victim) == before
    assert contents(home) == there


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}/", "{}/../t", "{link}"])
def test_other_spellings_of_its_own_folder_are_fine(lake: Lake, tmp_path: Path, form: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "wh" / "ns" / "t")
    home = f"{tmp_path}/wh/ns/t"
    again = says(lake, form.format(home, link=tmp_path / "link"))
    again.table("ns.t").append(sales(1))
    assert again.table("ns.t").arrow().num_rows == 4


def test_it_can_be_dropped_which_takes_its_own_folder_only(lake: Lake, victim: Path) -> None:
    before = contents(victim)
    again = says(lake, str(victim))
    again.drop_table("ns.t")
    assert not (Path(lake.catalog.properties["warehouse"]) / "ns" / "t").exists()
    assert contents(victim) == before


def test_dropping_a_table_follows_no_link(lake: Lake, victim: Path) -> None:
    before = contents(victim)
    folder = Path(lake.catalog.properties["warehouse"]) / "ns"
    (folder / "t" / "data" / "link").symlink_to(victim)
    (folder / "alias").symlink_to(folder / "t")
    kept = contents(folder / "t")
    lake.drop_table("ns.alias")
    assert contents(folder / "t") == kept
    assert not (folder / "alias").is_symlink()
    lake.drop_table("ns.t")
    assert not (folder / "t").exists()
    assert contents(victim) == before


def test_dropping_a_namespace_deletes_nothing_that_is_in_it(lake: Lake, tmp_path: Path) -> None:
    lake.create_namespace("empty")
    (tmp_path / "wh" / "empty" / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidStatementError, match="not empty"):
        lake.drop_namespace("empty")
    assert (tmp_path / "wh" / "empty" / "gone").is_symlink()
    (tmp_path / "wh" / "empty" / "gone").unlink()
    lake.drop_namespace("empty")
    assert not (tmp_path / "wh" / "empty").exists()


def test_tables_with_hidden_names_are_listed(lake: Lake) -> None:
    for name in ("_x", ".y"):
        lake.create_table(("ns", name), SALES).append(sales(1))
    found = tables.list_tables(lake.catalog, "ns")
    assert found == [("ns", ".y"), ("ns", "_x"), ("ns", "t")]
    assert lake.table(("ns", "_x")).arrow().num_rows == 1
