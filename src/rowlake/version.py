"""The version of rowlake; `rowlake.__version__` is the same text."""

__version__ = "0.1.0"
