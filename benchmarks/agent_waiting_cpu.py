"""The cost of a thousand waiting calls: processor time of this process and its descendants, beyond the idle query.

The idle query is the same job with calls that end at once. On Spark it runs a micro-batch without inputs every half
second, which waiting calls delay: "beyond idle" says little there unless the idle query meets its own target.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.agent_jobs import OneCall, with_agent
from benchmarks.idle_and_soak import IDLE_LOCAL_PERCENT, IDLE_SPARK_PERCENT
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.processes import usage
from benchmarks.session import environment, spark_session
from benchmarks.steered_source import Bursts
from emberflow.streams import CollectSink, RuntimeExecutionMode, StreamExecutionEnvironment

CALLS = 1_000
SLICES = 5
BEYOND_IDLE_PERCENT = 5
# Two bursts, the second one never: the query keeps running.
NEVER_MS = 3_600_000

MakeEnvironment = Callable[[], StreamExecutionEnvironment]


class CallsAtOnce(Bursts):
    def __init__(self, call_ms: int) -> None:
        super().__init__(CALLS, NEVER_MS, 2)
        self._call_ms = call_ms

    def value(self, channel: int, position: int) -> Any:
        return super().value(channel, position)[0], self._call_ms


def run(options: Options) -> list[Measure]:
    seconds = options.pick(8, 60)
    measures = rows("local", _local, IDLE_LOCAL_PERCENT, 2, seconds, options)
    with spark_session("waiting calls") as session:
        return measures + rows("Spark", lambda: _streaming(session), IDLE_SPARK_PERCENT, 15, seconds, options)


def _local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def _streaming(session: Any) -> StreamExecutionEnvironment:
    env = environment(session, max_records_per_batch=CALLS)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    return env


def rows(
    where: str, make: MakeEnvironment, idle_bar: float, settle_s: int, seconds: int, options: Options
) -> list[Measure]:
    idling, with_calls = idle_percents(make(), settle_s, seconds), waiting_percents(make(), settle_s, seconds)
    options.details[where] = {"idle": idling, "waiting": with_calls}
    idle, waiting = statistics.median(idling), statistics.median(with_calls)
    return [
        Measure(
            name=f"beyond idle, {where}",
            value=waiting - idle,
            unit="%",
            bar=at_most(BEYOND_IDLE_PERCENT),
            note="of one core",
        ),
        Measure(name=f"while {CALLS:,} calls wait, {where}", value=waiting, unit="%"),
        Measure(name=f"idle, {where}", value=idle, unit="%", bar=at_most(idle_bar)),
    ]


def idle_percents(env: StreamExecutionEnvironment, settle_s: int, seconds: int) -> list[float]:
    client, began = start(env, 0)
    try:
        _until_all(began)
        time.sleep(settle_s)
        return cpu_percents(seconds)
    finally:
        client.cancel()


def waiting_percents(env: StreamExecutionEnvironment, settle_s: int, seconds: int) -> list[float]:
    call_s = settle_s + seconds + 5
    client, began = start(env, call_s * 1000)
    try:
        time.sleep(settle_s)
        measured_s = time.time()
        used = cpu_percents(seconds)
        ended_s = time.time()
        _until_all(began)
    finally:
        client.cancel()
    if max(began) > measured_s or min(began) + call_s < ended_s:
        raise RuntimeError("the machine is too busy: not all calls waited while processor time was measured")
    return used


def start(env: StreamExecutionEnvironment, call_ms: int) -> tuple[Any, list[float]]:
    """The job, and a list of the times at which its calls started; it is filled when they have ended."""
    began: list[float] = []
    outputs = with_agent(env.from_source(CallsAtOnce(call_ms)), OneCall())
    outputs.sink_to(CollectSink(lambda batch: began.extend(began_s for _, began_s in batch.values)))
    return env.execute_async("waiting calls"), began


def cpu_percents(seconds: int) -> list[float]:
    """Processor time of the next seconds in percent of one core, slice by slice.

    A process that ends removes its usage from the sum: that invalidates a slice, which the median ignores.
    """
    found: list[float] = []
    for _ in range(SLICES):
        before, began = usage(), time.monotonic()
        time.sleep(seconds / SLICES)
        found.append(100 * (usage().cpu_s - before.cpu_s) / (time.monotonic() - began))
    return found


def _until_all(began: list[float]) -> None:
    deadline = time.monotonic() + 120
    while len(began) < CALLS:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(began)} of {CALLS} calls have ended")
        time.sleep(0.1)
