"""Savepoints of local jobs: what matches, what does not, and which checkpoint takes precedence."""

from __future__ import annotations

import asyncio
from ast import literal_eval
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from emberflow.cli.main import main
from emberflow.engines.job.checkpoint_history import read_history
from emberflow.errors import CheckpointUnusable, InvalidArgument, NotSupported, ProgramChanged, SinkFailed
from emberflow.events.batch import Batch
from emberflow.savepoints import Savepoint
from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    CollectSink,
    JobClient,
    KeyedProcessFunction,
    RuntimeContext,
    Sink,
    SinkWriter,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
    WriterContext,
)
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_BATCH, LOCAL_SQLITE, Host, TestSource
from tests.support.waiting import until

WORDS = ["a", "b", "a", "c", "a", "b"]


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: str, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def counting(env: StreamExecutionEnvironment, words: list[str], *, ends: bool, uid: str = "counts") -> Any:
    stream = env.from_source(TestSource(words, bounded=ends), source_name="words").uid("words")
    return stream.key_by(lambda word: word).process(Counting()).uid(uid)


def every(pair: Any) -> str:
    return "all"


def started(
    env: StreamExecutionEnvironment, words: list[str], out: list[Any], *, ends: bool, uid: str = "counts"
) -> JobClient:
    counting(env, words, ends=ends, uid=uid).sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid(
        "sink"
    )
    return env.execute_async("counting")


def environment(host: Host, folder: Path | None) -> StreamExecutionEnvironment:
    return host.environment(checkpoint_dir=folder).enable_checkpointing(20)


def savepoint_of(folder: Path, words: list[str] = WORDS, host: Host = LOCAL) -> Path:
    """Of a job that has counted all the words and waits for more."""
    out: list[Any] = []
    job = started(environment(host, folder / "checkpoints"), words, out, ends=False)
    until(lambda: len(out) == len(words))
    return Path(job.savepoint(folder / "savepoint", stop=True))


@pytest.mark.parametrize("host", [LOCAL, LOCAL_2, LOCAL_SQLITE], ids=str)
def test_a_job_continues_after_its_savepoint(tmp_path: Path, host: Host) -> None:
    out: list[Any] = []
    job = started(environment(host, tmp_path / "checkpoints"), [*WORDS, *WORDS], out, ends=False)
    path = job.savepoint(tmp_path / "savepoint")
    until(lambda: len(out) == 2 * len(WORDS))
    assert not job.get_job_status().result().is_final
    job.cancel()
    assert out.count(("a", 6)) == 1
    assert path == str(tmp_path / "savepoint")
    Savepoint.read(path).check()
    assert "savepoint" in [record.kind for record in read_history(tmp_path / "checkpoints")]


def test_a_job_without_checkpoint_directory_has_savepoints_too(tmp_path: Path) -> None:
    out: list[Any] = []
    env = LOCAL.environment()
    job = started(env, WORDS, out, ends=False)
    until(lambda: len(out) == len(WORDS))
    path = job.savepoint(tmp_path / "savepoint", stop=True)
    after: list[Any] = []
    env = LOCAL_2.environment().set_savepoint(path)
    started(env, [*WORDS, "a"], after, ends=True).get_job_execution_result().result()
    assert after == [("a", 4)]


def test_offline_is_the_same_as_at_the_stop(tmp_path: Path) -> None:
    for host in (LOCAL, LOCAL_SQLITE):
        folder = tmp_path / host.name
        stopped = Savepoint.read(savepoint_of(folder, host=host))
        assert main(["savepoint", "create", str(folder / "checkpoints"), str(folder / "made")]) == 0
        made = Savepoint.read(folder / "made")
        assert dict(made.step("counts").items()) == dict(stopped.step("counts").items())
        assert made.step("counts").get("a") == {"count": 3}
        assert made.sources == stopped.sources
        assert made.manifest.epoch == stopped.manifest.epoch


def test_a_jobs_own_checkpoint_takes_precedence_over_the_savepoint(tmp_path: Path) -> None:
    path = savepoint_of(tmp_path)
    out: list[Any] = []
    # As a service starts its program: always with the same settings.
    job = started(environment(LOCAL, tmp_path / "next").set_savepoint(path), [*WORDS, "a"], out, ends=False)
    until(lambda: len(out) == 1)
    job.cancel()
    again = environment(LOCAL, tmp_path / "next").set_savepoint(path)
    started(again, [*WORDS, "a", "a"], out, ends=True).get_job_execution_result().result()
    assert out == [("a", 4), ("a", 5)]


def test_steps_are_matched_by_uid(tmp_path: Path) -> None:
    path = savepoint_of(tmp_path)
    out: list[Any] = []
    env = environment(LOCAL, tmp_path / "next").set_savepoint(path)
    with pytest.raises(ProgramChanged) as caught:
        started(env, WORDS, out, ends=True, uid="renamed")
    assert "gone: keyed_process 'counts'; new: keyed_process 'renamed'" in str(caught.value)
    assert "allow_non_restored_state" in str(caught.value)
    assert not (tmp_path / "next").exists(), "a rejected start leaves no trace"

    env = environment(LOCAL, tmp_path / "next").set_savepoint(path, allow_non_restored_state=True)
    started(env, [*WORDS, "a"], out, ends=True, uid="renamed").get_job_execution_result().result()
    assert out == [("a", 1)], "the source continues, the renamed step starts empty"


