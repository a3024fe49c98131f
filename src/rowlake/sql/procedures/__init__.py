"""CALL: the stored procedures of a lake."""
