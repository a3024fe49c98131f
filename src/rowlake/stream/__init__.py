"""Change streams: what changed in a table, as rows, and feeds that are applied to tables.

Out of a table:

    changes_span     start and end, as users name them -> the commits between them
    changes_plan     a commit -> files to read: added, removed, and those with new deletes
    changes_groups   removed and added files that may share rows, brought together
    changes_kernel   one task: raw changes; rows that a rewrite only carried over cancel out
    changes_settle   raw changes -> updates paired by key or row id, net changes of a span
    changes          all of it, as a DataFrame or an Arrow table

Nothing has to be switched on before: changes come from the files that commits added and removed.
A rewrite that keeps all rows (`replace`) has none. Cost follows what changed: added files, removed
files and the rows that new deletes hit are read, nothing else.
"""
