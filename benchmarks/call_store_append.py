"""The cost of one durable record when 1,000 calls are in flight: on a local disk, in Postgres, in a bucket.

Postgres and the S3 server run on the same machine as the writers; the S3 server is designed for tests, not for speed.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measurement import Measure, Options, at_most
from emberflow.durable.location import open_store
from emberflow.durable.log import StoredCallLog
from emberflow.operators.agents.calls.durable_calls import CallRecord
from tests.support.call_stores.servers import BucketServer, PostgresServer

IN_FLIGHT = 1_000
GROUP = 50
RECORD = b"x" * 500
JOB = "benchmark"


def run(options: Options) -> list[Measure]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="emberflow-bench-")))
        postgres, bucket = PostgresServer(fsync=True), BucketServer()
        stack.callback(postgres.stop)
        stack.callback(bucket.stop)
        places = {
            "files on a local disk": (str(folder), options.pick(10, 50)),
            "Postgres": (postgres.dsn, options.pick(10, 50)),
            "S3": (f"{bucket.uri}/calls?{bucket.settings}", options.pick(3, 10)),
        }
        measures: list[Measure] = []
        for name, (address, rounds) in places.items():
            logged_us = repeated(seconds_through_the_log, address, rounds) / IN_FLIGHT
            direct_us = repeated(seconds_in_groups, address, rounds) / GROUP
            bar = at_most(200) if address == str(folder) else None
            measures += [
                Measure(name=f"{name}, 1,000 in flight", value=logged_us, unit="µs", bar=bar),
                Measure(name=f"{name}, groups of {GROUP}, no log", value=direct_us, unit="µs"),
            ]
    return measures


def repeated(seconds: Callable[[str, int], float], address: str, rounds: int) -> float:
    """Microseconds per round: the median of three, after a warm-up."""
    return statistics.median([seconds(address, rounds) for _ in range(4)][1:]) / rounds * 1e6


def seconds_through_the_log(address: str, rounds: int) -> float:
    """1,000 coroutines, each of which waits until its record is durable before it writes the next one."""
    log = StoredCallLog(open_store(address, JOB))

    async def call(number: int) -> None:
        for turn in range(rounds):
            await log.write(
                CallRecord(
                    call_id=f"{number}/{turn}", function="f", arguments="a", shown="f(a)", value=RECORD
                )
            )

    async def all_calls() -> float:
        started_s = time.perf_counter()
        await asyncio.gather(*(call(number) for number in range(IN_FLIGHT)))
        return time.perf_counter() - started_s

    log.begin(0)
    try:
        return asyncio.run(all_calls())
    finally:
        log.close()


def seconds_in_groups(address: str, rounds: int) -> float:
    store = open_store(address, JOB)
    group = [RECORD] * GROUP
    store.append(group, sync=True)
    started_s = time.perf_counter()
    for _ in range(rounds):
        store.append(group, sync=True)
    took_s = time.perf_counter() - started_s
    store.close()
    return took_s
