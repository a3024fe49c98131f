"""Statements that only Delta tables have: VACUUM of a log, RESTORE, CLONE, CONVERT, manifests."""
