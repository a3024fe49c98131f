"""Makes a lake with a few empty tables. Arguments: warehouse, tables."""

from __future__ import annotations

import sys


def main(warehouse: str, tables: str) -> None:
    import rowlake

    with rowlake.connect(warehouse=warehouse) as lake:
        lake.sql("CREATE NAMESPACE IF NOT EXISTS bench")
        for number in range(int(tables)):
            lake.sql(f"CREATE TABLE bench.t{number} (id bigint, name string)")
    print("{}")


if __name__ == "__main__":
    main(*sys.argv[1:])
