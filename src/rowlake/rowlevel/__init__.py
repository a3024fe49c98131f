"""Row-level changes: match rows, choose a strategy per file, write, commit.

DELETE, UPDATE, MERGE and upsert all run through one kernel. An operation is a `RowChange`:
clauses, how target rows find their source rows (by key, by position, or by a predicate), and
staged source rows.

1. `staging` stages the source once, split by the target's partitions where the keys determine them
   (*aligned*), whole (*broadcast*), or by target file where Spark joined the rows.
2. `tasks` packs target files and parts of the source into tasks.
3. `kernel` reads key columns (`matches`), decides per file (`strategy`), and writes new versions of
   rows, copied rows, deletes and inserts.
4. `change` plans, runs and commits all of it.

`explain` plans and matches the same way with a kernel that writes nothing. Upserts and deletes
with equality deletes never read the target; `delete_scope` chooses the partition specs that their
deletes must carry to reach every data file.
"""
