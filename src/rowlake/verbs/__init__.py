"""The verbs of `Table` and `Lake`, one module each: they combine the rooms below."""
