"""Columns that a table does not have, told with near names."""

from __future__ import annotations

import pytest

from rowlake.conditions.column_lookup import no_such_column
from rowlake.errors import InvalidStatementError
from rowlake.query.refusals import told_plainly
from tests.lakes import SALES, make_lake, sales


class AnalysisException(Exception):
    """What Spark raises; rowlake tells it by its name."""


def spark_says(name: str, near: str = "`_pos`, `_file`") -> AnalysisException:
    return AnalysisException(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
        f"{name} cannot be resolved. Did you mean one of the following? [{near}]. "
        "SQLSTATE: 42703; line 1 pos 0"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("`amont`", "There is no column amont. Did you mean amount?"),
        ("`AMOUNTS`", "There is no column AMOUNTS. Did you mean amount?"),
        ("`stor`.`x`", "There is no column stor.x. Did you mean store?"),
        ("`a``b`", "There is no column a`b. There are: id, store, sold_on and 2 more."),
    ],
)
def test_spark_s_unknown_columns_are_told_with_those_of_the_table(name: str, text: str) -> None:
    with (
        pytest.raises(InvalidStatementError) as raised,
        told_plainly(None, "amont > 1", moved=True, columns=SALES.names),
    ):
        raise spark_says(name)
    assert str(raised.value) == text
    assert raised.value.statement == "amont > 1"


@pytest.mark.parametrize(
    ("near", "end"),
    [
        (
            "`s`.`amount`, `_pos`",
            "cannot be resolved. Did you mean one of the following? [`s`.`amount`].",
        ),
        ("`_pos`, `_file`", "cannot be resolved."),
    ],
)
def test_without_columns_spark_s_own_suggestion_stays_but_for_metadata_columns(
    near: str, end: str
) -> None:
    with (
        pytest.raises(InvalidStatementError) as raised,
        told_plainly(None, "amont > 1", moved=True),
    ):
        raise spark_says("`amont`", near)
    assert str(raised.value).splitlines()[0].endswith(end)


def test_no_near_name_shows_some() -> None:
    found = no_such_column(("zzz",), ["a", "b"], "zzz = 1")
    assert str(found) == "There is no column zzz. There are: a, b."


@pytest.mark.parametrize("where", ["amont > 5", "store = 1 AND (amont = 2 OR id = 3)"])
def test_overwriting_by_an_unknown_column_names_near_ones(tmp_path, where: str) -> None:
    with make_lake(tmp_path) as lake:
        lake.create_namespace("s")
        table = lake.create_table("s.t", SALES)
        table.append(sales(3))
        with pytest.raises(InvalidStatementError, match=r"no column amont. Did you mean amount\?"):
            table.overwrite(sales(1), where=where)
        with pytest.raises(InvalidStatementError, match="must compare columns with literals"):
            table.overwrite(sales(1), where="id = store")
        assert table.arrow().num_rows == 3
