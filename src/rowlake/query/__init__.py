"""Queries over lake tables: which tables, columns and rows they need, and their DataFrame."""
