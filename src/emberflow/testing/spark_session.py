"""The SparkSession that a test run shares. Starting one takes seconds, so it is created on first use."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from typing import Any

from emberflow.engines.spark.session.java import find_java
from emberflow.engines.spark.session.session import FUNCTION_LIMIT


def spark_missing() -> str:
    """Why Spark cannot be used here; empty if it can."""
    return (
        ""
        if importlib.util.find_spec("pyspark")
        else 'pyspark is not installed (pip install "emberflow[spark]")'
    )


@cache
def shared_session() -> Any:
    """Two cores, no user interface, little log output; workers run this Python and can import what this process can."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java().home)
    # Workers must find the modules that define a test's functions and classes.
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if os.path.isdir(path or "."))
    os.environ["PYTHONPATH"] = paths
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    settings = {
        "spark.app.name": "emberflow tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": paths,
        # All loaded test modules are shipped with a job.
        FUNCTION_LIMIT: "256m",
        "spark.log.level": "ERROR",
        # Many short jobs: optimizing their code costs more than running it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def stop_shared_session() -> None:
    """Stops the shared session; call it once, at the end of the run."""
    if shared_session.cache_info().currsize:
        shared_session().stop()
        shared_session.cache_clear()
