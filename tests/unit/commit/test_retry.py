"""How long a writer that lost waits before it tries again."""

from __future__ import annotations

import pytest

from rowlake.commit import retry
from rowlake.commit.retry import RetryPolicy


@pytest.fixture
def longest(monkeypatch):
    """Make every wait as long as it can be."""
    monkeypatch.setattr(retry.random, "uniform", lambda _, high: high)


def test_who_has_lost_often_waits_less_than_who_has_lost_a_few_times(longest):
    policy = RetryPolicy(min_wait_ms=100)
    waits = [policy.loss_wait_s(losses) for losses in (1, 2, 3, 4, 50)]
    assert waits == [0.05, 0.1, 0.2, 0.025, 0.025]


def test_a_wait_is_no_longer_than_the_table_allows(longest):
    assert RetryPolicy(min_wait_ms=100, max_wait_ms=10).loss_wait_s(3) == 0.01
