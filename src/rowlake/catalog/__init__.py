"""Load, create and swap tables in any PyIceberg catalog, or in one of rowlake's own two.

The embedded catalog (the default) is a SQLite file in the warehouse; look-ups are single SELECTs,
and SQLAlchemy is loaded with the first change. The file-system catalog needs no server and shares
its tables with the HadoopCatalog of Iceberg Java.

    open.open_catalog(warehouse, catalog)              what a user gave to `connect` -> catalog
    tables.load_table(catalog, name) -> TableHandle    also create, drop, rename, list
    commit.commit_updates(handle, ...) -> outcome      `Landed`, `Conflict` or `Unknown`
    many                                               several tables, all or nothing

`backend` chooses how a kind of catalog does this. `metadata_checks` checks metadata when it is
read and before it is written; `ownership` decides which files may be deleted. Errors are
rowlake's.

Importing this room patches PyIceberg once, in `rowlake.iceberg._compat`.
"""

from rowlake.iceberg import _compat

_compat.install()
