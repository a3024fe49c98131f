"""Row-level changes: find the rows, choose a way per file, write, commit."""
