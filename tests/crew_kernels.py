"""Kernels that processes of a crew can import."""

from __future__ import annotations

import os
import signal
import time

import pyarrow as pa

from rowlake.errors import CardinalityError


def batch(value):
    return pa.RecordBatch.from_pydict({"n": pa.array([value], pa.int64())})


def doubled(task):
    yield batch(2 * task)


def process_id(task):
    time.sleep(0.05)  # so that one process does not take all tasks
    yield batch(os.getpid())


def nothing(task):
    yield batch(task).slice(0, 0)


def talkative(task):
    print(f"spoken {task}", flush=True)
    yield batch(task)


def refusing(task):
    raise CardinalityError("A row is there twice.", keys=["id=1"])
    yield


class Stubborn(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.held = lambda: None  # cannot be pickled


def stubborn(task):
    raise Stubborn("no")
    yield


def dying(task):
    os.kill(os.getpid(), signal.SIGKILL)
    yield


def sleeping(seconds, task):
    time.sleep(seconds)
    yield batch(task)
