"""Bytes at locations, by scheme, with the properties that open them; nothing of tables."""
