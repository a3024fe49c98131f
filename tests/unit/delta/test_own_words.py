"""Messages and statements about Delta tables speak of Delta, not of Iceberg's format versions."""

from __future__ import annotations

import pytest

from rowlake import connect
from rowlake.errors import UnsupportedFeatureError
from rowlake.sql.execute.show import create_text, table_properties
from rowlake.sql.parse.statement import parse

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"deletes": "equality"}, "Delta tables, which have no equality deletes"),
        ({"deletes": "position"}, "Delta tables, whose deleted rows are in deletion vectors"),
        ({"deletes": "vector"}, "set the table property delta.enableDeletionVectors"),
        ({"mode": "merge-on-read"}, "set the table property delta.enableDeletionVectors"),
    ],
    ids=str,
)
def test_deletes_that_the_table_cannot_hold(lake, options, told):
    table = lake.create_table("ns.t", "id BIGINT", format="delta")
    with pytest.raises(UnsupportedFeatureError, match=told) as raised:
        table.delete("id = 1", **options)
    assert "format version" not in str(raised.value)


def test_show_create_table_can_be_run_again(lake):
    table = lake.create_table("ns.t", "id BIGINT", format="delta", properties=VECTORS)
    facts = {
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        "delta.feature.deletionVectors": "supported",
    }
    assert facts.items() <= table_properties(table).items()
    text = create_text(table)
    assert "format-version" not in text
    made = lake.create_table("ns.u", "id BIGINT", format="delta", properties=parse(text).properties)
    assert table_properties(made).keys() == table_properties(table).keys()
