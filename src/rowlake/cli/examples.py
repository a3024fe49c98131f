"""Examples that `--help` shows below the options, one command line each."""

from __future__ import annotations

TEXTS = {
    "sql": [
        'rowlake sql "SELECT count(*) FROM shop.sales"',
        "rowlake sql -f changes.sql",
        'rowlake sql "SELECT * FROM shop.sales" -o csv > sales.csv',
    ],
    "shell": ["rowlake shell --warehouse ./lakehouse"],
    "tables": ["rowlake tables", "rowlake tables shop -o json"],
    "describe": ["rowlake describe shop.sales", "rowlake describe /data/a_delta_table"],
    "history": ["rowlake history shop.sales", "rowlake history shop.sales -o json"],
    "snapshots": ["rowlake snapshots shop.sales -o json"],
    "files": ["rowlake files shop.sales"],
    "demo": ["rowlake demo", "rowlake demo --warehouse ./demo --rows 100000"],
    "delete": ['rowlake delete shop.sales --where "store = 7" --explain'],
    "update": ['rowlake update shop.sales --set "amount = amount * 1.1" --where "store = 8"'],
    "merge": [
        "rowlake merge shop.sales --using new.parquet --keys id --when-matched update-all "
        "--when-not-matched insert-all"
    ],
    "upsert": ["rowlake upsert shop.sales new.csv --keys id"],
    "explain": ['rowlake explain "DELETE FROM shop.sales WHERE store = 7"'],
    "health": ["rowlake health shop.sales"],
    "optimize": [
        "rowlake optimize shop.sales --dry-run",
        "rowlake optimize shop.sales --watch --interval 60",
    ],
    "rewrite_data_files": [
        "rowlake rewrite-data-files shop.sales --dry-run --verbose",
        'rowlake rewrite-data-files shop.sales --strategy sort --order "sold_on, id"',
    ],
    "expire": ["rowlake expire shop.sales --older-than 7d --retain-last 10 --dry-run"],
    "orphans": ["rowlake orphans shop.sales", "rowlake orphans shop.sales --delete"],
    "rollback": ["rowlake rollback shop.sales --as-of 2026-05-01T12:00:00+00:00"],
    "ui": ["rowlake ui", "rowlake ui --warehouse ./lakehouse --port 8765 --no-browser"],
    "doctor": ["rowlake doctor", "rowlake doctor --warehouse s3://bucket/lake"],
}

EXAMPLES = {name: "Examples:  " + "  |  ".join(lines) for name, lines in TEXTS.items()}
