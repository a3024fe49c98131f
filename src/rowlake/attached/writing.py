"""`df.write`, `df.writeTo` and `df.mergeInto` in an attached session.

A write means what it means to Spark for tables of its second API: columns are matched by name
(`insertInto`: by place), values are cast as INSERT casts them, `saveAsTable` in mode overwrite
replaces the table. A Delta table keeps its columns and partitions then, as Delta's own writer does,
unless the option `overwriteSchema` is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.attached import owners
from rowlake.attached.reading import named_by
from rowlake.dml.change import change_rows
from rowlake.dml.clause_rules import first_broken_rule
from rowlake.dml.operations import Clause, Merge, qualifiers
from rowlake.dml.python_arguments import assignments_of
from rowlake.engine.attachments.recording import refuse_other
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from rowlake.model.app_batch import AppBatch
from rowlake.model.merge import Action, When
from rowlake.model.names import levels_of, quoted
from rowlake.model.properties import FILE_FORMAT
from rowlake.query.lookup import TableLookup
from rowlake.query.lookup import new_name as new_name_of
from rowlake.sql.execute.insert import insert_frame
from rowlake.sql.statements import Insert
from rowlake.verbs.create import already_there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.attachments.drop_in import MergeAction, MergeRequest, WriteRequest
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name

_MODES = {
    None: "error",
    "default": "error",
    "error": "error",
    "errorifexists": "error",
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
}
_CREATING = ("create", "replace", "createOrReplace")
_FILE_FORMATS = ("parquet", "orc", "avro")
_SUMMARY = "snapshot-property."


def write(lake: Lake, asked: WriteRequest) -> bool:
    """Write rows; False where that is Spark's to do."""
    name = _name(asked)
    if name is None or not _is_lakes(lake, asked, name):
        return False
    refuse_other(asked.other, quoted(name))
    _ENDINGS[asked.verb](lake, asked, name)
    return True


def _name(asked: WriteRequest) -> Name | None:
    if asked.verb == "save":
        return named_by(asked.provider or "", asked.name)
    return owners.parts_of(asked.name)


def _is_lakes(lake: Lake, asked: WriteRequest, name: Name) -> bool:
    """Return whether a table is the lake's, or would be if it were created."""
    lookup = TableLookup(lake.workspace)
    hidden = len(name) == 1 and asked.verb == "insertInto" and lookup.is_temporary(name[0])
    known = not hidden and lookup.stored(name) is not None
    if known or (not hidden and lookup.target(name) is not None):
        return True
    creates = asked.verb in _CREATING or asked.verb in ("saveAsTable", "save")
    if not creates or (asked.provider or "iceberg").lower() not in owners.LAKE_PROVIDERS:
        return False
    return not owners.is_new_in_spark(lake.workspace, name)


# --- how writes end


def _append(lake: Lake, asked: WriteRequest, name: Name) -> None:
    _insert(lake, asked, Insert(name, "", by_name=True))


def _overwrite(lake: Lake, asked: WriteRequest, name: Name) -> None:
    _insert(lake, asked, Insert(name, "", by_name=True, overwrite=True, where=asked.condition))


def _overwrite_partitions(lake: Lake, asked: WriteRequest, name: Name) -> None:
    _insert(lake, asked, Insert(name, "", by_name=True, overwrite=True), dynamic=True)


def _insert_into(lake: Lake, asked: WriteRequest, name: Name) -> None:
    if asked.partitioned_by:
        raise InvalidStatementError(
            f"insertInto({quoted(name)}) cannot be used with partitionBy: the table knows its "
            "partitions."
        )
    mode = _mode(asked)
    dynamic = _dynamic(asked)
    statement = Insert(name, "", overwrite=mode == "overwrite")
    _insert(lake, asked, statement, dynamic=bool(dynamic) and statement.overwrite)


def _insert(lake: Lake, asked: WriteRequest, statement: Insert, *, dynamic: bool = False) -> None:
    insert_frame(lake, statement, asked.frame, _options(asked), dynamic=dynamic)


def _create(lake: Lake, asked: WriteRequest, name: Name) -> None:
    full = _new_name(lake, name)
    if lake.exists(full):
        raise already_there(full)
    _make(lake, asked, full, replaces=False)


def _replace(lake: Lake, asked: WriteRequest, name: Name) -> None:
    full = _new_name(lake, name)
    if not lake.exists(full):
        raise TableNotFoundError(quoted(full))
    _make(lake, asked, full, replaces=True)


def _create_or_replace(lake: Lake, asked: WriteRequest, name: Name) -> None:
    _make(lake, asked, _new_name(lake, name), replaces=True)


def _save(lake: Lake, asked: WriteRequest, name: Name) -> None:
    """Run `saveAsTable`, or `save` in a format of tables."""
    mode, full = _mode(asked), _new_name(lake, name)
    if not lake.exists(full):
        _make(lake, asked, full, replaces=False)
    elif mode == "append":
        _append(lake, asked, name)
    elif mode == "overwrite":
        _overwrite_table(lake, asked, name, full)
    elif mode == "error":
        raise already_there(full)


