"""PyFlink's classes for state backends and checkpoint storages.

The engine decides how state is kept (`docs/operations.md`): of these only the choice between memory and disk, and the
folder of checkpoints, have an effect; the rest is kept for programs that read it back.
"""

from __future__ import annotations

from enum import Enum

from emberflow.errors import NotSupported


class ExternalizedCheckpointRetention(Enum):
    """What happens to the checkpoints of a job that is canceled. They always stay here until a later one replaces them."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2


class StateBackend:
    """Where state is kept while a job runs."""


class HashMapStateBackend(StateBackend):
    """State in memory: the option `state_backend` is `memory` (local). Spark always uses RocksDB."""


class PredefinedOptions(Enum):
    """Flink's settings for kinds of disks; they have no effect here."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State on disk: SQLite on `local` (with a checkpoint directory), RocksDB on Spark."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = bool(enable_incremental_checkpointing)
        self._paths: list[str] = []
        self._predefined = PredefinedOptions.DEFAULT
        self._threads = 4

    def is_incremental_checkpoints_enabled(self) -> bool:
        """What the constructor was given; the engine writes what changed in any case."""
        return self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Kept for `get_db_storage_paths()`; the engine chooses where its files are."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """What was set."""
        return list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Kept for `get_predefined_options()`; no effect."""
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """What was set."""
        return self._predefined

    def set_options(self, options_factory_class_name: str) -> None:
        """Raises `NotSupported`: the factory would be a Java class."""
        raise NotSupported(
            f"the options factory {options_factory_class_name!r} is a Java class of Flink",
            way_out="tune Spark's RocksDB with spark.sql.streaming.stateStore.rocksdb.*",
        )

    def get_options(self) -> str | None:
        """Always None."""
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Kept for `get_number_of_transfer_threads()`; no effect."""
        self._threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """What was set."""
        return self._threads


class CheckpointStorage:
    """Where checkpoints are stored."""


class JobManagerCheckpointStorage(CheckpointStorage):
    """Flink's storage in the memory of its job manager; there is no such process here, so it only holds its settings."""

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        """What the constructor was given."""
        return self._path

    def get_max_state_size(self) -> int:
        """What the constructor was given; state is not limited by it."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Always None: see `env.set_default_savepoint_directory()`."""
        return None


class FileSystemCheckpointStorage(CheckpointStorage):
    """A folder of checkpoints, as `execution.checkpointing.dir`."""

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise NotSupported(
                "FileSystemCheckpointStorage needs a path", way_out="name the folder of the checkpoints"
            )
        self._path = checkpoint_path
        self._threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        self._buffer = 4096 if write_buffer_size < 0 else write_buffer_size

    def get_checkpoint_path(self) -> str:
        """What the constructor was given."""
        return self._path

    def get_savepoint_path(self) -> str | None:
        """Always None: see `env.set_default_savepoint_directory()`."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """What the constructor was given; the engine chooses the layout of checkpoints."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """What the constructor was given; the engine chooses the layout of checkpoints."""
        return self._buffer
