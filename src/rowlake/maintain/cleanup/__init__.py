"""What nobody needs any more: expired snapshots, orphan files, rows that must be erased."""
