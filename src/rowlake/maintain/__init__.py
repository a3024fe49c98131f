"""Keep tables fast and small.

    compact      data files: fewer and larger, deletes folded in, rows sorted or Z-ordered
    deletes      delete files: merged, converted to vectors or positions, dangling ones removed
    cleanup      expired snapshots, orphan files, rows that must be erased
    autopilot    health, optimize, and the policy that runs it after writes
    iceberg      what only Iceberg tables have: manifests, statistics files, table paths, purging

All but the last work on tables of any format, through `model.format.Format`.

Every operation gives way to concurrent writers and never makes one fail. Each has a dry run that
lists exactly what the real run does. `options` reads Iceberg's option names; `guard` keeps these
operations out of transactions.
"""
