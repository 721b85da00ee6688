"""The Spark session of the Spark benchmarks: two slots, no user interface, RocksDB for the handwritten jobs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measurement import Skipped
from emberflow.streams import StreamExecutionEnvironment

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # As in a session that the engine creates: history for a user interface is not a leak, but looks like one.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "400",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@contextmanager
def spark_session(name: str, **settings: str) -> Iterator[Any]:
    """A new session; its working folder is removed with it."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Skipped(f"pyspark is not installed: {error}") from error
    from emberflow.engines.spark.session.java import find_java

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-", ignore_cleanup_errors=True) as folder:
        builder = SparkSession.builder.master("local[2]").appName(name)
        own = {
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.streaming.checkpointLocation": f"{folder}/checkpoints",
        }
        for key, value in {**SETTINGS, **own, **settings}.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()


def environment(
    session: Any, checkpoint_dir: str | None = None, **options: Any
) -> StreamExecutionEnvironment:
    """emberflow on that session, with two concurrent tasks."""
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="spark", spark=session, parallelism=2, checkpoint_dir=checkpoint_dir
    )
    for name, value in options.items():
        env.set_option(name, value)
    return env
