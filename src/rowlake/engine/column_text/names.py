"""How the columns of a statement's source are named, and the refusals of columns without a text."""

from __future__ import annotations

from dataclasses import dataclass

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError


@dataclass(frozen=True)
class SourceNames:
    """The alias of a source, and what tells its columns from others.

    `ids` are those of its columns (classic) or of its plans (Connect). Without an alias a column
    that was taken from a DataFrame is written by its name alone.
    """

    alias: str | None = None
    ids: frozenset[str] = frozenset()

    def written(self, name: str, identity: str) -> str:
        """Return a (quoted) name of a column of a DataFrame, as the statement knows it."""
        if self.alias is None:
            return name
        if identity not in self.ids:
            raise InvalidStatementError(
                f"The column {name} belongs to another DataFrame than the source. Name columns of "
                'the target by text, like F.col("table.column").'
            )
        return f"{quoted(self.alias)}.{name}"


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def no_text(what: str) -> UnsupportedFeatureError:
    """Return the refusal of a column that has no text."""
    return UnsupportedFeatureError(
        f"A column with {what} cannot be written as SQL, which rowlake needs here. Compute it "
        "first, as a column of the DataFrame (withColumn), and name that column."
    )
