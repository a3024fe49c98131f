"""rowlake."""
