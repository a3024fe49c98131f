"""What a test does when a part that it needs is missing: fail in CI, skip elsewhere."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Fail where the environment variable CI is set, else skip, with the reason."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have this part: {reason}", pytrace=False)
    pytest.skip(reason)


def require_program(name: str) -> str:
    """Return the path of a program, or skip or fail where it is missing."""
    found = shutil.which(name)
    return found if found else skip_or_fail(f"the program {name} is not installed")
