"""Maintenance: compaction, delete files, manifests, expiry, orphans, statistics, health."""
