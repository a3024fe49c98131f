"""Ctrl-C while Spark starts and works, without Spark."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from rowlake.engine.interrupts import (
    cancel_all_on_interrupt,
    cancelled_on_interrupt,
    held_back,
)


@pytest.fixture(autouse=True)
def handler():
    """The handler of the process, as Python has it at first."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_what_is_held_back_comes_at_the_end(handler):
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back():
        interrupt()
        reached.append("end")
    assert reached == ["end"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_second_one_does_not_wait(handler):
    with pytest.raises(KeyboardInterrupt), held_back():
        interrupt()
        interrupt()
        pytest.fail("it waited")
    assert signal.getsignal(signal.SIGINT) is handler


def test_it_is_held_back_though_somebody_takes_the_signal():
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back() as hold:
        signal.signal(signal.SIGINT, lambda *_: pytest.fail("taken"))
        hold()
        interrupt()
        reached.append("end")
    assert reached == ["end"]


def test_a_handler_that_the_block_sets_stays():
    cancelled = threading.Event()
    with held_back():
        cancel_all_on_interrupt(cancelled.set)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert cancelled.wait(10)


def test_nothing_to_hold_back_and_nothing_raised(handler):
    with held_back():
        pass
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_job_is_cancelled_and_who_listened_before_hears_of_it():
    heard, cancelled = [], threading.Event()
    signal.signal(signal.SIGINT, lambda *_: heard.append("before"))
    with pytest.raises(KeyboardInterrupt), cancelled_on_interrupt(cancelled.set) as interrupted:
        interrupt()
    assert heard == ["before"]
    assert interrupted.is_set()
    assert cancelled.wait(10)


def test_other_threads_change_no_handler(handler):
    found = []

    def work() -> None:
        with held_back(), cancelled_on_interrupt(lambda: None):
            cancel_all_on_interrupt(lambda: None)
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [handler]
