"""Time-to-live settings of state, with PyFlink's names; used by descriptors, applied by `ttl.py`.

How state is cleaned up is the same for every strategy: expired values are removed when they are read, and in the
background a few keys at a time. `disable_cleanup_in_background()` without a strategy leaves only the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms


class UpdateType(Enum):
    """What refreshes a value's time to live."""

    Disabled = 0
    """Values do not expire."""
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class StateVisibility(Enum):
    """Whether an expired value that was not yet removed may still be read."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlTimeCharacteristic(Enum):
    """The clock that values expire by."""

    ProcessingTime = 0


class Strategies(Enum):
    """The names of the cleanup strategies."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


@dataclass(frozen=True, slots=True)
class EmptyCleanupStrategy:
    """A strategy without settings."""


@dataclass(frozen=True, slots=True)
class IncrementalCleanupStrategy:
    """What `cleanup_incrementally` was given."""

    cleanup_size: int
    every_record: bool

    def get_cleanup_size(self) -> int:
        """The number of keys that are checked at a time."""
        return self.cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """Whether keys are also checked when no state is used."""
        return self.every_record


@dataclass(frozen=True, slots=True)
class RocksdbCompactFilterCleanupStrategy:
    """What `cleanup_in_rocksdb_compact_filter` was given."""

    query_time_after_num_entries: int
    periodic_compaction_time: Interval | None = None

    def get_query_time_after_num_entries(self) -> int:
        """After how many entries the time is read again."""
        return self.query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Interval | None:
        """How often files are compacted; None for the default of 30 days."""
        return self.periodic_compaction_time


CleanupStrategy = EmptyCleanupStrategy | IncrementalCleanupStrategy | RocksdbCompactFilterCleanupStrategy


