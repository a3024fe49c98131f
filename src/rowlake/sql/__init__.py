"""Statements to operations: what `lake.sql` does with a text before and around Spark."""
