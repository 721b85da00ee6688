"""The public DataStream API, with PyFlink's names and argument orders."""

from typing import TYPE_CHECKING

from emberflow.lazy_names import lazy_names
from emberflow.streams.name_homes import HOMES

if TYPE_CHECKING:
    from emberflow.connectors.client_sinks import CollectSink, PrintSink
    from emberflow.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
    from emberflow.connectors.files.file_sink import FileSink
    from emberflow.connectors.files.file_sink_options import (
        BucketAssigner,
        Encoder,
        OutputFileConfig,
        RollingPolicy,
    )
    from emberflow.connectors.files.file_source import FileSource
    from emberflow.connectors.files.stream_formats import StreamFormat
    from emberflow.connectors.iterable_source import IterableSource
    from emberflow.connectors.sequence import NumberSequenceSource
    from emberflow.connectors.sink import DiscardingSink, Sink, SinkFunction, SinkWriter, WriterContext
    from emberflow.connectors.source import Chunk, Source
    from emberflow.event_time.clock import Duration, Time
    from emberflow.event_time.watermarks import (
        TimestampAssigner,
        Watermark,
        WatermarkGenerator,
        WatermarkStrategy,
    )
    from emberflow.events.output_tag import OutputTag, SideOutput
    from emberflow.events.types.instant import Instant
    from emberflow.events.types.row import Row, RowKind
    from emberflow.events.types.type_information import RowTypeInfo, TupleTypeInfo, TypeInformation
    from emberflow.operators.contexts import (
        ElementContext,
        PlainContext,
        RuntimeContext,
        TimeDomain,
        TimerService,
    )
    from emberflow.operators.partitions.broadcast_state import BroadcastState, ReadOnlyBroadcastState
    from emberflow.operators.partitions.operator_state import (
        FunctionInitializationContext,
        FunctionSnapshotContext,
        OperatorListState,
        OperatorStateStore,
    )
    from emberflow.operators.windows.window_context import KeyedStateStore, WindowContext
    from emberflow.plan.engine_options import EngineOption
    from emberflow.plan.job_contract import CheckpointingMode, JobStatus, RuntimeExecutionMode
    from emberflow.plan.restart_strategy import RestartStrategies
    from emberflow.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateTtlConfig,
        ValueStateDescriptor,
    )
    from emberflow.state.handles import AggregatingState, ListState, MapState, ReducingState, ValueState
    from emberflow.streams.all_windowed_stream import AllWindowedStream
    from emberflow.streams.async_data_stream import AsyncDataStream
    from emberflow.streams.async_retries import (
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        ExponentialBackoffDelayRetryStrategy,
        FixedDelayRetryStrategy,
        NoRetryStrategy,
        RetryPredicate,
        empty_result_predicate,
        exception_type_predicate,
        has_exception_predicate,
    )
    from emberflow.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from emberflow.streams.completable_future import CompletableFuture
    from emberflow.streams.connected_streams import ConnectedStreams
    from emberflow.streams.data_stream import DataStream, DataStreamSink
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.functions.broadcast_functions import (
        BroadcastProcessFunction,
        KeyedBroadcastProcessFunction,
    )
    from emberflow.streams.functions.checkpointed_function import CheckpointedFunction
    from emberflow.streams.functions.function import (
        AggregateFunction,
        AllWindowFunction,
        AsyncFunction,
        CoFlatMapFunction,
        CoMapFunction,
        CoProcessFunction,
        FilterFunction,
        FlatMapFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeySelector,
        MapFunction,
        Partitioner,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessWindowFunction,
        ReduceFunction,
        WindowFunction,
    )
    from emberflow.streams.functions.join_functions import (
        CoGroupFunction,
        FlatJoinFunction,
        JoinFunction,
        ProcessJoinFunction,
    )
    from emberflow.streams.interval_join import IntervalJoin, IntervalJoined
    from emberflow.streams.joined_streams import CoGroupedStreams, JoinedStreams
    from emberflow.streams.keyed_stream import KeyedStream
    from emberflow.streams.results import CloseableIterator, JobClient, JobExecutionResult, JobID
    from emberflow.streams.settings.checkpoint_config import CheckpointConfig
    from emberflow.streams.settings.config_options import ConfigOption, ConfigOptions
    from emberflow.streams.settings.configuration import Configuration
    from emberflow.streams.settings.execution_config import ExecutionConfig
    from emberflow.streams.settings.state_backends import (
        CheckpointStorage,
        EmbeddedRocksDBStateBackend,
        ExternalizedCheckpointRetention,
        FileSystemCheckpointStorage,
        HashMapStateBackend,
        JobManagerCheckpointStorage,
        PredefinedOptions,
        StateBackend,
    )
    from emberflow.streams.slot_sharing import MemorySize, SlotSharingGroup
    from emberflow.streams.types import Types
    from emberflow.streams.windowed_stream import WindowedStream
    from emberflow.windowing.assigners import (
        GlobalWindows,
        MergingWindowAssigner,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
        WindowAssigner,
    )
    from emberflow.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
    from emberflow.windowing.evictors import CountEvictor, Evictor, TimeEvictor, TimestampedValue
    from emberflow.windowing.repeating_triggers import (
        ContinuousEventTimeTrigger,
        ContinuousProcessingTimeTrigger,
        CountTrigger,
    )
    from emberflow.windowing.serializers import (
        CountWindowSerializer,
        GlobalWindowSerializer,
        TimeWindowSerializer,
    )
    from emberflow.windowing.sessions import (
        DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows,
        EventTimeSessionWindows,
        ProcessingTimeSessionWindows,
        SessionWindowTimeGapExtractor,
    )
    from emberflow.windowing.triggers import (
        EventTimeTrigger,
        NeverTrigger,
        ProcessingTimeTrigger,
        PurgingTrigger,
        Trigger,
        TriggerResult,
    )
    from emberflow.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window