def _overwrite_table(lake: Lake, asked: WriteRequest, name: Name, full: Name) -> None:
    """Replace a table, or only its rows: for `save`, and for Delta tables that keep their columns.

    `replaceWhere` and a dynamic `partitionOverwriteMode` replace some rows, in both formats.
    """
    given = {key.lower(): value for key, value in asked.options.items()}
    where = given.get("replacewhere")
    if where is not None or _dynamic(asked):
        statement = Insert(name, "", by_name=True, overwrite=True, where=where)
        _insert(lake, asked, statement, dynamic=where is None)
        return
    evolves = given.get("overwriteschema", "false").lower() == "true"
    if evolves or (asked.verb == "saveAsTable" and lake.table(full).format != "delta"):
        _make(lake, asked, full, replaces=True)
    else:
        _insert(lake, asked, Insert(name, "", by_name=True, overwrite=True))


_ENDINGS = {
    "append": _append,
    "overwrite": _overwrite,
    "overwritePartitions": _overwrite_partitions,
    "insertInto": _insert_into,
    "create": _create,
    "replace": _replace,
    "createOrReplace": _create_or_replace,
    "saveAsTable": _save,
    "save": _save,
}


# --- parts of them


def _mode(asked: WriteRequest) -> str:
    mode = _MODES.get(asked.mode if asked.mode is None else asked.mode.lower())
    if mode is None:
        raise InvalidStatementError(
            f"Unknown save mode {asked.mode!r} (expected one of: append, overwrite, error, "
            "errorifexists, ignore)."
        )
    return mode


def _dynamic(asked: WriteRequest) -> bool:
    """Return whether options ask for the partitions hit to be replaced (Delta's, Iceberg's)."""
    given = {key.lower(): value.lower() for key, value in asked.options.items()}
    chosen = (given.get("partitionoverwritemode"), given.get("overwrite-mode"))
    return "dynamic" in chosen


def _new_name(lake: Lake, name: Name) -> Name:
    return levels_of(lake.workspace.full_name(new_name_of(lake.workspace, name)))


def _make(lake: Lake, asked: WriteRequest, name: Name, *, replaces: bool) -> None:
    provider = (asked.provider or "").lower()
    properties = dict(asked.properties)
    if provider in _FILE_FORMATS:
        properties.setdefault(FILE_FORMAT, provider)
    options = {key.lower(): value for key, value in asked.options.items()}
    if options.get("write-format"):
        properties.setdefault(FILE_FORMAT, options["write-format"])
    lake.create_table_as(
        name,
        asked.frame,
        partition_by=asked.partitioned_by,
        properties=properties,
        location=options.get("path") or options.get("location"),
        format="delta" if provider == "delta" else "",
        replace=replaces,
    )


def _options(asked: WriteRequest) -> dict[str, Any]:
    """Return the options of a write by their names in rowlake; hints for other writers are none."""
    given = {key.lower(): value for key, value in asked.options.items()}
    if given.get("mergeschema", given.get("merge-schema", "false")).lower() == "true":
        raise UnsupportedFeatureError(
            f"Cannot write to {asked.name} with mergeSchema: add the columns first (ALTER TABLE … "
            "ADD COLUMNS), or use mergeInto(…).withSchemaEvolution()."
        )
    found: dict[str, Any] = {}
    for wanted, key in (("branch", "branch"), ("isolation", "isolation-level")):
        if key in given:
            found[wanted] = given[key]
    summary = {
        key[len(_SUMMARY) :]: value
        for key, value in asked.options.items()
        if key.lower().startswith(_SUMMARY)
    }
    if summary:
        found["properties"] = summary
    return {**found, **_batch(given)}


def _batch(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the batch that Delta's options name: one that has landed is not written again."""
    app, version = given.get("txnappid"), given.get("txnversion")
    if app is None and version is None:
        return {}
    if app is None or version is None or not version.isdecimal():
        raise InvalidStatementError(
            "txnAppId and txnVersion go together, and the version is a whole number."
        )
    return {"app_batch": AppBatch(app, int(version))}


# --- mergeInto

_WHEN = {
    "matched": When.MATCHED,
    "not matched": When.NOT_MATCHED,
    "not matched by source": When.NOT_MATCHED_BY_SOURCE,
}


def merge(lake: Lake, asked: MergeRequest) -> None:
    """Run a MERGE of `df.mergeInto`."""
    name = levels_of(asked.name)
    owner = qualifiers(name, None)
    clauses = [_clause(each, owner) for each in asked.actions]
    broken = first_broken_rule(clauses)
    if broken is not None:
        raise InvalidStatementError(f"{broken.text}.")
    operation = Merge(
        name=name,
        source=asked.frame,
        on=asked.on,
        clauses=tuple(clauses),
        source_alias=asked.alias,
        schema_evolution=asked.schema_evolution,
    )
    change_rows(TableLookup(lake.workspace), operation)


def _clause(asked: MergeAction, owners_of_columns: tuple[Name, ...]) -> Clause:
    when, action = _WHEN[asked.when], Action(asked.action.upper())
    if action is Action.DELETE:
        return Clause(when, action, asked.condition)
    if asked.assignments is None and when is When.NOT_MATCHED_BY_SOURCE:
        raise InvalidStatementError(
            "whenNotMatchedBySource().updateAll() has no source to take values from: use "
            "update({column: value})."
        )
    if asked.assignments is None:
        return Clause(when, action, asked.condition, None)
    assignments = assignments_of(asked.assignments, owners_of_columns, asked.action)
    return Clause(when, action, asked.condition, assignments)
