"""Code that a table's properties name: nobody may load it."""


class Planted:
    """What would be called."""
