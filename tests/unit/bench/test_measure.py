import subprocess
import sys
import time

import pytest

from bench.measure import Measurement, Reported, Sample, measure
from bench.processes import forgets_children, program_of, unshared_bytes

BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_cpu_of_a_reaped_child_counts():
    sample, _ = measure(lambda: subprocess.run([sys.executable, "-c", BURN], check=True))
    assert sample.cpu_s >= 0.28


FORGETFUL = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if child == 0:
    end = time.process_time() + 1.0
    while time.process_time() < end: pass
    os._exit(0)
print("ready", flush=True)
try:
    while True:
        os.kill(child, 0)
        time.sleep(0.02)
except ProcessLookupError:
    pass
"""


def test_cpu_of_a_child_that_nobody_waits_for_counts():
    def work():
        with subprocess.Popen([sys.executable, "-c", FORGETFUL], stdout=subprocess.PIPE) as parent:
            parent.stdout.readline()
            return forgets_children(parent.pid)

    sample, forgetful = measure(work)
    assert forgetful
    assert sample.cpu_s >= 0.5


def test_sleep_costs_wall_time_and_no_cpu():
    sample, _ = measure(lambda: time.sleep(0.2))
    assert sample.wall_s >= 0.2
    assert sample.cpu_s < 0.1


def test_memory_peak_sees_an_allocation():
    def work():
        kept = bytearray(b"x" * 200_000_000)
        time.sleep(0.3)
        return len(kept)

    sample, _ = measure(work)
    assert sample.grown_bytes > 150_000_000


def test_bytes_read_are_counted(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(b"x" * 3_000_000)
    sample, content = measure(path.read_bytes)
    assert len(content) == 3_000_000
    assert sample.read_bytes >= 3_000_000


def test_facts_of_the_work_join_the_sample():
    sample, _ = measure(lambda: {"facts": {"files": 3}})
    assert sample.value("files") == 3.0


def test_reported_cost_is_taken_as_it_is():
    reported = Sample(1.5, 2.5, facts={"files": 7.0})
    assert measure(lambda: Reported(reported, "answer")) == (reported, "answer")


def test_median_is_over_all_samples_and_metrics_are_the_common_ones():
    found = Measurement("case", "step", "system")
    found.samples = [Sample(3, 1, facts={"a": 1}), Sample(1, 1, facts={"a": 3}), Sample(2, 1)]
    assert found.median("wall_s") == 2
    assert "a" not in found.metrics()
    assert found.as_json()["median"]["cpu_s"] == 1


def test_a_process_that_has_ended_uses_no_memory():
    assert unshared_bytes(2**22 + 1) == 0


def test_a_jvm_that_is_two_processes_for_a_moment_counts_once(monkeypatch):
    from bench import processes

    tree = processes.Tree()
    tree._parents = {1: 0, 2: 1, 3: 2, 4: 2}
    names = {1: "python3", 2: "java", 3: "java", 4: "python3"}
    monkeypatch.setattr(processes, "program_of", names.get)
    monkeypatch.setattr(processes, "unshared_bytes", lambda pid: 10**pid)
    assert processes.memory_of(tree, [1, 2, 3, 4]) == 10 + 100 + 10_000


def test_the_program_of_a_process_is_known_by_its_file():
    import os

    assert program_of(os.getpid()).startswith("python")
    assert program_of(2**22 + 1) == ""


def test_an_unknown_metric_is_an_error():
    with pytest.raises(KeyError):
        Sample(1, 1).value("nothing")
