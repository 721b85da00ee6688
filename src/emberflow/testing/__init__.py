"""The conformance kit: sources that crash, manual clocks, and every engine behind one decorator.

    from emberflow.testing import Crash, Host, TestSource, on_every_host

    source = TestSource([("a", 1), Crash(), ("a", 2)])

    @on_every_host
    def test_sums(host: Host, tmp_path):
        run = host.run_to_files(lambda env: env.add_source(source).key_by(lambda v: v[0]).sum(1), tmp_path)
        assert run.values == [("a", 1), ("a", 3)]

Run on one host with `pytest -k "[spark-batch]"`, without Spark with `pytest -m "not spark"`.
"""

from emberflow.testing.committed_files import LiteralEncoder, literal_files, read_committed
from emberflow.testing.comparison import per_key, unordered
from emberflow.testing.crashable_source import TestSource, Timed
from emberflow.testing.gaps import GAPS, Gap
from emberflow.testing.golden_run import assert_golden
from emberflow.testing.harness import Emitted, OperatorHarness, Outlet
from emberflow.testing.hosts import (
    BATCH_HOSTS,
    HOSTS,
    LOCAL,
    LOCAL_2,
    LOCAL_BATCH,
    LOCAL_HOSTS,
    LOCAL_SQLITE,
    SPARK,
    SPARK_BATCH,
    STREAMING_HOSTS,
    Committed,
    Host,
)
from emberflow.testing.manual_clock import ManualClock
from emberflow.testing.on_every_host import on_every_host
from emberflow.testing.recorded_model import RecordedChatModel
from emberflow.testing.run_agent import AgentTestRun, run_agent
from emberflow.testing.scripted_model import (
    ModelCall,
    Reply,
    ScriptedChatModel,
    ScriptedError,
    ScriptedTimeout,
    When,
    tool_call,
)
from emberflow.testing.sentinels import Crash, Cut, Latch, Pause, Sentinel, SimulatedCrash, WorkerKill
from emberflow.testing.spark_session import shared_session, spark_missing, stop_shared_session

__all__ = [
    "BATCH_HOSTS",
    "GAPS",
    "HOSTS",
    "LOCAL",
    "LOCAL_2",
    "LOCAL_BATCH",
    "LOCAL_HOSTS",
    "LOCAL_SQLITE",
    "SPARK",
    "SPARK_BATCH",
    "STREAMING_HOSTS",
    "AgentTestRun",
    "Committed",
    "Crash",
    "Cut",
    "Emitted",
    "Gap",
    "Host",
    "Latch",
    "LiteralEncoder",
    "ManualClock",
    "ModelCall",
    "OperatorHarness",
    "Outlet",
    "Pause",
    "RecordedChatModel",
    "Reply",
    "ScriptedChatModel",
    "ScriptedError",
    "ScriptedTimeout",
    "Sentinel",
    "SimulatedCrash",
    "TestSource",
    "Timed",
    "When",
    "WorkerKill",
    "assert_golden",
    "literal_files",
    "on_every_host",
    "per_key",
    "read_committed",
    "run_agent",
    "shared_session",
    "spark_missing",
    "stop_shared_session",
    "tool_call",
    "unordered",
]
