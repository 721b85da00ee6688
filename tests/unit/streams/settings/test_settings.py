"""`Configuration`, `env.configure()`, `ExecutionConfig` and `CheckpointConfig`: Flink's names, defaults and values."""

from __future__ import annotations

import copy
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotSupported
from emberflow.plan.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from emberflow.streams import (
    CheckpointingMode,
    ConfigOptions,
    Configuration,
    DiscardingSink,
    Duration,
    ExternalizedCheckpointRetention,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.streams.functions.function import MapFunction
from emberflow.streams.settings.flink_options import HONOURED, WITHOUT_EFFECT, canonical_name
from emberflow.streams.settings.option_values import duration_ms


def configured(**options: Any) -> StreamExecutionEnvironment:
    return with_options({name.replace("__", ".").replace("_", "-"): value for name, value in options.items()})


def with_options(options: dict[str, Any]) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(options), engine="local"
    )


def test_values_are_converted_as_flink_converts_them() -> None:
    config = Configuration().set_string("s", "text").set_integer("i", 5).set_boolean("b", True)
    config.set_float("f", 0.5).set_bytearray("y", bytearray(b"abc"))
    assert config.get_string("i", "") == "5"
    assert config.get_string("b", "") == "true"
    assert config.get_integer("i", 0) == 5
    assert config.set_string("n", "12").get_integer("n", 0) == 12
    assert config.set_string("t", "TRUE").get_boolean("t", False) is True
    assert config.get_float("i", 0) == 5.0
    assert config.get_bytearray("y", bytearray()) == bytearray(b"abc")
    assert (config.get_string("x", "d"), config.get_integer("x", 7), config.get_boolean("x", True)) == (
        "d",
        7,
        True,
    )
    assert config.to_dict()["f"] == "0.5"
    assert config.key_set() >= {"s", "i", "b"}


@pytest.mark.parametrize(
    ("ask", "value"),
    [("get_integer", "five"), ("get_boolean", "yes"), ("get_float", "half"), ("get_integer", True)],
)
def test_values_that_do_not_fit_are_refused(ask: str, value: Any) -> None:
    config = Configuration.from_dict({"name": value})
    with pytest.raises(InvalidArgument, match="the option 'name' is"):
        getattr(config, ask)("name", None)


@pytest.mark.parametrize(
    ("given", "problem"),
    [("2", "whole number"), (2.5, "whole number"), (0, "at least 1"), (-1, "at least 1")],
)
def test_a_parallelism_is_a_whole_number(given: Any, problem: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    stream = env.from_collection([1]).map(str)
    for set_it in (
        env.set_parallelism,
        env.set_default_local_parallelism,
        stream.set_parallelism,
        lambda value: StreamExecutionEnvironment.get_execution_environment(engine="local", parallelism=value),
    ):
        with pytest.raises(InvalidArgument, match=problem):
            set_it(given)
    for set_it in (env.set_max_parallelism, stream.set_max_parallelism):
        with pytest.raises(InvalidArgument, match="maximum parallelism must be"):
            set_it(given)


def test_configurations_are_added_compared_and_copied() -> None:
    first = Configuration.from_dict({"a": "1"})
    second = Configuration(first).set_string("b", "2")
    assert first.add_all(second) == second
    assert first.add_all(second, "x.").contains_key("x.b")
    assert first.remove_config("x.b")
    assert not first.remove_config("x.b")
    target: dict[str, object] = {"z": "0"}
    Configuration(second).set_integer("n", 3).add_all_to_dict(target)
    assert target == {"z": "0", "a": "1", "b": "2", "n": 3}
    assert str(second) == "{a=1, b=2}"
    assert str(Configuration.from_dict({"s3.secret-key": "x"})) == "{s3.secret-key=***}"
    again = copy.deepcopy(second)
    assert again == second
    assert hash(again) == hash(second)
    assert again.set_string("b", "3") != second
    assert (
        Configuration.parse_list_value("a;b")
        == Configuration.parse_list_value("['a', \"b\"]")
        == Configuration.parse_list_value("- a\n- b")
        == ["a", "b"]
    )
    assert ConfigOptions.key("k").int_type().default_value(3).default == 3
    assert ConfigOptions.key("k").string_type().no_default_value().default is None


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("10 s", 10_000),
        ("10s", 10_000),
        ("1 min", 60_000),
        ("2 h", 7_200_000),
        ("1 d", 86_400_000),
        ("500", 500),
        ("500 ms", 500),
        ("PT1M30S", 90_000),
        (timedelta(seconds=1), 1000),
        (Duration.of_seconds(3), 3000),
        (250, 250),
    ],
)
def test_durations_are_read_as_flink_writes_them(text: Any, milliseconds: int) -> None:
    assert duration_ms("name", text) == milliseconds


