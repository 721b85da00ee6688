"""Flink's options by name: which have a counterpart here, and which are accepted without effect.

One table. `environment_settings.py` applies it, `docs/from-pyflink.md` shows it, and a name that is not in it is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean
from emberflow.plan.engine_options import ENGINE_OPTION_NAMES
from emberflow.plan.job_contract import CheckpointingMode, RuntimeExecutionMode
from emberflow.streams.settings.configuration import Configuration
from emberflow.streams.settings.option_values import Kind, read_value
from emberflow.streams.settings.state_backends import ExternalizedCheckpointRetention


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkOption:
    """An option that has a counterpart here."""

    kind: Kind
    sets: str
    """The setter: of the environment, its `config` (ExecutionConfig), its `checkpoints` (CheckpointConfig); or the part of a
    `restart` strategy."""
    older_names: tuple[str, ...] = ()
    choices: Mapping[str, Any] = field(default_factory=dict[str, Any])


_MODES = {item.name: item for item in RuntimeExecutionMode}
_CONSISTENCY = {item.name: item for item in CheckpointingMode}
_RETENTION = {item.name: item for item in ExternalizedCheckpointRetention}
_STRATEGIES = {
    name: canonical
    for canonical, names in {
        "none": ("none", "off", "disable"),
        "fixed-delay": ("fixed-delay", "fixeddelay"),
        "failure-rate": ("failure-rate", "failurerate"),
        "exponential-delay": ("exponential-delay", "exponentialdelay"),
    }.items()
    for name in names
}


def _option(
    kind: Kind, sets: str, *older_names: str, choices: Mapping[str, Any] | None = None
) -> FlinkOption:
    return FlinkOption(kind=kind, sets=sets, older_names=older_names, choices=choices or {})


HONOURED: dict[str, FlinkOption] = {
    "execution.buffer-timeout.interval": _option(
        Kind.DURATION, "set_buffer_timeout", "execution.buffer-timeout"
    ),
    "execution.checkpointing.aligned-checkpoint-timeout": _option(
        Kind.DURATION,
        "checkpoints.set_aligned_checkpoint_timeout",
        "execution.checkpointing.alignment-timeout",
    ),
    "execution.checkpointing.dir": _option(
        Kind.STRING, "_set_checkpoint_base", "state.checkpoints.dir", "state.backend.fs.checkpointdir"
    ),
    "execution.checkpointing.externalized-checkpoint-retention": _option(
        Kind.CHOICE, "checkpoints.set_externalized_checkpoint_retention", choices=_RETENTION
    ),
    "execution.checkpointing.interval": _option(Kind.DURATION, "checkpoints.set_checkpoint_interval"),
    "execution.checkpointing.max-concurrent-checkpoints": _option(
        Kind.INTEGER, "checkpoints.set_max_concurrent_checkpoints"
    ),
    "execution.checkpointing.min-pause": _option(
        Kind.DURATION, "checkpoints.set_min_pause_between_checkpoints"
    ),
    "execution.checkpointing.mode": _option(
        Kind.CHOICE, "checkpoints.set_checkpointing_mode", choices=_CONSISTENCY
    ),
    "execution.checkpointing.num-retained": _option(
        Kind.INTEGER, "checkpoints.set_retained_checkpoints", "state.checkpoints.num-retained"
    ),
    "execution.checkpointing.savepoint-dir": _option(
        Kind.STRING,
        "set_default_savepoint_directory",
        "state.savepoints.dir",
        "savepoints.state.backend.fs.dir",
    ),
    "execution.checkpointing.snapshot-compression": _option(
        Kind.BOOLEAN, "config.set_use_snapshot_compression"
    ),
    "execution.checkpointing.timeout": _option(Kind.DURATION, "checkpoints.set_checkpoint_timeout"),
    "execution.checkpointing.tolerable-failed-checkpoints": _option(
        Kind.INTEGER, "checkpoints.set_tolerable_checkpoint_failure_number"
    ),
    "execution.checkpointing.unaligned.enabled": _option(
        Kind.BOOLEAN, "checkpoints.enable_unaligned_checkpoints", "execution.checkpointing.unaligned"
    ),
    "execution.checkpointing.unaligned.forced": _option(
        Kind.BOOLEAN, "checkpoints.set_force_unaligned_checkpoints"
    ),
    "execution.runtime-mode": _option(Kind.CHOICE, "set_runtime_mode", choices=_MODES),
    "execution.state-recovery.ignore-unclaimed-state": _option(
        Kind.BOOLEAN, "_set_allow_non_restored_state", "execution.savepoint.ignore-unclaimed-state"
    ),
    "execution.state-recovery.path": _option(Kind.STRING, "_set_savepoint_path", "execution.savepoint.path"),
    "parallelism.default": _option(Kind.INTEGER, "set_parallelism"),
    "pipeline.auto-generate-uids": _option(Kind.BOOLEAN, "config.set_auto_generated_uids"),
    "pipeline.auto-watermark-interval": _option(Kind.DURATION, "config.set_auto_watermark_interval"),
    "pipeline.global-job-parameters": _option(Kind.MAP, "config.set_global_job_parameters"),
    "pipeline.jars": _option(Kind.LIST, "_set_jars"),
    "pipeline.max-parallelism": _option(Kind.INTEGER, "set_max_parallelism"),
    "pipeline.name": _option(Kind.STRING, "_set_default_job_name"),
    "pipeline.object-reuse": _option(Kind.BOOLEAN, "config.set_object_reuse"),
    "pipeline.operator-chaining.enabled": _option(
        Kind.BOOLEAN, "_set_operator_chaining", "pipeline.operator-chaining"
    ),
    "python.archives": _option(Kind.STRING, "add_python_archive"),
    "python.executable": _option(Kind.STRING, "set_python_executable"),
    "python.files": _option(Kind.STRING, "_set_python_files"),
    "python.requirements": _option(Kind.STRING, "set_python_requirements"),
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": _option(Kind.INTEGER, "restart"),
    "restart-strategy.exponential-delay.backoff-multiplier": _option(Kind.FLOAT, "restart"),
    "restart-strategy.exponential-delay.initial-backoff": _option(Kind.DURATION, "restart"),
    "restart-strategy.exponential-delay.jitter-factor": _option(Kind.FLOAT, "restart"),
    "restart-strategy.exponential-delay.max-backoff": _option(Kind.DURATION, "restart"),
    "restart-strategy.exponential-delay.reset-backoff-threshold": _option(Kind.DURATION, "restart"),
    "restart-strategy.failure-rate.delay": _option(Kind.DURATION, "restart"),
    "restart-strategy.failure-rate.failure-rate-interval": _option(Kind.DURATION, "restart"),
    "restart-strategy.failure-rate.max-failures-per-interval": _option(Kind.INTEGER, "restart"),
    "restart-strategy.fixed-delay.attempts": _option(Kind.INTEGER, "restart"),
    "restart-strategy.fixed-delay.delay": _option(Kind.DURATION, "restart"),
    "restart-strategy.type": _option(Kind.CHOICE, "restart", "restart-strategy", choices=_STRATEGIES),
    "state.backend.type": _option(Kind.STRING, "_set_state_backend_type", "state.backend"),
}

WITHOUT_EFFECT: dict[str, str] = {
    # One line each: an option, or the beginning of several that ends with a dot or a dash, and why it changes nothing.
    "execution.allow-client-job-configurations": "there is no cluster that could forbid them",
    "execution.async-state.": "state is accessed synchronously",
    "execution.attached": "execute() waits, execute_async() does not",
    "execution.batch-shuffle-mode": "the engine chooses how to shuffle",
    "execution.batch-state-backend.enabled": "batch jobs keep their state in memory",
    "execution.batch.": "the engine schedules batch jobs",
    "execution.buffer-timeout.enabled": "there are no network buffers to flush",
    "execution.checkpointing.approximate-local-recovery": "a job always recovers all of its state",
    "execution.checkpointing.checkpoints-after-tasks-finish": "checkpoints continue until the job ends",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled": "checkpoints continue until the job ends",
    "execution.checkpointing.cleaner.parallel-mode": "old checkpoints are removed one after another",
    "execution.checkpointing.create-subdir": "each job always has a folder of its own",
    "execution.checkpointing.data-inline-threshold": "the engine chooses the layout of checkpoints",
    "execution.checkpointing.during-recovery.enabled": "a job recovers before its first checkpoint",
    "execution.checkpointing.file-merging.": "the engine chooses the layout of checkpoints",
    "execution.checkpointing.incremental": "the state backend decides what it writes",
    "execution.checkpointing.interval-during-backlog": "checkpoints are taken at one interval",
    "execution.checkpointing.local-backup.": "there is one copy of a checkpoint",
    "execution.checkpointing.recover-without-channel-state.": "there is no state of channels",
    "execution.checkpointing.storage": "checkpoints are stored in files",
    "execution.checkpointing.unaligned.": "checkpoints have no barriers to align",
    "execution.checkpointing.write-buffer-size": "the engine chooses the layout of checkpoints",
    "execution.job-listeners": "listeners are Java classes",
    "execution.job-status-changed-listeners": "listeners are Java classes",
    "execution.program-config.": "a program is always configured by itself",
    "execution.savepoint-restore-mode": "a savepoint is never changed or removed",
    "execution.shutdown-on-": "a program ends when it ends",
    "execution.sort-": "the engine sorts where it needs to",
    "execution.sorted-inputs.": "the engine sorts where it needs to",
    "execution.state-recovery.": "a job always recovers all of its state",
    "execution.submit-failed-job-on-application-error": "there is no cluster to report to",
    "execution.terminate-application-on-any-job-terminated-exceptionally": "execute() raises when its job fails",
    "execution.target": "the engine is chosen with --engine and --master",
    "pipeline.cached-files": "files are read where they are",
    "pipeline.classpaths": "functions are Python",
    "pipeline.closure-cleaner-level": "functions are pickled as they are",
    "pipeline.force-": "values are pickled",
    "pipeline.generic-types": "values are pickled",
    "pipeline.jobvertex-parallelism-overrides": "use set_parallelism()",
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism": "there is one number of key groups",
    "pipeline.serialization-config": "values are pickled",
    "pipeline.sources.pause-until-first-checkpoint": "sources begin at once",
    "pipeline.vertex-": "plans show the names of steps",
    "pipeline.watermark-alignment.": "the channels of a source are always aligned",
    "python.client.executable": "the program runs in this process",
    "python.execution-mode": "functions run in Python, without a second process on local",
    "python.fn-execution.": "records reach functions in batches of the engine's size",
    "python.internal.": "it is internal to PyFlink",
    "python.job-options": "it is internal to PyFlink",
    "python.logging.": "use Python's logging",
    "python.loopback-server.": "functions run in this process on local, and in Spark's workers on spark",
    "python.map-state.": "state is in the process of its function",
    "python.metric.enabled": "metrics are always kept",
    "python.operator-chaining.enabled": "see pipeline.operator-chaining.enabled",
    "python.profile.enabled": "use a profiler of Python",
    "python.pythonpath": "use python.files",
    "python.state.cache-size": "state is in the process of its function",
    "python.systemenv.enabled": "workers inherit their environment",
    "state.backend.changelog.": "there is no changelog backend",
    "state.backend.forst.": "there is no ForSt backend",
    "state.backend.fs.": "the engine chooses the layout of checkpoints",
    "state.backend.incremental": "the state backend decides what it writes",
    "state.backend.latency-track.": "access to state is not measured",
    "state.backend.local-recovery": "there is one copy of a checkpoint",
    "state.backend.rocksdb.": "Spark tunes its RocksDB with spark.sql.streaming.stateStore.rocksdb.*",
    "state.changelog.": "there is no changelog backend",
    "state.checkpoint-storage": "checkpoints are stored in files",
    "state.checkpoint.": "old checkpoints are removed one after another",
    "state.checkpoints.create-subdir": "each job always has a folder of its own",
    "state.latency-track.": "access to state is not measured",
    "state.size-track.": "the size of state is not measured",
    "state.storage.": "the engine chooses the layout of checkpoints",
    # Flink's own processes, file systems and clients.
    **dict.fromkeys(
        (
            *(
                "akka.",
                "application-result-store.",
                "blob.",
                "classloader.",
                "client.",
                "cluster.",
                "compiler.",
                "env.",
            ),
            *(
                "events.",
                "fs.",
                "heartbeat.",
                "high-availability",
                "high-availability.",
                "historyserver.",
                "io.",
                "job-event.",
                "job-result-store.",
            ),
            *(
                "jobmanager.",
                "jobstore.",
                "kubernetes.",
                "metrics.",
                "pekko.",
                "plugin.",
                "process.",
                "query.",
                "queryable-state.",
            ),
            *(
                "recovery.",
                "resourcemanager.",
                "rest.",
                "security.",
                "slot.",
                "slotmanager.",
                "slow-task-detector.",
                "table.",
                "task.",
                "taskmanager.",
            ),
            *("traces.", "user.", "web.", "yarn.", "zookeeper."),
        ),
        "it configures Flink's own processes",
    ),
}

_CANONICAL = {older: key for key, option in HONOURED.items() for older in option.older_names}


def canonical_name(key: str) -> str | None:
    """The current name of an option that is honoured; None for one without effect. Others raise InvalidArgument."""
    if key in HONOURED or key in ENGINE_OPTION_NAMES:
        return key
    if key in _CANONICAL:
        return _CANONICAL[key]
    if key in WITHOUT_EFFECT or any(
        key.startswith(group) for group in WITHOUT_EFFECT if not group[-1].isalnum()
    ):
        return None
    known = [*HONOURED, *_CANONICAL, *WITHOUT_EFFECT, *ENGINE_OPTION_NAMES]
    raise InvalidArgument(
        f"there is no option {key!r}{did_you_mean(key, known)}",
        way_out="docs/from-pyflink.md lists the options of Flink, and docs/guide.md those of emberflow",
    )


def is_known(key: str) -> bool:
    """Whether it is an option of Flink or of emberflow."""
    try:
        canonical_name(key)
    except InvalidArgument:
        return False
    return True


def checked(configuration: Configuration) -> dict[str, Any]:
    """The values of all options that are honoured, by their current names."""
    found: dict[str, Any] = {}
    for key, value in configuration.items():
        name = canonical_name(key)
        if name is not None:
            found[name] = (
                value
                if name in ENGINE_OPTION_NAMES
                else read_value(key, HONOURED[name].kind, value, HONOURED[name].choices)
            )
    return found
