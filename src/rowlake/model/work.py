"""Where an operation's work ran: in threads of the driver, as Spark tasks, or both."""

from __future__ import annotations

from dataclasses import dataclass

DRIVER, SPARK, DRIVER_AND_SPARK = "driver", "spark", "driver and spark"


@dataclass(frozen=True)
class Work:
    """Tasks that ran in the driver, and Spark's jobs and tasks.

    Spark counts its tasks: one that is retried counts once.
    """

    driver_tasks: int = 0
    spark_jobs: int = 0
    spark_tasks: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.driver_tasks + other.driver_tasks,
            self.spark_jobs + other.spark_jobs,
            self.spark_tasks + other.spark_tasks,
        )

    @property
    def ran_on(self) -> str:
        """`driver`, `spark` or `driver and spark`; `driver` where there was nothing to run."""
        if not self.spark_jobs:
            return DRIVER
        return DRIVER_AND_SPARK if self.driver_tasks else SPARK
