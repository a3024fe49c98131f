"""The measuring bench: rowlake beside its peers, on the same data, in one run."""
