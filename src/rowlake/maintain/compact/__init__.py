"""Rewrite data files: fewer and larger, deletes folded in, rows in a useful order.

`rewrite_plan` selects and groups files, by partition; files of older specs form one group. Rows
keep their order, or are sorted or Z-ordered. A group that fits one task is ordered there. For a
larger one keys are sampled into ranges, tasks split the sources by range into staged Arrow files,
and one task per new file orders its range. Deletes that others commit during a compaction are
carried over to the new files: by position, or by row ids where rows were reordered; a group for
which neither works is left as it was.
"""