@dataclass(frozen=True)
class CleanupStrategies:
    """The cleanup strategies that were chosen."""

    strategies: Mapping[Strategies, CleanupStrategy]
    in_background: bool = True

    Strategies = Strategies
    IncrementalCleanupStrategy = IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = RocksdbCompactFilterCleanupStrategy
    EmptyCleanupStrategy = EmptyCleanupStrategy
    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def is_cleanup_in_background(self) -> bool:
        """Whether background cleanup was left enabled."""
        return self.in_background

    def in_full_snapshot(self) -> bool:
        """Whether `cleanup_full_snapshot` was called."""
        return Strategies.FULL_STATE_SCAN_SNAPSHOT in self.strategies

    def in_rocksdb_compact_filter(self) -> bool:
        """Whether state is cleaned up when RocksDB compacts it: by default, or because it was asked for."""
        return self.in_background or Strategies.ROCKSDB_COMPACTION_FILTER in self.strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """The settings of incremental cleanup; None if it was not asked for and background cleanup is disabled."""
        found = self.strategies.get(Strategies.INCREMENTAL_CLEANUP)
        if isinstance(found, IncrementalCleanupStrategy):
            return found
        return IncrementalCleanupStrategy(5, every_record=False) if self.in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
        """The settings of RocksDB's compaction filter; None if it was not asked for and background cleanup is disabled."""
        found = self.strategies.get(Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(found, RocksdbCompactFilterCleanupStrategy):
            return found
        return RocksdbCompactFilterCleanupStrategy(1000) if self.in_background else None

    @property
    def cleans_in_background(self) -> bool:
        """Whether keys that do not come back are removed."""
        own = {Strategies.INCREMENTAL_CLEANUP, Strategies.ROCKSDB_COMPACTION_FILTER}
        return self.in_background or not own.isdisjoint(self.strategies)


class StateTtlConfigBuilder:
    """Builds a `StateTtlConfig`; known as `StateTtlConfig.Builder`."""

    def __init__(self, ttl: Interval) -> None:
        self._update_type = UpdateType.OnCreateAndWrite
        self._state_visibility = StateVisibility.NeverReturnExpired
        self._characteristic = TtlTimeCharacteristic.ProcessingTime
        self._strategies: dict[Strategies, CleanupStrategy] = {}
        self._in_background = True
        self.set_ttl(ttl)

    def set_update_type(self, update_type: UpdateType) -> StateTtlConfigBuilder:
        """What refreshes a value."""
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        """Only writing refreshes a value (default)."""
        return self.set_update_type(UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        """Reading refreshes a value too."""
        return self.set_update_type(UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: StateVisibility) -> StateTtlConfigBuilder:
        """Sets whether expired values may still be read."""
        self._state_visibility = state_visibility
        return self

    def never_return_expired(self) -> StateTtlConfigBuilder:
        """Expired values are never returned (default)."""
        return self.set_state_visibility(StateVisibility.NeverReturnExpired)

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        """Expired values are returned until they are removed."""
        return self.set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)

    def set_ttl_time_characteristic(
        self, ttl_time_characteristic: TtlTimeCharacteristic
    ) -> StateTtlConfigBuilder:
        """The clock that values expire by; there is only processing time."""
        self._characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> StateTtlConfigBuilder:
        """Values expire by processing time (default)."""
        return self.set_ttl_time_characteristic(TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> StateTtlConfigBuilder:
        """Accepted for compatibility; background cleanup removes expired values before they are stored for long."""
        self._strategies[Strategies.FULL_STATE_SCAN_SNAPSHOT] = EmptyCleanupStrategy()
        return self

    def cleanup_incrementally(
        self, cleanup_size: int, run_cleanup_for_every_record: bool = False
    ) -> StateTtlConfigBuilder:
        """Keeps background cleanup on. The engine chooses how many keys are checked at a time."""
        if cleanup_size <= 0:
            raise InvalidArgument(
                f"the number of keys to clean up at a time must be positive, got {cleanup_size}"
            )
        self._strategies[Strategies.INCREMENTAL_CLEANUP] = IncrementalCleanupStrategy(
            cleanup_size, run_cleanup_for_every_record
        )
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Interval | None = None
    ) -> StateTtlConfigBuilder:
        """Keeps background cleanup on. State is cleaned up by the engine, not by RocksDB."""
        self._strategies[Strategies.ROCKSDB_COMPACTION_FILTER] = RocksdbCompactFilterCleanupStrategy(
            query_time_after_num_entries, periodic_compaction_time
        )
        return self

    def disable_cleanup_in_background(self) -> StateTtlConfigBuilder:
        """Removes expired values only when they are read, unless a cleanup strategy is set."""
        self._in_background = False
        return self

    def set_ttl(self, ttl: Interval) -> StateTtlConfigBuilder:
        """The time to live; one that is not positive raises `InvalidArgument`."""
        ttl_ms = to_ms(ttl, "ttl")
        if ttl_ms <= 0:
            raise InvalidArgument(f"a time to live must be positive, got {ttl_ms} ms")
        self._ttl = ttl
        return self

    def build(self) -> StateTtlConfig:
        """The finished configuration."""
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._characteristic,
            self._ttl,
            CleanupStrategies(dict(self._strategies), self._in_background),
        )


@dataclass(frozen=True)
class StateTtlConfig:
    """When values expire; made by `StateTtlConfig.new_builder(ttl)`."""

    update_type: UpdateType
    state_visibility: StateVisibility
    ttl_time_characteristic: TtlTimeCharacteristic
    ttl: Interval
    cleanup_strategies: CleanupStrategies

    Builder = StateTtlConfigBuilder
    UpdateType = UpdateType
    StateVisibility = StateVisibility
    TtlTimeCharacteristic = TtlTimeCharacteristic
    CleanupStrategies = CleanupStrategies

    @staticmethod
    def new_builder(ttl: Interval) -> StateTtlConfigBuilder:
        """Starts building a configuration; a time to live that is not positive raises `InvalidArgument`."""
        return StateTtlConfigBuilder(ttl)

    def get_update_type(self) -> UpdateType:
        """What refreshes a value."""
        return self.update_type

    def get_state_visibility(self) -> StateVisibility:
        """Whether expired values may still be read."""
        return self.state_visibility

    def get_ttl(self) -> Interval:
        """The time to live as it was given."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """The clock that values expire by."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether values expire at all."""
        return self.update_type is not UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """How expired values are removed."""
        return self.cleanup_strategies

    @property
    def ttl_ms(self) -> int:
        """The time to live in milliseconds."""
        return to_ms(self.ttl, "ttl")