@pytest.mark.parametrize("text", ["soon", "10 parsecs", "", "PT", "-5 s"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not a duration"):
        duration_ms("name", text)


def test_options_that_have_a_counterpart_are_honoured(tmp_path: Path) -> None:
    env = with_options(
        {
            "parallelism.default": "3",
            "pipeline.max-parallelism": 256,
            "execution.runtime-mode": "batch",
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.mode": "at-least-once",
            "execution.checkpointing.timeout": "2 min",
            "execution.checkpointing.min-pause": "500 ms",
            "state.checkpoints.num-retained": "4",
            "execution.checkpointing.tolerable-failed-checkpoints": "2",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.unaligned": "true",
            "pipeline.name": "named",
            "pipeline.global-job-parameters": "region:eu,mode:a:b",
            "pipeline.operator-chaining.enabled": "false",
            "state.savepoints.dir": f"file://{tmp_path}",
            "state.backend.type": "hashmap",
            "trigger_ms": 100,
        }
    )
    checkpoints = env.get_checkpoint_config()
    assert (env.get_parallelism(), env.get_max_parallelism()) == (3, 256)
    assert checkpoints.get_checkpoint_interval() == env.get_checkpoint_interval() == 10_000
    assert checkpoints.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert checkpoints.get_checkpoint_timeout() == 120_000
    assert checkpoints.get_min_pause_between_checkpoints() == 500
    assert checkpoints.get_retained_checkpoints() == 4
    assert checkpoints.get_tolerable_checkpoint_failure_number() == 2
    assert (
        checkpoints.get_externalized_checkpoint_retention()
        is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    assert env.is_unaligned_checkpoints_enabled()
    assert not env.is_chaining_enabled()
    assert env.get_default_savepoint_directory() == str(tmp_path)
    assert env.get_config().get_global_job_parameters() == {"region": "eu", "mode": "a:b"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"restart-strategy": "none"}, NoRestart()),
        (
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "2 s",
            },
            FixedDelay(attempts=3, delay_ms=2000),
        ),
        (
            {"restart-strategy.type": "fixeddelay", "restart-strategy.failure-rate.delay": "9 s"},
            FixedDelay(attempts=1, delay_ms=1000),
        ),
        (
            {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": 5,
            },
            FailureRate(failures=5, interval_ms=60_000, delay_ms=1000),
        ),
        (
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "10 ms",
            },
            ExponentialDelay(
                initial_ms=10, max_ms=60_000, multiplier=1.5, reset_ms=3_600_000, jitter=0.1, attempts=None
            ),
        ),
    ],
)
def test_restart_strategies_by_options(options: dict[str, Any], expected: Any) -> None:
    assert with_options(options)._config().restart == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"paralelism.default": "2"},
            "there is no option 'paralelism.default'; did you mean 'parallelism.default'?",
        ),
        ({"execution.checkpointing.intervall": "2"}, "did you mean 'execution.checkpointing.interval'?"),
        ({"parallelism.default": "two"}, "the option 'parallelism.default' is 'two'"),
        ({"execution.runtime-mode": "fast"}, "the option 'execution.runtime-mode' cannot be 'fast'"),
        ({"state.backend.type": "rocks"}, "there is no state backend 'rocks'; did you mean 'rocksdb'?"),
        ({"pipeline.global-job-parameters": "a"}, "write pairs such as a:1,b:2"),
    ],
)
def test_what_is_unknown_or_does_not_fit_is_refused_with_a_suggestion(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as failure:
        with_options(options)
    assert message in str(failure.value)


def test_nothing_is_applied_if_one_name_is_unknown() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    with pytest.raises(InvalidArgument):
        env.configure({"parallelism.default": 4, "nothing.like": "this"})
    assert env.get_parallelism() == 1
    with pytest.raises(InvalidArgument, match="a configuration is a Configuration or a dictionary"):
        env.configure(7)  # pyright: ignore[reportArgumentType]


def test_every_option_of_flink_is_known() -> None:
    """`tests/compat/record_interface.py` records them."""
    recorded = Path(__file__).parents[3] / "compat" / "expected" / "options.txt"
    unknown: list[str] = []
    for name in recorded.read_text(encoding="utf-8").split():
        try:
            canonical_name(name)
        except InvalidArgument:
            unknown.append(name)
    assert unknown == []
    assert not set(HONOURED) & set(WITHOUT_EFFECT)


def test_defaults_are_flinks() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    checkpoints, config = env.get_checkpoint_config(), env.get_config()
    assert not checkpoints.is_checkpointing_enabled()
    assert checkpoints.get_checkpoint_interval() == -1
    assert checkpoints.get_checkpoint_timeout() == 600_000
    assert checkpoints.get_max_concurrent_checkpoints() == 1
    assert checkpoints.get_aligned_checkpoint_timeout() == Duration.of_millis(0)
    assert checkpoints.is_fail_on_checkpointing_errors()
    assert not checkpoints.is_externalized_checkpoints_enabled()
    assert config.is_closure_cleaner_enabled()
    assert config.has_auto_generated_uids_enabled()
    assert not config.is_object_reuse_enabled()
    assert config.get_task_cancellation_interval() == 30_000
    assert config.get_global_job_parameters() == {}


def test_every_setter_of_the_execution_config_has_its_getter() -> None:
    config = StreamExecutionEnvironment.get_execution_environment(engine="local").get_config()
    config.set_parallelism(4).set_max_parallelism(64).set_auto_watermark_interval(50)
    config.set_latency_tracking_interval(7).set_task_cancellation_interval(8).set_task_cancellation_timeout(9)
    assert (config.get_parallelism(), config.get_max_parallelism()) == (4, 64)
    assert config.get_auto_watermark_interval() == 50
    assert config.get_latency_tracking_interval() == 7
    assert (config.get_task_cancellation_interval(), config.get_task_cancellation_timeout()) == (8, 9)
    assert not config.disable_closure_cleaner().is_closure_cleaner_enabled()
    assert config.enable_force_kryo().is_force_kryo_enabled()
    assert config.enable_force_avro().is_force_avro_enabled()
    assert config.disable_generic_types().has_generic_types_disabled()
    assert config.enable_object_reuse().is_object_reuse_enabled()
    assert config.set_use_snapshot_compression(True).is_use_snapshot_compression()


class Region(MapFunction[int, str]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.region = runtime_context.get_job_parameter("region", "none")
        metrics = runtime_context.get_metrics_group().add_group("own", "one")
        self.counter = metrics.counter("records")
        self.meter = metrics.meter("rate", 10)
        self.distribution = metrics.distribution("values")
        metrics.gauge("last", lambda: self.counter.get_count())
        self.metrics = runtime_context.get_metrics_group()

    def map(self, value: int) -> str:
        self.counter.inc()
        self.meter.mark_event(2)
        self.distribution.update(value)
        seen = self.metrics.snapshot()
        assert seen["own.one.last"] == seen["own.one.records"] == self.counter.get_count()
        assert self.meter.get_count() == 2 * self.counter.get_count()
        return f"{self.region} {self.counter.get_count()} {seen['own.one.values']['sum']}"


def test_functions_read_parameters_and_keep_metrics() -> None:
    env = configured(pipeline__global_job_parameters="region:eu")
    assert env.from_collection([5, 6]).map(Region()).execute_and_collect(limit=2) == ["eu 1 5", "eu 2 11"]


def test_without_derived_uids_every_step_needs_one() -> None:
    env = configured(pipeline__auto_generate_uids=False)
    env.from_collection([1]).uid("source").map(str).sink_to(DiscardingSink()).uid("sink")
    with pytest.raises(InvalidArgument, match=r"step 'map' \(test_settings\.py:\d+\) has no uid"):
        env.execute()


def test_without_chaining_every_step_is_a_task_of_its_own() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).map(str).map(str).print()
    chained = max(len(chain) for stage in env.job_graph().stages for chain in stage.chains)
    env.disable_operator_chaining()
    assert chained > max(len(chain) for stage in env.job_graph().stages for chain in stage.chains) == 1


def test_each_job_has_a_folder_of_its_own_below_the_checkpoint_directory(tmp_path: Path) -> None:
    """As in Flink: a program that is started again does not continue, unless it names what to start from."""
    for _ in range(2):
        env = with_options(
            {"execution.checkpointing.dir": tmp_path.as_uri(), "state.backend.type": "rocksdb"}
        )
        assert env.from_collection([1, 2]).execute_and_collect(limit=5) == [1, 2]
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(NotSupported, match="cannot be s3://bucket/x"):
        with_options({"execution.checkpointing.dir": "s3://bucket/x"})


def test_python_files_are_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "added_by_a_test.py").write_text("def triple(n):\n    return 3 * n\n")
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.add_python_file(str(tmp_path / "added_by_a_test.py"))

    def triple(number: int) -> int:
        from added_by_a_test import triple  # pyright: ignore[reportMissingImports]

        return triple(number)

    assert env.from_collection([1, 2]).map(triple).execute_and_collect(limit=2) == [3, 6]
    with pytest.raises(InvalidArgument, match="there is no Python file"):
        env.add_python_file(str(tmp_path / "missing.py"))


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.set_python_requirements("requirements.txt"),
        lambda env: env.add_python_archive("venv.zip"),
        lambda env: env.set_python_executable("/nowhere/python"),
        lambda env: env.register_cached_file("a", "b"),
        lambda env: env.create_input(None),
        lambda env: env.add_classpaths("file:///a"),
        lambda env: env.configure({"python.requirements": "requirements.txt"}),
    ],
)
def test_what_cannot_be_done_names_the_way_out(call: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(NotSupported) as failure:
        call(env)
    assert failure.value.way_out


def test_the_modes_of_an_environment() -> None:
    env = configured(execution__runtime_mode=RuntimeExecutionMode.BATCH)
    assert env._config().mode is RuntimeExecutionMode.BATCH
    env.set_default_local_parallelism(3)
    assert env.get_default_local_parallelism() == env.get_parallelism() == 3
    assert env.set_buffer_timeout(5).get_buffer_timeout() == 5
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    env.set_python_executable(sys.executable)
    env.close()


@pytest.mark.parametrize(("interval", "expected"), [(0, [1, 20]), (200, [3, 20])])
def test_watermarks_follow_each_record_or_each_batch(interval: int, expected: list[int]) -> None:
    """With an interval the third record is not late: Flink's watermark would not have moved either in so short a time."""
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    windows = (
        env.from_collection([1, 20, 2])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda number: "all")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
    )
    env.get_config().set_auto_watermark_interval(interval)
    assert windows.reduce(lambda left, right: left + right).execute_and_collect(limit=3) == expected


class ForeignEngine:
    name = "foreign"
    default_parallelism = 3

    def submit(self, graph: Any, config: Any) -> Any:
        raise AssertionError("not called")


def test_an_engine_of_somebody_else_has_options_of_its_own() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"its.own": 1, "parallelism.default": 2}, engine=ForeignEngine()
    )
    assert env.get_parallelism() == 2
    assert env._config().options == {"its.own": 1}
