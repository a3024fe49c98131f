"""Hooks of mkdocs: a link to a folder, which a repository shows, is plain text on a site."""

from __future__ import annotations

import re
from typing import Any

_FOLDER = re.compile(r"\[([^\]]+)\]\(([\w./-]+/)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links to folders into plain text: a site has no page for a folder."""
    return _FOLDER.sub(r"\1 (`docs/\2`)", markdown)
