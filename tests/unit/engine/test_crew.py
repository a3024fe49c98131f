"""Processes beside the driver: what they answer, and what becomes of those that are lost."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial

import pyarrow as pa
import pytest

from rowlake.engine import crew as room
from rowlake.engine.crew import Crew
from rowlake.engine.local import run_here
from rowlake.engine.progress import reporting
from rowlake.engine.spark import Engine
from rowlake.errors import CardinalityError, EngineError, InternalError
from tests import crew_kernels as kernels

OUTPUT = pa.schema([("n", pa.int64())])


@pytest.fixture(scope="module")
def crew():
    found = Crew(2)
    found.start(kernels.doubled)
    yield found
    found.end()


@pytest.fixture
def interruptible():
    """A process that was started in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run(crew, kernel, tasks):
    with reporting("x", False) as reporter:
        return run_here(kernel, tasks, OUTPUT, reporter, crew)


def test_tasks_are_answered_in_their_order_by_other_processes(crew):
    assert run(crew, kernels.doubled, [1, 2, 3, 4])["n"].to_pylist() == [2, 4, 6, 8]
    processes = set(run(crew, kernels.process_id, list(range(8)))["n"].to_pylist())
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_kernels_that_yield_nothing_give_no_rows(crew):
    assert run(crew, kernels.nothing, [1, 2]).equals(OUTPUT.empty_table())


def test_what_kernels_print_is_no_answer(crew):
    assert run(crew, kernels.talkative, [1, 2])["n"].to_pylist() == [1, 2]


def test_errors_come_home_with_their_fields(crew):
    with pytest.raises(CardinalityError, match="twice") as raised:
        run(crew, kernels.refusing, [1, 2])
    assert raised.value.keys == ("id=1",)
    with pytest.raises(InternalError, match="Stubborn: no"):
        run(crew, kernels.stubborn, [1, 2])


def test_a_lost_process_is_an_error_and_another_takes_its_place(crew):
    with pytest.raises(EngineError, match="was lost"):
        run(crew, kernels.dying, [1, 2])
    assert run(crew, kernels.doubled, [1, 2, 3])["n"].to_pylist() == [2, 4, 6]


def test_ctrl_c_does_not_wait_for_tasks(crew, interruptible):
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(crew, partial(kernels.sleeping, 60), [1, 2])
    assert run(crew, kernels.doubled, [1, 2])["n"].to_pylist() == [2, 4]


def test_processes_are_started_when_enough_work_came_by(monkeypatch):
    crew = Crew(2)
    half = room.PAYS_AT_BYTES // 2
    assert not crew.is_ready_for(kernels.doubled, 2, half)
    assert not crew.is_ready_for(kernels.doubled, 1, half * 10)  # one task: nothing to share
    assert not crew.is_ready_for(kernels.doubled, 2, room.LEAST_BYTES - 1)
    assert not crew._is_started
    assert not crew.is_ready_for(kernels.doubled, 2, half)  # started now, in the background
    crew.start(kernels.doubled)
    assert crew.is_ready_for(kernels.doubled, 2, half)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not crew.is_ready_for(kernels.doubled, 2, half)  # a forked process has none
    monkeypatch.undo()
    crew.end()
    assert not crew.is_ready_for(kernels.doubled, 2, half)


def test_threads_do_the_work_where_no_process_starts(monkeypatch):
    monkeypatch.setattr("sys.executable", "/no/such/python")
    crew = Crew(2)
    crew.start(kernels.doubled)
    assert not crew.is_ready_for(kernels.doubled, 2, room.PAYS_AT_BYTES)


def test_the_engine_hands_work_to_the_crew_unless_rows_come_back(crew, monkeypatch):
    monkeypatch.setattr("rowlake.engine.spark.shared_crew", lambda: crew)
    tasks, size = [1, 2], room.LEAST_BYTES
    apart = Engine().run(kernels.process_id, tasks, OUTPUT, size_in_bytes=size)
    assert os.getpid() not in apart["n"].to_pylist()
    here = Engine().run(kernels.process_id, tasks, OUTPUT, size_in_bytes=size, returns_rows=True)
    assert set(here["n"].to_pylist()) == {os.getpid()}
