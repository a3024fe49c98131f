"""The text of a statement to what it asks for."""
