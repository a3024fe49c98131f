"""Remove what no snapshot needs: expired snapshots, orphan files, rows that must be erased.

Expiry commits first, for exactly the history it inspected, and then deletes the files that no
remaining snapshot reaches. Orphan removal lists storage first, then reads the newest metadata,
and reads it again before each batch of deletions; metadata that cannot be read completely removes
nothing. `vacuum` finds orphans, expires, then removes, so its dry run is exact. `erase` removes
rows from the whole history and proves that no reachable file holds them.
"""
