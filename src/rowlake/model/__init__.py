"""The nouns that every room shares; imports nothing else of rowlake."""
