"""Benchmarks: rowlake and its peers, on the same data, in one run."""
