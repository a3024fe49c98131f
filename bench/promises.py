"""The promises of the project, by area: what a run must show."""

from __future__ import annotations

from dataclasses import replace

from bench.targets import Target

ICEBERG = ("iceberg-v3", "iceberg-mor-v2", "iceberg-cow")
DELTA = ("delta-dv", "delta")


def times_less(
    factor: float, text: str, case: str, step: str, system: str, against: tuple[str, ...]
) -> Target:
    """Return the promise to cost this many times less than the best of the peers."""
    return Target(
        f"{text}: at least {factor:g}× less than the best of {', '.join(against)}",
        case,
        step,
        against=against,
        at_most=1 / factor,
        system=system,
        area="row-level",
    )


SPINE = [
    Target(
        "Full-scan aggregate within 1.1× of spark.read.parquet on the same files",
        "read_full",
        "aggregate",
        against=("spark-parquet",),
        at_most=1.1,
    ),
    Target(
        "A range filter on a sort column reads only the row groups it must",
        "read_filter",
        "filter",
        metrics=("row_groups_to_needed",),
        at_most=1.0,
    ),
    Target(
        "1 % of rows deleted by v3 vectors: read no slower than Iceberg Java",
        "read_deletes",
        "v3 vectors",
        against=("iceberg-java",),
        at_most=1.0,
    ),
    Target(
        "1 % of rows deleted by v2 position deletes: read no slower than Iceberg Java",
        "read_deletes",
        "v2 positions",
        against=("iceberg-java",),
        at_most=1.0,
    ),
    *(
        Target(
            f"{case} ({step}) {promise}",
            case,
            step,
            against=(peer,),
            at_most=limit,
        )
        for case in ("append", "ctas")
        for step in ("bucketed", "unpartitioned")
        for promise, peer, limit in (
            ("within 1.1× of df.write.parquet", "spark-parquet", 1.1),
            ("no slower than Iceberg Java", "iceberg-java", 1.0),
        )
    ),
    Target(
        "Planning 200 000 files cold: at least 200 000 files/s",
        "planning_200k",
        "cold",
        metrics=("files_per_s",),
        at_least=200_000,
    ),
    Target(
        "Planning 200 000 files cold: at least 10× PyIceberg's rate",
        "planning_200k",
        "cold",
        metrics=("wall_s",),
        against=("pyiceberg",),
        at_most=0.1,
    ),
    Target(
        "Planning 200 000 files cold: level with Iceberg Java's core",
        "planning_200k",
        "cold",
        metrics=("wall_s",),
        against=("iceberg-java",),
        at_most=1.0,
    ),
    Target(
        "Planning 200 000 files again, cached: under 0.2 s",
        "planning_200k",
        "warm",
        metrics=("wall_s",),
        at_most=0.2,
    ),
    Target(
        "Planning 200 000 files: memory under 1 GB",
        "planning_200k",
        "cold",
        metrics=("peak_bytes",),
        at_most=1e9,
    ),
    *(
        Target(
            f"Planning 1 000 000 files, {step}: not slower than Iceberg Java's core",
            "planning_1m",
            step,
            metrics=("wall_s",),
            against=("iceberg-java",),
            at_most=1.0,
        )
        for step in ("cold", "filtered")
    ),
    Target(
        "Planning 1 000 000 files again, cached: under 50 ms",
        "planning_1m",
        "warm",
        metrics=("wall_s",),
        at_most=0.05,
    ),
    Target(
        "Planning 1 000 000 files: memory under 1.5 GB",
        "planning_1m",
        "cold",
        metrics=("peak_bytes",),
        at_most=1.5e9,
    ),
    Target(
        "Writing manifests: at least 50 000 entries/s",
        "manifest_write",
        "write",
        metrics=("entries_per_s",),
        at_least=50_000,
    ),
    Target(
        "An empty task of the engine: at most 0.08 s of CPU",
        "empty_task",
        "tasks",
        metrics=("cpu_per_task_s",),
        at_most=0.08,
    ),
    Target("import rowlake: under 0.3 s", "startup", "import", metrics=("wall_s",), at_most=0.3),
    Target("rowlake tables: under 1.5 s", "startup", "tables", metrics=("wall_s",), at_most=1.5),
    Target(
        "INSERT of 10 rows into an open lake, warm: under 0.3 s",
        "insert",
        "10 rows",
        metrics=("wall_s",),
        at_most=0.3,
    ),
]

