"""The nouns that every room shares: frozen dataclasses and Arrow layouts.

Schemas with field ids, partition specs and transforms, single-value encodings, predicates, tables
of files and manifests, `TableView` (a table at one snapshot), `Change` (actions and
requirements), tasks, results and reports. Sets of files are Arrow tables, never lists of objects.
"""
