"""Mirrors: one set of data files and deletion vectors, metadata trees of two formats.

Comes in: a table, and the format to follow it. Goes out: commits of that format, one for each
commit of the table, in the same folder. Invariants: a mirror is behind its table or equal to it,
never wrong; each commit is repeated exactly once, since its mark lands with it; data files and
vectors are written once and only named twice.
"""
