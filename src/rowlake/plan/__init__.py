"""Which files a read or a change must look at, with which deletes, in which tasks."""
