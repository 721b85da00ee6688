"""The public DataStream API, with PyFlink's names and argument orders."""

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
from emberflow.event_time.windows import (
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from emberflow.events.output_tag import OutputTag, SideOutput
from emberflow.events.type_information import TypeInformation
from emberflow.operators.contexts import (
    ElementContext,
    PlainContext,
    RuntimeContext,
    TimeDomain,
    TimerService,
)
from emberflow.operators.windows.window_context import WindowContext
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
from emberflow.streams.async_data_stream import AsyncDataStream, AsyncRetryStrategy
from emberflow.streams.checkpoint_config import CheckpointConfig
from emberflow.streams.connected_streams import ConnectedStreams
from emberflow.streams.data_stream import DataStream, DataStreamSink
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.streams.functions import (
    AggregateFunction,
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
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from emberflow.streams.interval_join import IntervalJoin, IntervalJoined
from emberflow.streams.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from emberflow.streams.joined_streams import CoGroupedStreams, JoinedStreams
from emberflow.streams.keyed_stream import KeyedStream
from emberflow.streams.results import CloseableIterator, JobClient, JobExecutionResult
from emberflow.streams.types import Types
from emberflow.streams.windowed_stream import WindowedStream

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryStrategy",
    "BucketAssigner",
    "CheckpointConfig",
    "CheckpointingMode",
    "Chunk",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "CollectSink",
    "ConnectedStreams",
    "DataGeneratorSource",
    "DataStream",
    "DataStreamSink",
    "DiscardingSink",
    "Duration",
    "ElementContext",
    "Encoder",
    "EngineOption",
    "FileSink",
    "FileSource",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "IntervalJoin",
    "IntervalJoined",
    "IterableSource",
    "JobClient",
    "JobExecutionResult",
    "JobStatus",
    "JoinFunction",
    "JoinedStreams",
    "KeySelector",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListState",
    "ListStateDescriptor",
    "MapFunction",
    "MapState",
    "MapStateDescriptor",
    "NumberSequenceSource",
    "OutputFileConfig",
    "OutputTag",
    "PlainContext",
    "PrintSink",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "RateLimiterStrategy",
    "ReduceFunction",
    "ReducingState",
    "ReducingStateDescriptor",
    "RestartStrategies",
    "RollingPolicy",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SideOutput",
    "Sink",
    "SinkFunction",
    "SinkWriter",
    "SlidingEventTimeWindows",
    "Source",
    "StateTtlConfig",
    "StreamExecutionEnvironment",
    "StreamFormat",
    "Time",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "TimestampAssigner",
    "TumblingEventTimeWindows",
    "TypeInformation",
    "Types",
    "ValueState",
    "ValueStateDescriptor",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "WindowAssigner",
    "WindowContext",
    "WindowFunction",
    "WindowedStream",
    "WriterContext",
]
