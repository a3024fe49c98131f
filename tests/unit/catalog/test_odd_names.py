"""Names that lead elsewhere, hide, or are absurd: used everywhere, or refused when created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError
from tests.lakes import make_lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowlake.lake import Lake

COLUMNS = pa.schema([("a", pa.int64())])
ODD = [
    *("a\nb", "a\tb", "\x1b[31mx", "\u202ex", "; DROP TABLE t", "$(rm -rf x)", "`x`", "%2e", "é"),
    *("version-hint", "metadata", "[red]x[-red]", "a\\b", "x" * 200),
]
REFUSED = ["a\0b", "..", ".", "a/b", "../x", "x" * 256, "é" * 128, "x" * 10_000, "\ud800"]


@pytest.fixture(params=["embedded", "filesystem"])
def lake(request, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "embedded":
        with make_lake(tmp_path / "lake") as made:
            yield made
    else:
        with connect(warehouse=str(tmp_path / "lake"), catalog="filesystem") as made:
            yield made


def _use(lake: Lake, name: tuple[str, ...]) -> None:
    table = lake.create_table(name, COLUMNS)
    table.append(pa.table({"a": [1]}))
    assert table.name in lake.tables()
    assert lake.table(table.name).files().num_rows == 1
    lake.drop_table(name)
    assert lake.tables() == []


def test_odd_names_of_tables_are_used_everywhere(lake: Lake) -> None:
    lake.create_namespace("ns")
    for name in ODD:
        _use(lake, ("ns", name))


def test_odd_names_of_namespaces_are_used_everywhere(lake: Lake) -> None:
    for name in ODD:
        lake.create_namespace((name,))
        _use(lake, (name, "t"))
        lake.drop_namespace((name,))


def test_odd_names_of_columns_are_used_everywhere(lake: Lake) -> None:
    lake.create_namespace("ns")
    for number, name in enumerate([*ODD, "a/b", "..", "x" * 10_000]):
        table = lake.create_table(("ns", f"t{number}"), pa.schema([(name, pa.int64())]))
        table.append(pa.table({name: [1]}))
        assert lake.table(table.name).files().num_rows == 1


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name[:12]) + str(len(name)))
def test_names_that_no_folder_can_have_are_refused_when_created(lake: Lake, name: str) -> None:
    lake.create_namespace("ns")
    with pytest.raises(InvalidStatementError) as raised:
        lake.create_table(("ns", name), COLUMNS)
    assert len(str(raised.value)) < 500
    with pytest.raises(InvalidStatementError):
        lake.create_namespace((name,))
    assert lake.namespaces() == ["default", "ns"]
    assert lake.tables() == []


@pytest.mark.parametrize("name", ["_x", ".x"])
def test_hidden_names_are_refused_where_they_would_not_be_listed(tmp_path: Path, name: str) -> None:
    with connect(warehouse=str(tmp_path), catalog="filesystem") as lake:
        lake.create_namespace("ns")
        _use(lake, ("ns", name))
        with pytest.raises(InvalidStatementError, match="hidden"):
            lake.create_namespace((name,))
    with make_lake(tmp_path / "embedded") as lake:
        lake.create_namespace("ns")
        _use(lake, ("ns", name))


@pytest.mark.parametrize("name", [" ", " x", "x\n"])
def test_white_space_around_a_namespace_is_refused(tmp_path: Path, name: str) -> None:
    with (
        make_lake(tmp_path / "embedded") as lake,
        pytest.raises(InvalidStatementError, match="white space"),
    ):
        lake.create_namespace((name,))
