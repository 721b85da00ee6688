"""The list of benchmarks, as data. Each is in the module of its name, in a function `run(options)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    name: str
    what: str
    timeout_s: int = 600
    full_timeout_s: int | None = None
    """Where the full form takes much longer than the quick one."""

    @property
    def module(self) -> str:
        return f"benchmarks.{self.name}"

    def limit_s(self, *, quick: bool) -> int:
        return self.timeout_s if quick or self.full_timeout_s is None else self.full_timeout_s


BENCHMARKS = (
    Benchmark(name="import_time", what="import emberflow, and what it drags along", timeout_s=120),
    Benchmark(
        name="keyed_state_local", what="keyed ValueState per record, local, beside bytewax", timeout_s=300
    ),
    Benchmark(
        name="declared_types_local",
        what="map and keyed sum on declared rows, local, beside undeclared tuples",
        timeout_s=300,
    ),
    Benchmark(
        name="keyed_state_spark", what="keyed ValueState per record, Spark streaming, beside plain PySpark"
    ),
    Benchmark(name="window_batch_spark", what="tumbling window sum of 2 million records, Spark batch mode"),
    Benchmark(
        name="sliding_windows_local", what="sliding window sums, 60 s every 1 s against every 10 s, local"
    ),
    Benchmark(
        name="session_windows", what="session window sums over 100,000 keys, local and Spark batch mode"
    ),
    Benchmark(
        name="interval_join_spark",
        what="interval join of two inputs of 500,000, Spark batch mode; its state as a stream",
    ),
    Benchmark(
        name="model_calls",
        what="2,000 inputs, one 1 s call each through a vendor's client, local and Spark batch mode",
    ),
    Benchmark(name="async_calls_spark", what="1,000 keys, one 200 ms call each, one micro-batch"),
    Benchmark(
        name="state_growth_spark", what="the same 2,000 keys touched while state grows to a million keys"
    ),
    Benchmark(
        name="timer_growth_spark",
        what="the same 5,000 keys move their timers while 3 million timers are pending, Spark streaming",
        full_timeout_s=1_500,
    ),
    Benchmark(
        name="large_state",
        what="a list and a map of a million elements, local and Spark",
        full_timeout_s=1_200,
    ),
    Benchmark(name="idle_and_soak", what="CPU of an idle query, memory over a soak", full_timeout_s=2_400),
    Benchmark(
        name="agent_two_actions_local",
        what="two-action agent with memory, local, beside a loop and LangGraph",
    ),
    Benchmark(name="agent_two_actions_spark", what="two-action agent with memory, Spark streaming and batch"),
    Benchmark(name="agent_calls_local", what="2,000 keys waiting for calls, local, beside LangGraph"),
    Benchmark(
        name="agent_calls_spark", what="2,000 keys waiting for a 1 s call each, Spark batch and streaming"
    ),
    Benchmark(
        name="react_agents",
        what="200 ReAct runs of five model steps, OpenAI client and loopback model, local and Spark batch",
    ),
    Benchmark(name="agent_latency", what="input to output of the two-action agent at 500 inputs/s"),
    Benchmark(name="agent_waiting_cpu", what="CPU while 1,000 calls of agents wait"),
    Benchmark(name="agent_log_and_triggers", what="event log on and off; conditions against event types"),
    Benchmark(name="durable_on_off", what="2,000 calls of 100 ms, recorded and not, local and Spark"),
    Benchmark(
        name="parking_spark",
        what="500 keys beside a 20 s call; 10,000 runs parked for 10 s, Spark streaming",
    ),
    Benchmark(name="recovery_spark", what="the driver is killed with 1,000 runs in flight, Spark"),
    Benchmark(
        name="savepoint_rescale",
        what="100,000 keys of agents' memory: savepoint, and restore with twice the parallelism",
        timeout_s=900,
    ),
    Benchmark(
        name="call_store_append", what="one durable record among 1,000 in flight: local disk, Postgres, S3"
    ),
)


def named(names: list[str]) -> list[Benchmark]:
    """All of them, or those asked for; raises KeyError with the name that does not exist."""
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    return [known[name] for name in names] if names else list(BENCHMARKS)