ROW_LEVEL = [
    times_less(
        10,
        "Case 1, streaming, equality deletes",
        "case1",
        "merge",
        "rowlake-equality",
        (*ICEBERG, *DELTA),
    ),
    *(
        times_less(factor, text, case, "merge", system, (*ICEBERG, *DELTA))
        for factor, text, case, system in (
            (5, "Case 1, streaming, deletion vectors", "case1", "rowlake-lazy"),
            (5, "Case 1, streaming, position deletes", "case1", "rowlake-v2"),
            (5, "Case 2, micro-batch, lazy", "case2", "rowlake-lazy"),
            (8, "Case 2, plain Parquet source, lazy", "case2_plain", "rowlake-lazy"),
            (4, "Case 3, batch", "case3", "rowlake-auto"),
            (5, "Case 4, no static predicate", "case4", "rowlake-lazy"),
        )
    ),
    times_less(
        2.8,
        "Case 2, eager against their eager",
        "case2",
        "merge",
        "rowlake-eager",
        ("iceberg-cow", "delta"),
    ),
    Target(
        "Case 2, eager: within 1.1× of a bare pyarrow rewrite",
        "case2",
        "merge",
        against=("pyarrow-rewrite",),
        at_most=1.1,
        system="rowlake-eager",
        area="row-level",
    ),
    *(
        target
        for verb in ("delete", "update")
        for target in (
            times_less(
                4,
                f"{verb.upper()} of one row by key",
                f"{verb}_one",
                verb,
                "rowlake-lazy",
                (*ICEBERG, *DELTA),
            ),
            Target(
                f"{verb.upper()} of one row by key, warm: under 60 ms",
                f"{verb}_one",
                verb,
                metrics=("wall_s",),
                at_most=0.06,
                system="rowlake-lazy",
                area="row-level",
            ),
        )
    ),
    *(
        target
        for case in ("case1", "case2", "case3", "case4")
        for target in (
            Target(
                f"Read after each lazy round of {case}: at most 0.6× of Iceberg v3's",
                case,
                "read",
                against=("iceberg-v3",),
                at_most=0.6,
                system="rowlake-lazy",
                area="row-level",
            ),
            Target(
                f"Read after each lazy round of {case}: within 1.2× of the clean read",
                case,
                "read",
                against=("rowlake-lazy",),
                against_step="clean read",
                at_most=1.2,
                system="rowlake-lazy",
                area="row-level",
            ),
        )
    ),
    Target(
        "Clean aggregate: at most 0.6× of Iceberg v3's",
        "case2",
        "clean read",
        against=("iceberg-v3",),
        at_most=0.6,
        system="rowlake-lazy",
        area="row-level",
    ),
    Target(
        "Upsert of 1 M keys: within 2× of a bare pyarrow read and write of the same rows",
        "upsert",
        "upsert",
        against=("pyarrow-upsert",),
        at_most=2.0,
        system="rowlake-auto",
        area="row-level",
    ),
    *(
        Target(
            f"First statement of a fresh process ({step}): within 1.5× of Spark's first count",
            "first_statement",
            step,
            metrics=("wall_s",),
            against=("spark-parquet",),
            against_step="count",
            at_most=1.5,
            area="row-level",
        )
        for step in ("count", "merge")
    ),
    times_less(3, "Upsert of 1 M keys", "upsert", "upsert", "rowlake-auto", ("delta-rs",)),
    times_less(
        10,
        "Upsert of 1 000 keys (its time grows with keys times rows)",
        "upsert_1k",
        "upsert",
        "rowlake-auto",
        ("pyiceberg-upsert",),
    ),
    Target(
        "MERGE into a target that is ten times as large: Python's memory within 1.1×",
        "memory",
        "10×",
        metrics=("python_bytes",),
        against=("rowlake-lazy",),
        against_step="1×",
        at_most=1.1,
        system="rowlake-lazy",
        area="row-level",
    ),
]

MAINTENANCE = [
    Target(
        "Compaction after case 2: at least 2× faster than rewrite_data_files and OPTIMIZE",
        "compaction",
        "major",
        against=("iceberg-v3", "delta-dv"),
        at_most=0.5,
        system="rowlake-lazy",
        area="maintenance",
    ),
    Target(
        "Compaction of position deletes: at most 25 % of one eager round",
        "compaction",
        "minor",
        against=("rowlake-eager",),
        against_step="eager round",
        at_most=0.25,
        system="rowlake-v2",
        area="maintenance",
    ),
    Target(
        "Read after the compaction of position deletes: within 1.14× of the clean read",
        "compaction",
        "read after minor",
        against=("rowlake-v2",),
        against_step="clean read",
        at_most=1.14,
        system="rowlake-v2",
        area="maintenance",
    ),
    Target(
        "Expiry and orphan removal: at least 3× faster than Iceberg's procedures",
        "expiry",
        "expire and remove orphans",
        against=("iceberg-java",),
        at_most=1 / 3,
        area="maintenance",
    ),
    Target(
        "Z-order over 4 columns: a point filter skips at least 43 % of the files on each column",
        "zorder",
        "zorder",
        metrics=("least_skipped_share",),
        at_least=0.43,
        area="maintenance",
    ),
    Target(
        "Z-order over 4 columns: point filters skip at least 54 % of the files on average",
        "zorder",
        "zorder",
        metrics=("skipped_share",),
        at_least=0.54,
        area="maintenance",
    ),
]

STREAMS = [
    replace(
        times_less(
            10,
            "Upsert stream of 800-row batches, equality deletes",
            "stream_upsert",
            "batch",
            "rowlake-equality",
            ICEBERG,
        ),
        area="streams",
    ),
    Target(
        "Upsert stream: the last hundred of 1 000 batches within 1.2× of the first hundred",
        "stream_long",
        "batch",
        metrics=("last_to_first",),
        at_most=1.2,
        system="rowlake-equality",
        area="streams",
    ),
    Target(
        "Changes of a copy-on-write commit: at least 5× less than create_changelog_view",
        "changes",
        "changes",
        against=("iceberg-java",),
        at_most=1 / 5,
        area="streams",
    ),
    *(
        Target(
            text,
            "changes_sizes",
            step,
            metrics=("wall_s",),
            against=("rowlake",),
            against_step=against_step,
            at_most=limit,
            area="streams",
        )
        for text, step, against_step, limit in (
            (
                "Changes of ten times the rows: at most 12× the time",
                "10 % of the rows",
                "1 % of the rows",
                12,
            ),
            (
                "The same changes in a table of ten times the files: at most 1.3× the time",
                "10× larger table",
                "small table",
                1.3,
            ),
        )
    ),
    Target(
        "PostgreSQL -> table: at least 20 000 changes/s",
        "postgres",
        "changes",
        metrics=("changes_per_s",),
        at_least=20_000,
        area="streams",
    ),
]

TARGETS = [*SPINE, *ROW_LEVEL, *MAINTENANCE, *STREAMS]
