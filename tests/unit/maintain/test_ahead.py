"""Rows read ahead come in their order, fail in their place and stop when none is wanted."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from rowlake.maintain.compact.ahead import NAME, read_ahead

pytestmark = pytest.mark.delta


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(NAME)]


def test_all_come_in_order():
    assert list(read_ahead(iter(range(100)), depth=3)) == list(range(100))
    assert list(read_ahead([])) == []
    assert readers() == []


def test_what_fails_fails_in_its_place():
    def numbers():
        yield 1
        raise OSError("the disk is gone")

    ahead = read_ahead(numbers())
    assert next(ahead) == 1
    with pytest.raises(OSError, match="gone"):
        next(ahead)
    assert readers() == []


def test_the_thread_ends_when_no_more_is_wanted():
    made = []

    def numbers():
        for number in range(1000):
            made.append(number)
            yield number

    with closing(read_ahead(numbers(), depth=2)) as ahead:
        assert next(ahead) == 0
    assert readers() == []
    assert len(made) < 10
