"""Maintenance commands: health, optimize, and each operation by itself.

Commands that remove files for good (`orphans`, `vacuum`, `erase`) only show what they would do,
unless `--delete` is given; the others have `--dry-run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlake.cli import options as o
from rowlake.cli.examples import EXAMPLES
from rowlake.cli.output import Output, show_findings, show_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.model.report import Report
    from rowlake.table import Table

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; nothing is written.")
]
Delete = Annotated[
    bool, typer.Option("--delete", help="Delete the files; without it they are only shown.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", help="Only files that may hold rows matching this condition."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Iceberg's options; can be repeated."),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="List all files, not only the first few.")
]
OnBranch = Annotated[str, typer.Option("--branch", help="Work on this branch.")]
MaxBytes = Annotated[
    str | None, typer.Option("--max-bytes", help="Rewrite at most this much: 500000, 10GB.")
]
MaxSeconds = Annotated[
    float | None, typer.Option("--max-seconds", help="Start nothing new after this long.")
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", help="A time (2024-05-01T12:30:00+00:00), or an age: 7d, 36h."),
]

AlsoBelow = Annotated[
    list[str] | None,
    typer.Option(
        "--also-below",
        metavar="FOLDER",
        help="Also delete files below this folder, outside the table's own; can be repeated.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (
        health,
        optimize,
        rewrite_data_files,
        rewrite_position_deletes,
        convert_equality_deletes,
        rewrite_manifests,
        expire,
        orphans,
        vacuum,
        erase,
        stats,
        index,
        rollback,
    ):
        app.command(epilog=EXAMPLES.get(command.__name__))(command)


def health(
    table: o.TableName,
    branch: OnBranch = "main",
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Also list storage, to count orphan files.")
    ] = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Show a table's health, and what to run to improve it."""
    from rowlake.cli.views import table_of

    with o.open_lake(warehouse, catalog, table=table) as lake:
        lake.engine.progress = not quiet
        show_findings(table_of(lake, table).health(branch=branch, orphans=orphans), output)


