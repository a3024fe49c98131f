"""SQL text: tokens, names, literals, types and terms, with exact offsets; no meaning yet."""
