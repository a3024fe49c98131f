"""How often and how long a commit is tried: the table properties `commit.retry.*`.

Two ways of not landing are told apart. A *loss*: another writer's commit landed first, so the
table moved on. Losses are what concurrency looks like, somebody gets ahead each time; they are
bounded by `commit.retry.total-timeout-ms` alone. A *failure*: the catalog did not take the commit
although nobody else was there; these are bounded by `commit.retry.num-retries`. With 0 retries
nothing is tried twice, whatever happened.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

# A loss is waited out for a share of `commit.retry.min-wait-ms` at first, doubled for so many
# losses; after that for the first share again.
_FIRST_SHARE = 0.25
_STEPPING_BACK = 3


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try (`commit.retry.*`); times in ms."""

    retries: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000
    total_timeout_ms: int = 1_800_000

    def wait_s(self, attempt: int) -> float:
        """Return how long to wait after this many failures: exponential, jittered."""
        ceiling = min(self.max_wait_ms, self.min_wait_ms * 2**attempt)
        return float(random.uniform(0.5, 1.0) * ceiling / 1000)

    def loss_wait_s(self, losses: int) -> float:
        """Return how long to wait after consecutive lost races: short, and anything down to 0.

        Losers that come back at times of their own do not meet again. Who has lost a few times
        steps back; who has lost more often than that comes back at once, so that the oldest
        writer is the most likely to land next, and none starves beside faster ones.
        """
        doublings = losses if losses <= _STEPPING_BACK else 0
        ceiling = self.min_wait_ms * _FIRST_SHARE * 2**doublings
        return float(random.uniform(0.0, min(self.max_wait_ms, ceiling)) / 1000)


def retry_policy(properties: Mapping[str, str]) -> RetryPolicy:
    """Return the policy that the table's properties ask for."""
    return RetryPolicy(
        whole_number(properties, "commit.retry.num-retries", 4),
        whole_number(properties, "commit.retry.min-wait-ms", 100),
        whole_number(properties, "commit.retry.max-wait-ms", 60_000),
        whole_number(properties, "commit.retry.total-timeout-ms", 1_800_000),
    )


@dataclass
class Patience:
    """What is left of a policy while a commit is tried."""

    policy: RetryPolicy
    losses: int = 0
    failures: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def attempts(self) -> int:
        """How many attempts did not land."""
        return self.losses + self.failures

    def wait(self, *, lost: bool) -> bool:
        """Wait after an attempt that a loss or a failure ended; False where it was the last."""
        late = time.monotonic() - self.started > self.policy.total_timeout_ms / 1000
        spent = not lost and self.failures >= self.policy.retries
        if late or spent or not self.policy.retries:
            return False
        if lost:
            self.losses += 1
            time.sleep(self.policy.loss_wait_s(self.losses))
        else:
            time.sleep(self.policy.wait_s(self.failures))
            self.failures += 1
        return True
