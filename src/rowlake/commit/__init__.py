"""Commit a change: check it against what others committed, rebase it, swap, retry.

    loop.Commit(change, storage, first).run(handle)    data commits: the loop below
    metadata.commit_metadata                           refs, schemas, specs, properties
    manifests                                          the same files in new manifests
    transaction                                        all commits of a transaction in one step
    rerun.rerun_on_conflict(handle, run)               runs an operation again from planning

The loop: `validate` looks for a snapshot that forbids the change; `rebase` merges its position
deletes and deletion vectors with those that others put on the same data files (different rows:
both land; the same row: refused); `resolve` names the files that a filter removes at this head;
then the format produces a snapshot and the catalog swaps it in. `retry` bounds lost races by
total time and other failures by number. What others did to the sources of a compaction is carried
over to its output files; a part for which that is impossible is given up, and the rest lands.

`rerun` runs an operation again only where its `Allows` permits: after any conflict, after a
conflict with a change that kept all rows (a compaction, an upgrade), or, for operations that hold
values read from the table, only where nothing but such changes landed.
"""
