from __future__ import annotations

import signal
import stat
import sys
import tempfile
import types
from pathlib import Path
from unittest import mock

import pytest

from rowlake.engine import session
from rowlake.errors import EngineError


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ROWLAKE_CACHE", str(tmp_path / "cache"))


def test_a_local_session_is_local_and_quiet():
    settings = session.local_settings()
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.pyspark.python"] == sys.executable
    log4j = settings["spark.driver.extraJavaOptions"].split("=", 1)[1]
    assert Path(log4j).read_text() == session.LOG4J


def test_the_time_zone_stays_the_users():
    assert "spark.sql.session.timeZone" not in session.local_settings()


def test_workers_are_reached_by_tcp_where_a_socket_would_have_too_long_a_path(monkeypatch):
    key = "spark.python.unix.domain.socket.enabled"
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert session.local_settings()[key] == "true"
    monkeypatch.setattr(tempfile, "tempdir", "/tmp/" + "long" * 20)
    assert key not in session.local_settings()


def test_sockets_of_workers_are_where_nobody_else_can_reach_them():
    folder = Path(session.local_settings()["spark.python.unix.domain.socket.dir"])
    assert folder.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU


@pytest.mark.parametrize(("gib", "expected"), [(1, 1), (2, 1), (16, 4), (256, 8)])
def test_the_driver_takes_a_quarter_of_the_memory_within_bounds(monkeypatch, gib, expected):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gib * session.GIB // 4096}
    monkeypatch.setattr(session.os, "sysconf", pages.get)
    assert session.driver_memory_in_bytes() == expected * session.GIB


class Builder:
    """Stands for Spark's builder: remembers what it is told, fails where it is told to."""

    def __init__(self, failure=None):
        self.told, self.failure = {}, failure

    def config(self, key, value):
        self.told[key] = value
        return self

    def getOrCreate(self):
        if self.failure:
            raise self.failure
        return self


@pytest.fixture
def builder(monkeypatch):
    made = Builder()
    module = types.ModuleType("pyspark.sql")
    module.SparkSession = types.SimpleNamespace(builder=made)
    monkeypatch.setitem(sys.modules, "pyspark.sql", module)
    monkeypatch.setitem(sys.modules, "pyspark", mock.Mock())
    monkeypatch.delitem(sys.modules, "pyspark.core.context", raising=False)
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(session, "java_home", lambda: None)
    before = signal.getsignal(signal.SIGINT)
    yield made
    signal.signal(signal.SIGINT, before)


def test_where_spark_is_configured_from_outside_nothing_is_set(builder, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://server")
    assert session.make_session() == (builder, False)
    assert builder.told == {}


def test_settings_of_the_caller_win(builder):
    made, is_ours = session.make_session({"spark.master": "local[2]"})
    assert is_ours
    assert made.told["spark.master"] == "local[2]"
    assert made.told["spark.app.name"] == "rowlake"


def test_the_users_python_for_workers_stays(builder, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    session.make_session()
    assert session.os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_a_session_that_does_not_start_is_an_engine_error(builder):
    builder.failure = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")
    with pytest.raises(EngineError, match=r"Cannot start Spark: .*JAVA_GATEWAY_EXITED"):
        session.make_session()
