"""What IPython is told where it runs: how rowlake's Arrow tables are shown. Never imports it."""

from __future__ import annotations

import sys
from typing import Any

from rowlake.model.shown_table import html_of_marked


def running_shell() -> Any:
    """Return the IPython shell that runs this code, None outside of one."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def has_notebook() -> bool:
    """Return whether a notebook shows what this code prints (a terminal is none)."""
    shell = running_shell()
    return shell is not None and hasattr(shell, "kernel")


def show_arrow_tables(shell: Any) -> None:
    """Have a shell show the Arrow tables that rowlake marked, such as `history()`, as HTML."""
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type_by_name("pyarrow.lib", "Table", html_of_marked)
