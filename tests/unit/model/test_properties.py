"""Table properties that are numbers, whatever somebody wrote into them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError
from rowlake.model.properties import MOST, whole_number
from rowlake.write.properties import parquet_options


@pytest.mark.parametrize("text", ["0", " 7 ", str(MOST)])
def test_whole_numbers_are_read(text):
    assert whole_number({"p": text}, "p", 3) == int(text)
    assert whole_number({}, "p", 3) == 3


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "1e3", "NaN", "\0", "9" * 5000, "9" * 30])
def test_what_is_no_number_of_iceberg_is_refused_with_its_name(text):
    with pytest.raises(InvalidStatementError, match=r"table property some\.name=") as caught:
        whole_number({"some.name": text}, "some.name", 3)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["compression-level", "page-size-bytes", "row-group-size-bytes"])
def test_numbers_that_no_writer_can_take_are_refused_before_anything_is_written(name):
    with pytest.raises(InvalidStatementError, match=name):
        parquet_options({f"write.parquet.{name}": "9" * 40})


@pytest.mark.parametrize("catalog", [None, "filesystem"])
def test_how_many_metadata_files_are_kept_must_be_a_number(tmp_path, catalog):
    with connect(str(tmp_path), catalog=catalog) as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", pa.schema([("id", pa.int64())]))
        for text in ("x", "1e9"):
            with pytest.raises(
                InvalidStatementError, match=r"previous-versions-max=.*whole number"
            ):
                table.set_properties({"write.metadata.previous-versions-max": text})
        assert not table.properties
