"""Options of rewrites: Iceberg's names and defaults, checked before anything runs.

`Given` reads the options of any procedure; `FileSizes` are those that all rewrites of files share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

GB = 1 << 30
# Iceberg's: files within these shares of the target size are left alone.
LEAST_SHARE = 0.75
MOST_SHARE = 1.8
JOB_ORDERS = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")


class Given:
    """The options of one call; each is text, as SQL maps have them, or the value itself."""

    def __init__(
        self, procedure: str, options: Mapping[str, Any] | None, known: Collection[str]
    ) -> None:
        self._procedure, self._options = procedure, dict(options or {})
        for name in self._options:
            if name not in known:
                raise InvalidStatementError(
                    f"{procedure} has no option {name} "
                    f"(expected one of: {', '.join(sorted(known))})."
                )

    def __contains__(self, name: str) -> bool:
        return name in self._options

    def whole(self, name: str, default: int, *, least: int = 1) -> int:
        """Return a whole number of at least `least`."""
        return int(self._number(name, default, int, f"a whole number from {least}", least))

    def fraction(self, name: str, default: float) -> float:
        """Return a number above 0 and up to 1."""
        value = self._number(name, default, float, "a number above 0, up to 1", 0)
        if not 0 < value <= 1:
            raise self._wrong(name, "a number above 0, up to 1")
        return value

    def positive(self, name: str, default: float) -> float:
        """Return a number above 0."""
        value = self._number(name, default, float, "a number above 0", 0)
        if not value > 0:
            raise self._wrong(name, "a number above 0")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        text = str(self._options.get(name, default)).strip().lower()
        if text not in ("true", "false"):
            raise self._wrong(name, "true or false")
        return text == "true"

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of some words."""
        text = str(self._options.get(name, default)).strip().lower()
        if text not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}")
        return text

    def _number(self, name: str, default: float, kind: Any, expected: str, least: float) -> float:
        try:
            value = kind(str(self._options.get(name, default)).strip())
        except ValueError:
            raise self._wrong(name, expected) from None
        if not value >= least:
            raise self._wrong(name, expected)
        return float(value) if kind is float else value

    def _wrong(self, name: str, expected: str) -> InvalidStatementError:
        return InvalidStatementError(
            f"Option {name} of {self._procedure} is {self._options.get(name)!r}, not {expected}."
        )


@dataclass(frozen=True)
class FileSizes:
    """Which files are fine as they are: from `least` to `most` bytes; new ones aim at `target`."""

    target: int
    least: int
    most: int

    @classmethod
    def of(cls, given: Given, default_target: int) -> FileSizes:
        """Return the sizes that the options say; they must rise."""
        target = given.whole("target-file-size-bytes", default_target)
        least = given.whole("min-file-size-bytes", int(target * LEAST_SHARE), least=0)
        most = given.whole("max-file-size-bytes", int(target * MOST_SHARE))
        if not least < target < most:
            raise InvalidStatementError(
                f"Cannot rewrite files to {target} bytes with min-file-size-bytes={least} and "
                f"max-file-size-bytes={most}: the target must be between them."
            )
        return cls(target, least, most)

    def outside(self, sizes: NDArray[Any]) -> NDArray[Any]:
        """Return which sizes are outside of the limits."""
        return (sizes < self.least) | (sizes > self.most)

    def output_files(self, size_in_bytes: float) -> int:
        """Return how many files these bytes are split into, all of a good size where possible.

        Rounded up, unless files would come out so small that the next run picks them again.
        """
        rounded_up = max(1, -(-int(size_in_bytes) // self.target))
        if rounded_up > 1 and size_in_bytes / rounded_up < self.least:
            return rounded_up - 1
        return rounded_up

    @property
    def write_limit(self) -> int:
        """The size at which a file is closed: above the target, since sizes are estimates."""
        return self.target + (self.most - self.target) // 2
