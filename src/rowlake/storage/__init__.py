"""Read, write, list and delete bytes at locations of any scheme; knows nothing of tables.

`files.Storage` is picklable, opens file systems at first use and caches them per process:

    Storage(properties)                     PyIceberg's property names (`s3.endpoint`, ...)
    read, open_input                        whole, or with random access
    write, open_output                      creates local parent folders
    create -> bool                          put-if-absent, atomic; False if the file exists
    delete -> list                          best effort; returns what could not be deleted
    list, listing, folders, children        recursive and flat, as objects and as columns

Failures are `StorageError`s that name the location, or `CorruptTableError`s for missing files of
a table. `table_io` decides which properties open a table's files: the catalog's, never the
table's own. `places` resolves a location to where it really is, before anything is deleted there.
"""
