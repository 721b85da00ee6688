"""Small parts of Spark's workers: which rows a sink accepts, how often state is accessed, how errors leave a worker."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="B1 on Spark: what runs in Spark's workers")

from emberflow.connectors.dataframe import DataFrameSink
from emberflow.engines.spark.engine import SparkEngine
from emberflow.engines.spark.wire import markers
from emberflow.engines.spark.wire.arrow_rows import record_batches
from emberflow.engines.spark.wire.job_spec import dump_spec
from emberflow.engines.spark.wire.packet_rows import (
    PARKED,
    STATS,
    PacketRow,
    _murmur3,
    group_ids,
    is_for_sink,
    sink_dest,
    sink_number,
)
from emberflow.engines.spark.wire.task_output import TaskOutput
from emberflow.engines.spark.worker.batch_record import RecordedState
from emberflow.engines.spark.worker.sink_writer import write_task
from emberflow.errors import StepFailed, from_marker
from emberflow.events.batch import Batch
from emberflow.events.packets import Packet, encode_packet
from emberflow.plan.job_contract import JobConfig
from emberflow.streams import StreamExecutionEnvironment
from tests.support.spark_specs import spec_of


def test_only_rows_for_sinks_are_for_sinks() -> None:
    assert [number for number in range(3) if is_for_sink(sink_dest(number))] == [0, 1, 2]
    assert [sink_number(sink_dest(number)) for number in range(3)] == [0, 1, 2]
    assert not any(is_for_sink(dest) for dest in (STATS, PARKED, 0, 1, 7))


def test_a_sink_ignores_rows_that_are_not_for_it() -> None:
    """Counts of parked runs, whatever they carry, and packets for stages."""
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).print()
    spec = spec_of(
        env.job_graph(),
    )
    packet = encode_packet(
        Packet(edge=0, channel=0, sequence=0, batch=Batch([1, 2]), watermark=None, at_end=False)
    )
    rows = [PacketRow(0, dest, 1, 0, data) for dest, data in
            [(PARKED, packet), (PARKED, b""), (STATS, packet), (0, packet), (sink_dest(0), packet)]]  # fmt: skip
    prepared, to_client = TaskOutput.from_bytes(write_task(dump_spec(spec), record_batches(rows)))
    assert prepared == {}
    assert to_client == [(0, 0, packet)]


class Value:
    """Spark's ValueState of one group: reading it while it is missing is logged as a warning."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None
        self.calls: list[str] = []

    def exists(self) -> bool:
        self.calls.append("exists")
        return self.value is not None

    def get(self) -> Any:
        assert self.value is not None, "Spark warns: Value state hot1 doesn't contain a value"
        self.calls.append("get")
        return self.value

    def update(self, value: tuple[bytes]) -> None:
        self.calls.append("update")
        self.value = value


def test_missing_state_is_not_read_and_known_state_is_read_directly() -> None:
    value, known = Value(), set[int]()

    def next_batch() -> RecordedState:
        made = RecordedState(1, value, None)
        made.known = known
        value.calls.clear()
        return made

    first = next_batch()
    assert first.get_hot(5) is None
    first.put_hot(5, b"state")
    assert first.get_hot(5) == b"state"
    assert value.calls == ["exists", "update", "get"]
    assert next_batch().get_hot(5) == b"state"
    assert value.calls == ["get"], "one round trip"
    known.clear()
    another_process = next_batch()
    assert [another_process.get_hot(5), another_process.get_hot(5)] == [b"state", b"state"]
    assert value.calls == ["exists", "get", "get"]


FAILED = StepFailed(
    "step 'score' could not process the value 5",
    cause="ValueError: no",
    way_out="fix the function; --traceback shows the Python stack",
    committed="the batch was not committed",
)


def fails() -> None:
    raise FAILED


def fails_later() -> Iterator[int]:
    yield 1
    raise FAILED


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("function", [fails, fails_later])
def test_what_a_query_shows_of_an_error(function: Any) -> None:
    with pytest.raises(markers.ReadableError) as caught:
        list(markers.readable_errors(function)())
    shown = "".join(traceback.format_exception_only(caught.value)).splitlines()
    assert shown == [
        "emberflow: StepFailed [EF2101]: step 'score' could not process the value 5",
        "  cause: ValueError: no",
        "  what to do: fix the function; EMBERFLOW_TRACEBACK=1 shows the Python stack",
    ]
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1", "Spark reports nothing else"


@pytest.mark.usefixtures("environment")
def test_a_requested_traceback_is_not_hidden() -> None:
    with pytest.raises(markers.ReadableError):
        markers.traced_errors(fails)()
    assert os.environ["SPARK_HIDE_TRACEBACK"] == ""


def test_a_job_finds_its_error_in_sparks_stack_trace() -> None:
    with pytest.raises(RuntimeError) as caught:
        list(markers.carries_errors(fails_later)())
    assert str(from_marker(str(caught.value))) == str(FAILED)


@pytest.mark.parametrize(
    ("traceback_wanted", "form"), [(False, markers.ErrorForm.READABLE), (True, markers.ErrorForm.TRACED)]
)
def test_a_query_started_by_the_user_has_readable_errors(
    traceback_wanted: bool, form: markers.ErrorForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).sink_to(DataFrameSink("id long"))
    engine = SparkEngine(spark=object())
    asked: list[Any] = []

    def translation(spec: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["errors"])
        raise InterruptedError

    monkeypatch.setattr(engine, "_frame_spec", lambda *_: None)
    monkeypatch.setattr(engine, "_translation", translation)
    with pytest.raises(InterruptedError):
        engine.to_dataframe(
            env.job_graph(), JobConfig(parallelism=1, max_parallelism=8, show_traceback=traceback_wanted)
        )
    assert asked == [form]


def test_each_error_form_names_a_function() -> None:
    for form in markers.ErrorForm:
        assert callable(getattr(markers, form.value))


def test_groups_spread_over_sixteen_partitions_are_spread_over_their_divisors() -> None:
    """So that a DataFrame's query may be restarted with another parallelism: its groups keep their numbers."""
    ids = group_ids(128, 16)
    for partitions in (1, 2, 4, 8, 16):
        counts = Counter(_murmur3(number) % partitions for number in ids)
        assert set(counts.values()) == {128 // partitions}
