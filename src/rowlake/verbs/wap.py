"""Write-audit-publish by the Spark session's settings, as Iceberg's Spark integration has it.

A table with `write.wap.enabled` = true takes writes of a session that has `spark.wap.id` as staged
snapshots (published later by that id), and of one that has `spark.wap.branch` on that branch, which
is made at the first write. Its reads see that branch too, once it is there. A branch, snapshot or
time that a write or read names itself wins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.metadata_change import CreateRef
from rowlake.verbs.branches import create_ref
from rowlake.verbs.cherry_pick import WAP_ID

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.verbs.write import WriteOptions

ENABLED = "write.wap.enabled"
SESSION_ID, SESSION_BRANCH = "spark.wap.id", "spark.wap.branch"


def session_branch(handle: TableHandle, engine: Engine) -> str | None:
    """Return the branch that this session writes to, None where it is not asked for."""
    if handle.properties.get(ENABLED, "false").lower() != "true":
        return None
    wap_id, branch = engine.setting(SESSION_ID), engine.setting(SESSION_BRANCH)
    if wap_id and branch:
        raise InvalidStatementError(
            f"Set {SESSION_ID} or {SESSION_BRANCH}, not both: they are {wap_id} and {branch}."
        )
    return branch or None


def read_branch(handle: TableHandle, engine: Engine) -> str | None:
    """Return the branch that this session reads where a read names no other state."""
    branch = session_branch(handle, engine)
    return branch if branch in handle.refs else None


def audited(
    handle: TableHandle, engine: Engine, options: WriteOptions, *, names_branch: bool
) -> tuple[TableHandle, WriteOptions]:
    """Return the table and the options of a write, as the session's settings ask for."""
    if handle.properties.get(ENABLED, "false").lower() != "true":
        return handle, options
    branch = session_branch(handle, engine)
    wap_id = engine.setting(SESSION_ID)
    if wap_id:
        return handle, replace(
            options, stage_only=True, properties={WAP_ID: wap_id, **options.properties}
        )
    if branch is None or names_branch:
        return handle, options
    return _with_branch(handle, branch), replace(options, branch=branch)


def _with_branch(handle: TableHandle, branch: str) -> TableHandle:
    """Return the table with this branch; one without snapshots gets an empty one to begin at."""
    return create_ref(handle, CreateRef(branch, "branch", if_not_exists=True))
