"""Data files written anew: few large ones, deletes folded in, rows in a useful order."""
