"""A table format held in memory: the second answer to `rowlake.model.format.Format`.

Data and delete files are real files; all that describes them is Python objects in a `MemoryStore`.
It keeps no manifests, no metadata files and no catalog, so a suite that passes on it needs nothing
of a format but the protocol. Tables of "format version" 1 take rewrites only, those of 2 position
deletes, those of 3 deletion vectors and row ids.
"""