def optimize(
    table: o.TableName,
    dry_run: DryRun = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat until Ctrl-C; one line per round.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between rounds of --watch.")
    ] = 60.0,
    max_bytes: MaxBytes = None,
    max_seconds: MaxSeconds = None,
    where: Where = None,
    branch: OnBranch = "main",
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Run the maintenance that pays off, within a budget."""
    from rowlake.cli.amounts import size_in_bytes

    if watch and dry_run:
        raise typer.BadParameter("give either --watch or --dry-run")
    most = None if max_bytes is None else size_in_bytes("--max-bytes", max_bytes)
    with o.open_lake(warehouse, catalog, table=table) as lake:
        lake.engine.progress = not quiet
        found = lake.table(table)

        def run() -> Report:
            return found.optimize(dry_run, most, max_seconds, where, branch=branch)

        if not watch:
            show_report(run(), output)
            return
        from rowlake.cli.watch import keep_watch

        keep_watch(run, interval, output)


def rewrite_data_files(
    table: o.TableName,
    strategy: Annotated[
        str, typer.Option("--strategy", help="binpack, sort, zorder or cluster.")
    ] = "binpack",
    order: Annotated[
        str | None, typer.Option("--order", help="'a DESC, b'; the table's order by default.")
    ] = None,
    where: Where = None,
    options: Options = None,
    branch: OnBranch = "main",
    dry_run: DryRun = False,
    max_bytes: MaxBytes = None,
    max_seconds: MaxSeconds = None,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compact data files, and fold deletes into them."""
    from rowlake.cli.amounts import size_in_bytes

    given = _pairs(options)
    most = None if max_bytes is None else size_in_bytes("--max-bytes", max_bytes)

    def run(found: Table) -> Report:
        return found.rewrite_data_files(
            strategy,
            order,
            where,
            given,
            branch=branch,
            dry_run=dry_run,
            max_bytes=most,
            max_seconds=max_seconds,
        )

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def rewrite_position_deletes(
    table: o.TableName,
    where: Where = None,
    options: Options = None,
    branch: OnBranch = "main",
    dry_run: DryRun = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Merge position delete files, or convert them to vectors; reads no data file."""
    given = _pairs(options)

    def run(found: Table) -> Report:
        return found.rewrite_position_delete_files(given, where, branch=branch, dry_run=dry_run)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def convert_equality_deletes(
    table: o.TableName,
    where: Where = None,
    options: Options = None,
    branch: OnBranch = "main",
    dry_run: DryRun = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Convert equality deletes to position deletes or vectors."""
    given = _pairs(options)

    def run(found: Table) -> Report:
        return found.convert_equality_deletes(where, given, branch=branch, dry_run=dry_run)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def rewrite_manifests(
    table: o.TableName,
    spec_id: Annotated[
        int | None, typer.Option("--spec-id", help="Partition spec; the current one by default.")
    ] = None,
    branch: OnBranch = "main",
    dry_run: DryRun = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Rewrite manifests: fewer, and clustered by partition."""

    def run(found: Table) -> Report:
        return found.rewrite_manifests(spec_id=spec_id, branch=branch, dry_run=dry_run)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def expire(
    table: o.TableName,
    older_than: OlderThan = None,
    retain_last: Annotated[
        int | None, typer.Option("--retain-last", help="Keep at least this many per branch.")
    ] = None,
    snapshot_ids: Annotated[
        list[int] | None,
        typer.Option("--snapshot-id", help="Expire this snapshot; can be repeated."),
    ] = None,
    clean_expired_metadata: Annotated[
        bool,
        typer.Option("--clean-expired-metadata", help="Also remove unused schemas and specs."),
    ] = False,
    also_below: AlsoBelow = None,
    dry_run: DryRun = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Expire old snapshots, and delete the files that no other snapshot needs."""
    moment = _moment(older_than)

    def run(found: Table) -> Report:
        return found.expire_snapshots(
            moment,
            retain_last,
            snapshot_ids=snapshot_ids,
            clean_expired_metadata=clean_expired_metadata,
            also_below=also_below,
            dry_run=dry_run,
        )

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def orphans(
    table: o.TableName,
    older_than: OlderThan = None,
    location: Annotated[
        str | None, typer.Option("--location", help="Folder to search; the table's by default.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Include files of the last day, if --older-than does.")
    ] = False,
    also_below: AlsoBelow = None,
    delete: Delete = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find files that no snapshot refers to, and with --delete remove them."""
    moment = _moment(older_than)

    def run(found: Table) -> Report:
        return found.remove_orphan_files(
            moment, location, force=force, dry_run=not delete, also_below=also_below
        )

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def vacuum(
    table: o.TableName,
    retain_hours: Annotated[
        float | None, typer.Option("--retain-hours", help="Retention; a week by default.")
    ] = None,
    also_below: AlsoBelow = None,
    delete: Delete = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find snapshots and orphan files older than a retention, and with --delete remove them."""

    def run(found: Table) -> Report:
        return found.vacuum(retain_hours, dry_run=not delete, also_below=also_below)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def erase(
    table: o.TableName,
    where: Annotated[
        str, typer.Option("--where", help="Rows to erase: columns compared with literals.")
    ],
    drop_tags: Annotated[
        bool, typer.Option("--drop-tags", help="Drop tags whose snapshots hold such rows.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Erase; without it, only show what was found.")
    ] = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find rows in the table and in its history, and with --delete remove them for good."""

    def run(found: Table) -> Report:
        return found.erase(where=where, drop_tags=drop_tags, dry_run=not delete)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def stats(
    table: o.TableName,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Columns; all supported ones by default."),
    ] = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Count partitions instead of distinct values.")
    ] = False,
    dry_run: DryRun = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a statistics file: distinct values per column, or counts per partition."""
    if partitions and columns is not None:
        raise typer.BadParameter("give either --columns or --partitions")
    names = None if columns is None else [name.strip() for name in columns.split(",")]

    def run(found: Table) -> Report:
        if partitions:
            return found.compute_partition_stats(dry_run=dry_run)
        return found.compute_table_stats(columns=names, dry_run=dry_run)

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def index(
    table: o.TableName,
    columns: Annotated[
        list[str] | None, typer.Argument(help="Key columns; without any, files without an index.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the index and its files.")] = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Index a table by key, so that changes and look-ups by key read only what they touch."""
    if drop and columns:
        raise typer.BadParameter("give either columns or --drop")
    from rowlake.model.key_index import key_names

    def run(found: Table) -> Report:
        if drop:
            return found.drop_index()
        return found.create_index(columns or key_names(found.properties))

    _run(table, run, warehouse, catalog, output, quiet, verbose)


def rollback(
    table: o.TableName,
    snapshot_id: Annotated[
        int | None, typer.Option("--snapshot-id", help="Snapshot to roll back to.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Roll back to the state at this time.")
    ] = None,
    branch: OnBranch = "main",
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
) -> None:
    """Move a branch back to an earlier snapshot; no file is deleted."""
    from rowlake.cli.views import rolled_back

    if (snapshot_id is None) == (as_of is None):
        raise typer.BadParameter("give either --snapshot-id or --as-of")
    with o.open_lake(warehouse, catalog, table=table) as lake:
        show_report(rolled_back(lake.table(table), snapshot_id, as_of, branch), output)


def _run(
    table: str,
    run: Callable[[Table], Report],
    warehouse: str | None,
    catalog: str | None,
    output: Output,
    quiet: bool,
    verbose: bool,
) -> None:
    lake: Lake
    with o.open_lake(warehouse, catalog, table=table) as lake:
        lake.engine.progress = not quiet
        show_report(run(lake.table(table)), output, verbose=verbose)


def _pairs(texts: list[str] | None) -> dict[str, Any]:
    from rowlake.cli.amounts import pair

    return dict(pair("--option", text) for text in texts or ())


def _moment(text: str | None) -> Any:
    from rowlake.cli.amounts import moment

    return None if text is None else moment(text)
