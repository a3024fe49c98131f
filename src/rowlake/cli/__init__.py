"""rowlake on a terminal."""
