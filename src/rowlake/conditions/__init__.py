"""Conditions and assignments, given as text or as Python values, to predicates and expressions."""
