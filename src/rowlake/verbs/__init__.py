"""What a table can do, one module a verb: each puts the rooms below together."""
