"""Creates a Spark session: the caller's, the active one, or our own, which stays quiet."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emberflow.engines.spark.session.java import find_java
from emberflow.errors import NotSupported

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PYTHON_START = str(Path(__file__).with_name("python_start"))
"""On the path of Spark's Python processes, so that they run its `sitecustomize.py`; harmless where it does not exist."""
FUNCTION_LIMIT = "spark.broadcast.UDFCompressionThreshold"
"""Larger functions are sent as broadcast variables, which the process that asks for a query's state cannot read."""
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def own_session(master: str | None) -> Any:
    """A new session. Output of the JVM and the workers goes to a log file, not to the user's terminal."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    work = tempfile.mkdtemp(prefix="emberflow-spark-")
    # Executors of a local cluster would otherwise run inside the installed pyspark package.
    os.environ.setdefault("SPARK_WORKER_DIR", work)
    builder: Any = SparkSession.builder
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    settings = {
        "spark.app.name": "emberflow",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.log.level": "WARN",
        "spark.sql.warehouse.dir": os.path.join(work, "warehouse"),
        # Shuffled records and working copies of state, which Spark creates according to the umask.
        "spark.local.dir": os.path.join(work, "local"),
        "spark.speculation": "false",
        FUNCTION_LIMIT: str(256 * 1024 * 1024),
        # Spark keeps the user-interface data of a thousand past jobs; micro-batches are jobs.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "40",
        "spark.ui.retainedTasks": "400",
        "spark.sql.ui.retainedExecutions": "20",
    }
    if master is None or master.partition("[")[0] == "local":
        # Everything is on this machine: the driver's ports, which require no password, need not be reachable from others.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _output_to(os.path.join(work, "spark.log")), _python_path(_with_python_start(os.environ)):
        handler = (
            signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        )
        session = builder.master(master or "local[*]").getOrCreate()
        if handler is not None:
            # Spark installs a handler that cancels jobs without our knowledge; stopping is up to the job.
            signal.signal(signal.SIGINT, handler)
    _ignore_lost_connections()
    atexit.register(_stop_quietly, session, work)
    return session


def check_function_size(session: Any, size: int) -> None:
    """Raises if the code for Python processes is larger than a caller's session allows a function to be."""
    if is_connect(session):
        return
    found = re.fullmatch(r"(\d+)([kmg]?)b?", str(session.conf.get(FUNCTION_LIMIT, "1m")).strip().lower())
    # A pickled function is slightly larger than its contents.
    if found and size + 64 * 1024 > int(found[1]) * 1024 ** " kmg".index(found[2] or " "):
        raise NotSupported(
            f"the program and its own modules are {size // 1024:,} KB, more than this session accepts in one function",
            way_out=f'create the session with .config("{FUNCTION_LIMIT}", "256m"), or install the modules on the cluster',
        )


def _ignore_lost_connections() -> None:
    """Ctrl-C reaches the JVM as well; if it ends first, a server thread of pyspark prints the lost connection as a stack
    trace. This uses pyspark internals, but only for cosmetics; nothing depends on it."""
    server: Any = getattr(importlib.import_module("pyspark.accumulators"), "AccumulatorTCPServer", None)
    if server is None or "handle_error" in vars(server):
        return
    report = server.handle_error

    def handle_error(self: Any, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            report(self, request, client_address)

    server.handle_error = handle_error


def _stop_quietly(session: Any, work: str) -> None:
    """Threads of pyspark that talk to the JVM report its end as an error, which is irrelevant at the end of the program."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        session.stop()
        time.sleep(0.05)
    shutil.rmtree(work, ignore_errors=True)


def _with_python_start(environment: Mapping[str, str]) -> str:
    """The module search path with our folder first."""
    before = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.pathsep.join([PYTHON_START, *(entry for entry in before if entry != PYTHON_START)])


@contextmanager
def _python_path(wanted: str) -> Generator[None]:
    """Applies to child processes started inside the block."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = wanted
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def _output_to(path: str) -> Generator[None]:
    """Redirects the output of child processes started inside the block (the JVM, and through it the workers) to the file."""
    sys.stdout.flush()
    sys.stderr.flush()
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)


@contextmanager
def settings(session: Any, wanted: dict[str, str]) -> Generator[None]:
    """Session settings while a query starts or a batch job runs; Spark keeps a copy per query."""
    before: dict[str, str | None] = {}
    for name, value in wanted.items():
        before[name] = session.conf.get(name, None)
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def make_active(session: Any) -> None:
    """Spark finds our data sources only through the session that is active in the calling thread, and a job has its own
    thread. Creating a DataFrame is the public way to make a session active."""
    session.createDataFrame([], "nothing int")


def query_settings(parallelism: int, checkpoint: str) -> dict[str, str]:
    wanted = {
        "spark.sql.shuffle.partitions": str(parallelism),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.noDataProgressEventInterval": "1000",
    }
    if "://" not in checkpoint:
        # An internal setting, for speed only: on a local disk the default manager forks a process per file.
        wanted["spark.sql.streaming.checkpointFileManagerClass"] = FILE_MANAGER
    return wanted


def on_one_machine(session: Any) -> bool:
    """Whether all workers are certain to see the driver's files."""
    return str(session.conf.get("spark.master", "")).startswith("local")


def start_python_quickly(session: Any) -> None:
    """Applies to the Python processes of jobs translated from now on."""
    if not is_connect(session):
        environment: dict[str, str] = session.sparkContext.environment
        environment["PYTHONPATH"] = _with_python_start(environment)


def is_connect(session: Any) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")
