"""The Spark session: the user's, else the active one, else a local one made here.

A session of the user's is never configured. One made here listens on the loopback interface
only, shows no console and no UI, and runs the Python that runs rowlake.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rowlake.engine.interrupts import cancel_all_on_interrupt, held_back
from rowlake.engine.java import cache_folder, java_home
from rowlake.engine.launcher import launching_quietly
from rowlake.engine.quiet import silence_refusals
from rowlake.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

GIB = 1024**3
# The kernel's limit on the path of a Unix domain socket is 108 bytes; Spark adds a UUID's name to
# the folder of its own, whose name has eight random letters.
_SOCKETS = "rowlake-"
MAX_TEMPORARY_FOLDER = 60 - len(_SOCKETS) - 9
# What plans hide of a read's options besides secret, password, token and access.key, Spark's own:
# `catalog.uri` may hold a password, and PyIceberg's names have hyphens.
HIDDEN_OPTIONS = (
    "(?i)url|uri|(access|account|api|encryption|private|shared|sse).?key|credential|"
    "connection.?string|kerberos.?ticket|authorization|sas|passwd|passphrase|pwd"
)

LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
logger.spark.name = org.apache.spark
logger.spark.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
"""


def active_session() -> SparkSession | None:
    """Return the session that the user's code has active, None where there is none."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    connect = sys.modules.get("pyspark.sql.connect.session")
    if found is None and connect is not None:
        found = connect.SparkSession.getActiveSession()
    return found


def make_session(settings: dict[str, str] | None = None) -> tuple[SparkSession, bool]:
    """Return a session and whether it was made here (so that closing the lake stops it).

    Where the process was started by Spark (spark-submit, a notebook kernel), is told a remote
    server, or has a running context, Spark's own configuration decides and is left alone.
    Raises EngineError without Java, or when Spark does not start.
    """
    if os.environ.get("SPARK_REMOTE") or os.environ.get("PYSPARK_GATEWAY_PORT"):
        return _get_or_create({}), False
    context = sys.modules.get("pyspark.core.context")
    if context is not None and context.SparkContext._active_spark_context is not None:
        return _get_or_create({}), False
    _prepare_environment()
    with launching_quietly(), held_back() as hold:
        session = _get_or_create({**local_settings(), **(settings or {})}, hold)
        cancel_all_on_interrupt(lambda: session.sparkContext.cancelAllJobs())
    silence_refusals()
    return session, True


def _get_or_create(
    settings: dict[str, str], context_made: Callable[[], None] | None = None
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        if context_made is not None and "spark.remote" not in settings:
            SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
            context_made()
        return builder.getOrCreate()
    except Exception as cause:
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise EngineError(f"Cannot start Spark: {first}. What Java said is above.") from cause


def _prepare_environment() -> None:
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    # PySpark reads this from the environment only; what the user has set stays.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def local_settings() -> dict[str, str]:
    """Return the settings of a session made here; the time zone is left to the user's system."""
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "rowlake",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{driver_memory_in_bytes() // 1024**2}m",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_configuration()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.daemon.module": "rowlake.engine.daemon",
        "spark.sql.redaction.options.regex": HIDDEN_OPTIONS,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    }
    if os.name == "posix" and len(tempfile.gettempdir()) <= MAX_TEMPORARY_FOLDER:
        # Over TCP every task waits 40 ms for a delayed acknowledgement, twice.
        settings["spark.python.unix.domain.socket.enabled"] = "true"
        settings["spark.python.unix.domain.socket.dir"] = _socket_folder()
    return settings


@lru_cache(maxsize=1)
def _socket_folder() -> str:
    """Return a folder that only this user enters, removed at the end of the process.

    Python workers run what they are sent and ask no sender on such a socket for a secret: who may
    open the socket's file runs code here.
    """
    folder = tempfile.mkdtemp(prefix=_SOCKETS)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def driver_memory_in_bytes() -> int:
    """Return a quarter of this machine's memory, at least 1 and at most 8 GiB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 4 * GIB
    return max(GIB, min(8 * GIB, total // 4))


def _log_configuration() -> Path:
    """Return a log4j file that keeps Spark quiet: errors only, task failures come as exceptions."""
    path = cache_folder() / "log4j2.properties"
    if not path.exists() or path.read_text() != LOG4J:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(LOG4J)
        fresh.replace(path)
    return path
