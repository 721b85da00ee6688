"""The settings of a `StreamExecutionEnvironment`: everything that can be set before a program runs."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.event_time.clock import Interval, to_ms
from emberflow.events.key_groups import DEFAULT_MAX_PARALLELISM
from emberflow.plan.engine_options import ENGINE_OPTION_NAMES, EngineOption, check_option
from emberflow.plan.job_contract import CheckpointingMode, JobConfig, RuntimeExecutionMode
from emberflow.plan.local_folders import local_folder
from emberflow.plan.restart_strategy import RestartStrategy
from emberflow.streams.program.tracebacks import user_frames_only
from emberflow.streams.settings.checkpoint_config import CheckpointConfig
from emberflow.streams.settings.configuration import Configuration
from emberflow.streams.settings.execution_config import ExecutionConfig
from emberflow.streams.settings.flink_options import HONOURED, checked, is_known
from emberflow.streams.settings.option_values import refuse, restart_of
from emberflow.streams.settings.parallelism import checked_max_parallelism, checked_parallelism

_BACKENDS = {"hashmap": "memory", "rocksdb": "sqlite", "memory": "memory", "sqlite": "sqlite"}
"""Flink's names of state backends, and those of the local engine."""


class EnvironmentSettings:
    """Base of the environment; holds no step of the program."""

    def __init__(self, checkpoint_dir: str | os.PathLike[str] | None, parallelism: int | None) -> None:
        given = os.environ.get("EMBERFLOW_CHECKPOINT_DIR") or checkpoint_dir
        self._checkpoint_dir = local_folder("the checkpoint directory", given) if given else None
        self._checkpoint_base: str | None = None
        self._checkpoints = CheckpointConfig()
        self._execution = ExecutionConfig(self)
        self._savepoint: str | None = None
        self._savepoint_dir: str | None = None
        self._allow_non_restored_state = False
        self._restart: RestartStrategy | None = None
        self._parallelism = None if parallelism is None else checked_parallelism(parallelism)
        self._local_parallelism: int | None = None
        self._max_parallelism: int | None = None
        self._mode: RuntimeExecutionMode | None = None
        self._chaining = True
        self._job_name = "emberflow job"
        self._buffer_timeout_ms = -1
        self._changelog: bool | None = None
        self._jars: tuple[str, ...] = ()
        self._python_files: tuple[str, ...] = ()
        self._state_backend: str | None = None
        self._options: dict[str, Any] = {}

    def _default_parallelism(self) -> int:
        """How many tasks the engine would use by itself."""
        raise NotImplementedError

    # options by name

    @user_frames_only
    def configure(self, configuration: Configuration | Mapping[str, Any]) -> None:
        """Applies options by name: those of Flink that have a counterpart here, and the engine options of emberflow.

        Flink's options without a counterpart change nothing (`docs/from-pyflink.md` lists them). A name that is neither
        raises `InvalidArgument` with the closest one, and nothing is applied.
        """
        given: Any = configuration
        if not isinstance(given, Configuration | Mapping):
            raise InvalidArgument(
                f"a configuration is a Configuration or a dictionary, not {shorten(given)}",
                way_out='write Configuration.from_dict({"parallelism.default": "2"})',
            )
        made = given if isinstance(given, Configuration) else Configuration.from_dict(given)  # pyright: ignore[reportUnknownArgumentType]
        if not self._knows_options():
            # The options of an engine that is not ours are its own affair.
            own = {key: value for key, value in made.items() if not is_known(key)}
            self._options.update(own)
            made = Configuration.from_dict({key: value for key, value in made.items() if key not in own})
        values = checked(made)
        for key, value in values.items():
            if key in ENGINE_OPTION_NAMES:
                self.set_option(key, value)
            elif HONOURED[key].sets != "restart":
                target, _, setter = HONOURED[key].sets.rpartition(".")
                on = {"": self, "checkpoints": self._checkpoints, "config": self._execution}[target]
                getattr(on, setter)(value)
        strategy = restart_of(values)
        if strategy is not None:
            self._restart = strategy

    @user_frames_only
    def set_option(self, name: EngineOption | str, value: Any) -> Self:
        """An engine's own setting, such as `trigger_ms` on Spark or `state_backend` on local.

        A name that no engine knows raises `InvalidArgument` with the closest one; a value that does not fit does so when
        the program runs.
        """
        if self._knows_options():
            check_option(name)
        self._options[str(name)] = value
        return self

    def _knows_options(self) -> bool:
        """Whether the engine is one of ours, whose options are known."""
        return True

    # how it runs

    def get_config(self) -> ExecutionConfig:
        """Flink's settings of how the program is executed."""
        return self._execution

    def set_parallelism(self, parallelism: int) -> Self:
        """How many tasks run in parallel; `--parallelism` on the command line wins."""
        self._parallelism = checked_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """How many tasks run in parallel: the command line's number, else the program's, else the engine's default."""
        named = os.environ.get("EMBERFLOW_PARALLELISM")
        if named:
            return int(named)
        return self._parallelism or self._local_parallelism or self._default_parallelism()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """How many tasks run in parallel where `set_parallelism()` was not called."""
        self._local_parallelism = checked_parallelism(parallelism)

    def get_default_local_parallelism(self) -> int:
        """How many tasks run in parallel where `set_parallelism()` was not called."""
        return self._local_parallelism or self._default_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups; fixed for the life of the state."""
        self._max_parallelism = checked_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        wanted = DEFAULT_MAX_PARALLELISM
        while wanted < 4 * self.get_parallelism():
            wanted *= 2
        return self._max_parallelism or wanted

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Streaming or batch; `AUTOMATIC` takes batch where every source is bounded and there is no checkpoint directory."""
        self._mode = execution_mode
        return self

    def disable_operator_chaining(self) -> Self:
        """Every step runs in a task of its own."""
        return self._set_operator_chaining(False)

    def is_chaining_enabled(self) -> bool:
        """Whether steps that follow each other may run in one task."""
        return self._chaining

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Always True: all steps have the same number of key groups."""
        return True

    def set_buffer_timeout(self, timeout_millis: Interval) -> Self:
        """Kept for its getter: records are not held back in network buffers."""
        self._buffer_timeout_ms = to_ms(timeout_millis, "buffer timeout")
        return self

    def get_buffer_timeout(self) -> int:
        """What was set, -1 by default."""
        return self._buffer_timeout_ms

    def set_job_parameters(self, parameters: dict[str, str]) -> Self:
        """What functions read with `runtime_context.get_job_parameter(name)`."""
        self._execution.set_global_job_parameters(parameters)
        return self

    def set_restart_strategy(self, strategy: RestartStrategy) -> Self:
        """What happens when the job fails; see `RestartStrategies`."""
        self._restart = strategy
        return self

    # checkpoints and savepoints

    @property
    def checkpoint_dir(self) -> str | None:
        """Where the program keeps its state; None if it keeps none."""
        return self._checkpoint_dir

    def enable_checkpointing(self, interval: Interval, mode: CheckpointingMode | None = None) -> Self:
        """How often state, positions and outputs are committed together. On Spark every micro-batch is a checkpoint."""
        self._checkpoints.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoints.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Timeout, pause and number of checkpoints."""
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints; -1 if none was set."""
        return self._checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Whether `print()` and `collect()` wait for checkpoints."""
        return self._checkpoints.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """As `get_checkpointing_mode()`."""
        return self._checkpoints.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """As `get_checkpoint_config().is_unaligned_checkpoints_enabled()`."""
        return self._checkpoints.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """As `get_checkpoint_config().is_force_unaligned_checkpoints()`."""
        return self._checkpoints.is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Kept for its getter: there is no changelog backend."""
        self._changelog = enabled
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set, None by default."""
        return self._changelog

    def set_savepoint(self, path: str | os.PathLike[str], allow_non_restored_state: bool = False) -> Self:
        """The program begins where the savepoint was taken, unless its checkpoint directory has a checkpoint already.
        Steps are matched by uid; state of steps that are gone is an error, or left out if that is allowed."""
        self._savepoint = local_folder("a savepoint", path)
        self._allow_non_restored_state = allow_non_restored_state
        return self

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Where `JobClient.trigger_savepoint()` writes if it is not given a directory."""
        self._savepoint_dir = local_folder("the savepoint directory", directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """What was set, None by default."""
        return self._savepoint_dir

    # code

    def add_python_file(self, file_path: str) -> None:
        """Makes a Python file, a folder of them or an archive (.zip, .whl, .egg) importable for functions, also in Spark's
        workers. A path that does not exist raises `InvalidArgument`."""
        path = Path(file_path).resolve()
        if not path.exists():
            raise InvalidArgument(f"there is no Python file {file_path!r}", way_out="check the path")
        self._python_files = (*self._python_files, str(path))
        # Functions run in this process too; what is already importable keeps its place.
        place = str(path.parent if path.suffix == ".py" else path)
        if place not in sys.path:
            sys.path.append(place)

    def add_jars(self, *jars_path: str) -> None:
        """Makes jars available to Spark, as `spark.jars`; without effect on `local`, which has no JVM."""
        self._jars = (*self._jars, *jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Raises `NotSupported`."""
        refuse("Java class paths cannot be added", "add_jars() adds jars to Spark")

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Raises `NotSupported`: packages are not installed while a job starts."""
        refuse(
            f"the packages of {requirements_file_path} are not installed by the job",
            "install them where the program runs and, on a Spark cluster, in the workers' Python, or ship an environment "
            "with spark.archives",
        )

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Raises `NotSupported`: archives are not unpacked for workers."""
        refuse(
            f"the archive {archive_path} is not unpacked for workers",
            "ship modules with add_python_file(), and other files with spark.archives",
        )

    def set_python_executable(self, python_exec: str) -> None:
        """The interpreter of functions. It is the one that runs the program; another one raises `NotSupported`."""
        if Path(python_exec).resolve() != Path(sys.executable).resolve():
            refuse(
                f"functions are not run with {python_exec}",
                "start the program with it; on a Spark cluster set spark.pyspark.python",
            )

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Raises `NotSupported`: there is no distributed cache."""
        refuse(f"the file {file_path} is not distributed to workers", "ship it with spark.files")

    def create_input(self, input_format: Any, type_info: Any = None) -> NoReturn:
        """Raises `NotSupported`: input formats are Java classes."""
        refuse("there are no input formats", "use from_source() with a FileSource, or from_dataframe()")

    def close(self) -> None:
        """Kept for PyFlink's programs: an environment holds nothing open."""

    # what only options set

    def _set_operator_chaining(self, enabled: bool) -> Self:
        self._chaining = enabled
        return self

    def _set_checkpoint_base(self, folder: str) -> None:
        self._checkpoint_base = local_folder("execution.checkpointing.dir", folder)

    def _set_savepoint_path(self, path: str) -> None:
        self._savepoint = local_folder("execution.state-recovery.path", path)

    def _set_allow_non_restored_state(self, allowed: bool) -> None:
        self._allow_non_restored_state = allowed

    def _set_default_job_name(self, name: str) -> None:
        self._job_name = name

    def _set_jars(self, jars: list[str]) -> None:
        self._jars = tuple(jars)

    def _set_python_files(self, paths: str) -> None:
        for path in paths.split(","):
            self.add_python_file(path.strip())

    def _set_state_backend_type(self, name: str) -> None:
        if name not in _BACKENDS:
            raise InvalidArgument(
                f"there is no state backend {name!r}{did_you_mean(name, _BACKENDS)}",
                way_out="use hashmap (in memory) or rocksdb (on disk)",
            )
        self._state_backend = _BACKENDS[name]

    def _config(self) -> JobConfig:
        checkpoint_dir, savepoint = self._checkpoint_dir, os.environ.get("EMBERFLOW_SAVEPOINT")
        if checkpoint_dir is None and self._checkpoint_base is not None:
            # As in Flink: a folder per job. One that is started again does not continue by itself.
            checkpoint_dir = os.path.join(self._checkpoint_base, uuid.uuid4().hex)
        options = dict(self._options)
        if self._state_backend == "memory" or (self._state_backend and checkpoint_dir):
            options.setdefault(EngineOption.STATE_BACKEND, self._state_backend)
        interval = self._checkpoints.get_checkpoint_interval()
        return JobConfig(
            parallelism=self.get_parallelism(),
            max_parallelism=self.get_max_parallelism(),
            mode=self._mode,
            checkpoint_dir=checkpoint_dir,
            checkpoint_interval_ms=None if interval < 0 else interval,
            checkpointing_mode=self._checkpoints.get_checkpointing_mode(),
            checkpoint_timeout_ms=self._checkpoints.get_checkpoint_timeout(),
            checkpoint_pause_ms=self._checkpoints.get_min_pause_between_checkpoints(),
            retained_checkpoints=self._checkpoints.get_retained_checkpoints(),
            savepoint=local_folder("a savepoint", savepoint) if savepoint else self._savepoint,
            allow_non_restored_state=self._allow_non_restored_state
            or bool(os.environ.get("EMBERFLOW_ALLOW_NON_RESTORED_STATE")),
            restart=self._restart,
            quiet=bool(os.environ.get("EMBERFLOW_QUIET")),
            show_traceback=bool(os.environ.get("EMBERFLOW_TRACEBACK")),
            parameters=self._execution.get_global_job_parameters(),
            jars=self._jars,
            python_files=self._python_files,
            options=options,
        )