def test_a_new_step_starts_empty_next_to_restored_ones(tmp_path: Path) -> None:
    path = savepoint_of(tmp_path)
    out: list[Any] = []
    env = environment(LOCAL_2, tmp_path / "next").set_savepoint(path)
    counts = counting(env, [*WORDS, "a", "d"], ends=True)
    total = counts.key_by(every).sum(1).uid("total")
    total.map(itemgetter(1)).sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
    env.execute()
    assert out == [4, 5]


def test_the_maximum_parallelism_is_fixed(tmp_path: Path) -> None:
    path = savepoint_of(tmp_path)
    env = environment(LOCAL, tmp_path / "next").set_savepoint(path).set_max_parallelism(128)
    with pytest.raises(ProgramChanged, match=r"was 64 when the savepoint .* was taken, now it is 128"):
        started(env, WORDS, [], ends=True)


def test_a_finished_job_can_be_inspected_but_has_nothing_left_to_do(tmp_path: Path) -> None:
    out: list[Any] = []
    started(environment(LOCAL, tmp_path / "c"), WORDS, out, ends=True).get_job_execution_result().result()
    assert main(["savepoint", "create", str(tmp_path / "c"), str(tmp_path / "s")]) == 0
    assert Savepoint.read(tmp_path / "s").sources["words"].ended == [True]
    again: list[Any] = []
    env = environment(LOCAL_2, tmp_path / "d").set_savepoint(tmp_path / "s")
    started(env, WORDS, again, ends=True).get_job_execution_result().result()
    assert again == []


def test_no_savepoint_of_a_job_that_has_ended_or_in_batch_mode(tmp_path: Path) -> None:
    job = started(environment(LOCAL, tmp_path / "c"), WORDS, [], ends=True)
    job.get_job_execution_result().result()
    with pytest.raises(InvalidArgument, match="the job has ended"):
        job.savepoint(tmp_path / "s")
    with pytest.raises(NotSupported, match="BATCH mode cannot start from a savepoint"):
        started(LOCAL_BATCH.environment().set_savepoint(tmp_path / "s"), WORDS, [], ends=True)


def test_urls_are_folders_of_this_machine_or_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were created in the current folder, under names such as `s3:`."""
    monkeypatch.chdir(tmp_path)
    out: list[Any] = []
    env = LOCAL.environment(checkpoint_dir=f"file://{tmp_path}/checkpoints")
    job = started(env, WORDS, out, ends=False)
    with pytest.raises(NotSupported, match="a savepoint cannot be s3://bucket/first"):
        job.savepoint("s3://bucket/first")
    with pytest.raises(NotSupported, match="cannot be hdfs://"):
        job.stop_with_savepoint(False, "hdfs://host/all")
    path = job.savepoint(f"file://{tmp_path}/savepoint", stop=True)
    assert path == f"{tmp_path}/savepoint"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["checkpoints", "savepoint"]
    with pytest.raises(NotSupported, match="the checkpoint directory cannot be s3://bucket/checkpoints"):
        LOCAL.environment(checkpoint_dir="s3://bucket/checkpoints")
    with pytest.raises(NotSupported, match="a savepoint cannot be s3://"):
        env.set_savepoint("s3://bucket/first")
    assert env.set_savepoint(f"file://{path}")._savepoint == path
    read = Savepoint.read(f"file://{path}")
    with pytest.raises(NotSupported, match="a savepoint cannot be s3://bucket/second"):
        read.write("s3://bucket/second")
    assert main(["savepoint", "create", f"{tmp_path}/checkpoints", "s3://bucket/third"]) != 0
    assert sorted(item.name for item in tmp_path.iterdir()) == ["checkpoints", "savepoint"]


def test_a_savepoint_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    out: list[Any] = []
    job = started(environment(LOCAL, tmp_path / "c"), WORDS, out, ends=False)
    (tmp_path / "taken").mkdir()
    with pytest.raises(CheckpointUnusable, match="exists already"):
        job.savepoint(tmp_path / "taken", stop=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointUnusable, match="cannot be written"):
        job.savepoint(tmp_path / "file" / "below", stop=True)
    assert not job.get_job_status().result().is_final
    job.savepoint(tmp_path / "s", stop=True)
    assert job.get_job_status().result().is_final


class PostBox(Sink):
    """Writes committed records to files, unless it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writer(self, context: WriterContext) -> SinkWriter:
        return _Letters()

    def commit(self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any]) -> None:
        if prepared and (self.folder / "shut").exists():
            raise OSError("the box is shut")
        if prepared:
            (self.folder / f"{job_id}-{epoch}").write_text(
                repr([value for part in prepared for value in part])
            )


