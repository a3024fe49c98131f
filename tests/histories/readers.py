"""Other libraries that read the table of a history.

Iceberg tables: PyIceberg, and Iceberg Java in Spark. Delta tables: delta-rs, DuckDB, and Delta on
Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.table import StaticTable

from tests.parts.delta_spark import read_by_spark
from tests.parts.rows import rows_of, sorted_rows
from tests.plain_values import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.histories.history import History

# What PyIceberg cannot read: equality deletes, Avro data files, and deletes in ORC.
FOR_PYICEBERG: dict[str, Any] = {"blind": False, "formats": ("parquet",)}


def check_pyiceberg(history: History) -> None:
    """Check that PyIceberg reads the rows of every branch.

    It reads a branch in the schema of its last snapshot, Java and rowlake in the table's: the
    columns that both have are compared.
    """
    theirs = StaticTable.from_metadata(history.table.handle.metadata_location)
    ours = {field.field_id: field.name for field in history.table.schema.fields}
    for branch in history.rows if history.table.snapshots() else ():
        scan = theirs.scan() if branch == "main" else theirs.scan().use_ref(branch)
        both = {field.name: ours.get(field.field_id) for field in scan.projection().fields}
        names = {name: own for name, own in both.items() if own is not None}
        _check(
            history,
            f"PyIceberg on {branch}",
            lambda scan=scan, names=names: scan.to_arrow().select(list(names)),
            history.table.arrow(list(names.values()), ref=branch),
        )


def check_java(history: History, sql: Callable[[str], Any]) -> bool:
    """Check that Iceberg Java reads the rows of every branch; its catalog `java` has the table.

    Java's reader of ORC takes a column of zeros of both signs for one repeated value (it compares
    them with `==`), so that there the sign of zeros is not compared. Columns with a default it
    refuses: then the answer is False.
    """
    is_orc = history.table.properties.get("write.format.default") == "orc"
    if is_orc and any(column.default is not None for column in history.columns):
        return False
    for branch in history.rows:
        text = f"SELECT * FROM java.{history.table.name}"
        if branch in history.table.handle.metadata.refs:  # as an empty `main` is not
            text += f" VERSION AS OF '{branch}'"
        ours = history.table.arrow(ref=branch)
        _check(history, f"Java on {branch}", lambda text=text: sql(text), ours, signs=not is_orc)
    return True


def check_delta_rs(history: History) -> bool:
    """Check that delta-rs reads the rows."""
    import deltalake

    def read() -> pa.Table:
        table = deltalake.DeltaTable(history.table.location)
        query = deltalake.QueryBuilder().register("t", table)
        return pa.table(query.execute("SELECT * FROM t").read_all())

    return _check_plain(history, "delta-rs", lambda: read().to_pylist())


def check_duckdb(history: History) -> bool:
    """Check that DuckDB reads the rows.

    It takes the partition values of mapped columns for null, and empty texts that are partition
    values, as the protocol has it: then the answer is False.
    """
    import duckdb
    import duckdb_extensions

    properties = history.table.properties
    is_mapped = properties.get("delta.columnMapping.mode", "none") != "none"
    partitions = [field.name for field in history.table.spec.fields]
    ours = history.table.arrow(partitions).columns if partitions else []
    if (is_mapped and partitions) or any("" in column.to_pylist() for column in ours):
        return False

    def read() -> pa.Table:
        duckdb_extensions.import_extension("delta")
        with duckdb.connect() as duck:
            duck.execute("LOAD delta")
            return duck.execute(f"FROM delta_scan('{history.table.location}')").to_arrow_table()

    return _check_plain(history, "DuckDB", lambda: read().to_pylist())


def check_delta_spark(history: History) -> bool:
    """Check that Delta on Spark reads the rows."""
    folder = history.table.location
    return _check_plain(history, "Delta on Spark", lambda: read_by_spark([folder])[0])


def _check_plain(history: History, who: str, read: Callable[[], list[dict[str, Any]]]) -> bool:
    """Compare rows as texts of plain values: NaN is the same as NaN there, -0.0 is not 0.0."""
    try:
        found = sorted(map(repr, in_order(read())))
    except Exception as error:
        raise history.divergence(f"{who} fails: {error}") from error
    wanted = sorted(map(repr, in_order(history.table.arrow().to_pylist())))
    if found != wanted:
        raise history.divergence(f"{who} reads\n  {found}\nnot\n  {wanted}")
    return True


def _check(
    history: History, who: str, read: Callable[[], Any], ours: pa.Table, *, signs: bool = True
) -> None:
    try:
        found = rows_of(read())
    except Exception as error:
        raise history.divergence(f"{who} fails: {error}") from error
    wanted = rows_of(ours)
    if not signs:
        found, wanted = _without_signs(found), _without_signs(wanted)
    if found != wanted:
        raise history.divergence(f"{who} reads\n  {found}\nnot\n  {wanted}")


def _without_signs(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows with zeros of one sign; only columns have them, not what is nested."""
    return sorted_rows(tuple("0.0" if one == "-0.0" else one for one in row) for row in rows)
