"""DELETE, UPDATE and MERGE as operations: resolved, checked and handed to `rowlevel`."""