class _Letters:
    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, batch: Batch) -> None:
        self._values.extend(batch.values)

    def prepare(self) -> list[Any]:
        return self._values

    def abort(self) -> None:
        pass


@pytest.mark.parametrize("host", [LOCAL, LOCAL_SQLITE], ids=str)
def test_prepared_output_becomes_visible_after_the_start(tmp_path: Path, host: Host) -> None:
    """A job that ends between its checkpoint and the commit of its sink, and an offline savepoint of it."""
    box = tmp_path / "box"
    box.mkdir()
    (box / "shut").touch()
    env = environment(host, tmp_path / "c")
    counting(env, WORDS, ends=True).sink_to(PostBox(box)).uid("box")
    with pytest.raises(SinkFailed, match="the box is shut"):
        env.execute()
    (box / "shut").unlink()
    assert main(["savepoint", "create", str(tmp_path / "c"), str(tmp_path / "s")]) == 0

    env = environment(LOCAL_2, tmp_path / "d").set_savepoint(tmp_path / "s")
    counting(env, WORDS, ends=True).sink_to(PostBox(box)).uid("box")
    env.execute()
    (letters,) = [literal_eval(path.read_text()) for path in box.iterdir()]
    assert sorted(letters) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1)]


def test_a_checkpoint_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    """An asynchronous step must come to rest first; its calls wait until the test releases them."""
    out: list[Any] = []
    gate = tmp_path / "gate"

    class Waiting(AsyncFunction):
        async def async_invoke(self, value: str) -> list[str]:
            while not gate.exists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return [value]

    env = environment(LOCAL, tmp_path / "c")
    env.get_checkpoint_config().set_checkpoint_timeout(30).set_min_pause_between_checkpoints(10)
    stream = env.from_source(TestSource(WORDS, bounded=False), source_name="words").uid("words")
    waited = AsyncDataStream.unordered_wait(stream, Waiting(), Time.seconds(60)).uid("waits")
    waited.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
    job = env.execute_async()
    until(lambda: any("aborted" in record.outcome for record in read_history(tmp_path / "c")))
    gate.touch()
    until(lambda: sorted(out) == sorted(WORDS))
    job.cancel()
    assert read_history(tmp_path / "c")[-1].outcome == "complete"


def test_the_configured_number_of_checkpoints_is_retained(tmp_path: Path) -> None:
    env = environment(LOCAL, tmp_path / "c")
    env.enable_checkpointing(5).get_checkpoint_config().set_retained_checkpoints(4)
    out: list[Any] = []
    job = started(env, WORDS, out, ends=False)
    until(lambda: len(read_history(tmp_path / "c")) > 8)
    job.cancel()
    assert len(list((tmp_path / "c" / "local").glob("*.ckpt"))) == 4
    record = read_history(tmp_path / "c")[-1]
    assert record.kind == "checkpoint"
    assert record.bytes > 0
    assert main(["checkpoints", str(tmp_path / "c")]) == 0


class Counted(WatermarkGenerator):
    """One below the highest timestamp so far, which it keeps itself."""

    def __init__(self) -> None:
        self.highest = 0

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self.highest = max(self.highest, timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(Watermark(self.highest - 1))


def second(item: Any, timestamp: int) -> int:
    return item[1]


def windowed(env: StreamExecutionEnvironment, count: int, out: list[Any], *, ends: bool) -> JobClient:
    strategy = WatermarkStrategy.for_generator(Counted).with_timestamp_assigner(second)
    items = [("a" if number % 2 else "b", number * 10) for number in range(count)]
    stream = env.from_source(TestSource(items, bounded=ends), source_name="items").uid("items")
    stamped = stream.assign_timestamps_and_watermarks(strategy).uid("stamped")
    sums = stamped.key_by(itemgetter(0)).window(TumblingEventTimeWindows.of(100)).sum(1).uid("windows")
    sums.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
    return env.execute_async("windowed")


def test_a_watermark_generator_continues_in_a_program_with_more_steps(tmp_path: Path) -> None:
    """Its state belongs to channels, which have other numbers now."""
    expected: list[Any] = []
    windowed(LOCAL.environment(), 40, expected, ends=True).get_job_execution_result().result()
    out: list[Any] = []
    job = windowed(environment(LOCAL, tmp_path / "c"), 25, out, ends=False)
    until(lambda: len(out) >= 4)
    path = job.savepoint(tmp_path / "s", stop=True)
    (generator,) = [
        step for step in Savepoint.read(path).steps.values() if step.kind == "watermark_generator"
    ]
    ((key, values),) = generator.items()
    assert key[1] == 0
    assert values["$highest"] == 239

    env = environment(LOCAL_2, tmp_path / "d").set_savepoint(path)
    more = env.from_collection([("x", 1)]).uid("more").key_by(itemgetter(0)).sum(1).uid("more sums")
    more.sink_to(CollectSink(lambda batch: None)).uid("more sink")
    windowed(env, 40, out, ends=True).get_job_execution_result().result()
    assert sorted(out) == sorted(expected)
