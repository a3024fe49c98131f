"""Which files a read or a change must look at, with which deletes, in which tasks."""

from rowlake.plan.bind import bind
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.files import FilePlan, plan_files
from rowlake.plan.prune import deletes_may_match, manifests_may_match, may_match, must_match
from rowlake.plan.tasks import scan_tasks

__all__ = [
    "DeleteIndex",
    "FilePlan",
    "bind",
    "deletes_may_match",
    "manifests_may_match",
    "may_match",
    "must_match",
    "plan_files",
    "scan_tasks",
]
