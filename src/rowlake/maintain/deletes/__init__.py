"""Delete files written anew: merged, as vectors, as positions; dangling ones removed."""
