"""What follows a commit that has landed: rooms above ask to be told.

Followers run in the writer's process, in the order in which they asked. They get the table as the
commit left it, and must not raise: the commit has landed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.handle import TableHandle

Follower: TypeAlias = "Callable[[TableHandle], None]"
_followers: dict[str, Follower] = {}


def follow_with(name: str, follower: Follower) -> None:
    """Have a function called after every commit that lands; one by each name."""
    _followers[name] = follower


def has_landed(handle: TableHandle) -> None:
    """Tell followers of a commit; one that waits in a transaction has not landed yet."""
    if handle.is_in_transaction:
        return
    for follower in list(_followers.values()):
        follower(handle)