else:
    # Names are imported when they are first used.
    __getattr__, __dir__ = lazy_names(__name__, HOMES)

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AllWindowFunction",
    "AllWindowedStream",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastState",
    "BroadcastStream",
    "BucketAssigner",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "Chunk",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "CollectSink",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "ConnectedStreams",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "DataGeneratorSource",
    "DataStream",
    "DataStreamSink",
    "DiscardingSink",
    "Duration",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "ElementContext",
    "EmbeddedRocksDBStateBackend",
    "Encoder",
    "EngineOption",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "ExecutionConfig",
    "ExponentialBackoffDelayRetryStrategy",
    "ExternalizedCheckpointRetention",
    "FileSink",
    "FileSource",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FixedDelayRetryStrategy",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "HashMapStateBackend",
    "Instant",
    "IntervalJoin",
    "IntervalJoined",
    "IterableSource",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobManagerCheckpointStorage",
    "JobStatus",
    "JoinFunction",
    "JoinedStreams",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "KeyedStream",
    "ListState",
    "ListStateDescriptor",
    "MapFunction",
    "MapState",
    "MapStateDescriptor",
    "MemorySize",
    "MergingWindowAssigner",
    "NeverTrigger",
    "NoRetryStrategy",
    "NumberSequenceSource",
    "OperatorListState",
    "OperatorStateStore",
    "OutputFileConfig",
    "OutputTag",
    "Partitioner",
    "PlainContext",
    "PredefinedOptions",
    "PrintSink",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "RateLimiterStrategy",
    "ReadOnlyBroadcastState",
    "ReduceFunction",
    "ReducingState",
    "ReducingStateDescriptor",
    "RestartStrategies",
    "RetryPredicate",
    "RollingPolicy",
    "Row",
    "RowKind",
    "RowTypeInfo",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SessionWindowTimeGapExtractor",
    "SideOutput",
    "Sink",
    "SinkFunction",
    "SinkWriter",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SlotSharingGroup",
    "Source",
    "StateBackend",
    "StateTtlConfig",
    "StreamExecutionEnvironment",
    "StreamFormat",
    "Time",
    "TimeDomain",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimerService",
    "TimestampAssigner",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "ValueState",
    "ValueStateDescriptor",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "Window",
    "WindowAssigner",
    "WindowContext",
    "WindowFunction",
    "WindowedStream",
    "WriterContext",
    "empty_result_predicate",
    "exception_type_predicate",
    "has_exception_predicate",
]
