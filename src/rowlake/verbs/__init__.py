"""The verbs of `Table` and `Lake`, one module each: they combine the rooms below.

`outcome` turns the outcome of a commit into an error or a result, and removes the files of a
failed one.
"""
