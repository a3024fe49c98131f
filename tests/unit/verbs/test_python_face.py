"""What Python users type first: values, tables made of rows, the example of `help(rowlake)`."""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import subprocess
import sys
import textwrap
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import rowlake
from rowlake.dml.operations import qualifiers
from rowlake.dml.python_arguments import assigned
from rowlake.errors import InvalidStatementError
from rowlake.model.arguments import WriteArguments
from rowlake.verbs.write import WriteOptions
from tests.lakes import make_lake

OWNERS = qualifiers(("ns", "t"), None)


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


def texts(*given) -> dict[str, str]:
    return {one.column[0]: one.value for one in assigned(*given, OWNERS)}


def test_values_are_taken_as_they_are_and_set_is_sql():
    assert texts(None, {"status": "shipped"}) == {"status": "'shipped'"}
    assert texts({"price": "price * 2"}, {"day": dt.date(2026, 1, 2), "gone": None}) == {
        "price": "price * 2",
        "day": "DATE'2026-01-02'",
        "gone": "NULL",
    }


@pytest.mark.parametrize("given", [(None, None), (None, {}), ({"a": "1"}, {"A": 1, "a": 2})])
def test_an_update_without_values_or_with_two_of_one_column_is_refused(given):
    with pytest.raises(InvalidStatementError):
        texts(*given)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "amount": Decimal("9.90")}],
        pa.table({"id": [1], "amount": [Decimal("9.90")]}),
        pd.DataFrame({"id": [1], "amount": [Decimal("9.90")]}),
        iter(()),
    ],
    ids=["dicts", "arrow", "pandas", "nothing"],
)
def test_a_table_is_made_of_rows_alone(lake, rows):
    if not hasattr(rows, "__len__"):
        with pytest.raises(InvalidStatementError):
            lake.create_table_as("shop.t", rows)
        return
    assert lake.create_table_as("shop.t", rows).rows_inserted == 1
    assert lake.table("shop.t").arrow().to_pylist() == [{"id": 1, "amount": Decimal("9.90")}]


def test_a_table_made_of_rows_takes_a_layout_in_words(lake):
    lake.create_table_as("shop.t", [{"id": 1, "v": "a"}], partition_by="v", comment="made")
    table = lake.table("shop.t")
    assert [field.name for field in table.spec.fields] == ["v"]
    assert table.properties["comment"] == "made"


def test_every_option_of_a_write_is_typed():
    from dataclasses import fields

    assert set(WriteArguments.__annotations__) == {one.name for one in fields(WriteOptions)}
    for verb in ("append", "overwrite", "delete", "update", "upsert", "merge", "truncate"):
        options = inspect.signature(getattr(rowlake.Table, verb)).parameters["options"]
        assert options.annotation == "Unpack[WriteArguments]"


def test_the_example_of_the_module_runs(tmp_path):
    text = ast.get_docstring(ast.parse(inspect.getsource(rowlake)), clean=False) or ""
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line.strip()]
    code = textwrap.dedent("\n".join(lines)).strip()
    compile(code, "help(rowlake)", "exec")
    # Spark's answer is checked elsewhere; here the rest of the example runs without a JVM.
    code = code.replace(
        'lake.sql("SELECT sum(amount) FROM shop.sales").show()', "print(lake.tables())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['shop.sales']"
