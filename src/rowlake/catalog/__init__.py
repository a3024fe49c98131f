"""Where tables live: any PyIceberg catalog, and two of our own (SQLite, the file system).

Importing anything here mends PyIceberg once, in `rowlake.catalog._compat`.
"""

from rowlake.catalog import _compat

_compat.install()
