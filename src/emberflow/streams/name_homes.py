"""Which module defines each public name of the DataStream API."""

from __future__ import annotations

HOMES = {
    "emberflow.connectors.client_sinks": "CollectSink PrintSink",
    "emberflow.connectors.data_generator": "DataGeneratorSource RateLimiterStrategy",
    "emberflow.connectors.files.file_sink": "FileSink",
    "emberflow.connectors.files.file_sink_options": "BucketAssigner Encoder OutputFileConfig RollingPolicy",
    "emberflow.connectors.files.file_source": "FileSource",
    "emberflow.connectors.files.stream_formats": "StreamFormat",
    "emberflow.connectors.iterable_source": "IterableSource",
    "emberflow.connectors.sequence": "NumberSequenceSource",
    "emberflow.connectors.sink": "DiscardingSink Sink SinkFunction SinkWriter WriterContext",
    "emberflow.connectors.source": "Chunk Source",
    "emberflow.event_time.clock": "Duration Time",
    "emberflow.event_time.watermarks": "TimestampAssigner Watermark WatermarkGenerator WatermarkStrategy",
    "emberflow.events.output_tag": "OutputTag SideOutput",
    "emberflow.events.types.instant": "Instant",
    "emberflow.events.types.row": "Row RowKind",
    "emberflow.events.types.type_information": "RowTypeInfo TupleTypeInfo TypeInformation",
    "emberflow.operators.partitions.broadcast_state": "BroadcastState ReadOnlyBroadcastState",
    "emberflow.operators.contexts": "ElementContext PlainContext RuntimeContext TimeDomain TimerService",
    "emberflow.operators.partitions.operator_state": """
        FunctionInitializationContext FunctionSnapshotContext OperatorListState OperatorStateStore
    """,
    "emberflow.operators.windows.window_context": "KeyedStateStore WindowContext",
    "emberflow.plan.engine_options": "EngineOption",
    "emberflow.plan.job_contract": "CheckpointingMode JobStatus RuntimeExecutionMode",
    "emberflow.plan.restart_strategy": "RestartStrategies",
    "emberflow.state.descriptors": """
        AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor ReducingStateDescriptor
        StateTtlConfig ValueStateDescriptor
    """,
    "emberflow.state.handles": "AggregatingState ListState MapState ReducingState ValueState",
    "emberflow.streams.all_windowed_stream": "AllWindowedStream",
    "emberflow.streams.async_data_stream": "AsyncDataStream",
    "emberflow.streams.async_retries": """
        AsyncRetryPredicate AsyncRetryStrategy ExponentialBackoffDelayRetryStrategy
        FixedDelayRetryStrategy NoRetryStrategy RetryPredicate empty_result_predicate
        exception_type_predicate has_exception_predicate
    """,
    "emberflow.streams.functions.broadcast_functions": "BroadcastProcessFunction KeyedBroadcastProcessFunction",
    "emberflow.streams.broadcast_stream": "BroadcastConnectedStream BroadcastStream",
    "emberflow.streams.functions.checkpointed_function": "CheckpointedFunction",
    "emberflow.streams.completable_future": "CompletableFuture",
    "emberflow.streams.connected_streams": "ConnectedStreams",
    "emberflow.streams.data_stream": "DataStream DataStreamSink",
    "emberflow.streams.environment": "StreamExecutionEnvironment",
    "emberflow.streams.functions.function": """
        AggregateFunction AllWindowFunction AsyncFunction CoFlatMapFunction CoMapFunction
        CoProcessFunction FilterFunction FlatMapFunction KeyedCoProcessFunction KeyedProcessFunction
        KeySelector MapFunction Partitioner ProcessAllWindowFunction ProcessFunction
        ProcessWindowFunction ReduceFunction WindowFunction
    """,
    "emberflow.streams.interval_join": "IntervalJoin IntervalJoined",
    "emberflow.streams.functions.join_functions": "CoGroupFunction FlatJoinFunction JoinFunction ProcessJoinFunction",
    "emberflow.streams.joined_streams": "CoGroupedStreams JoinedStreams",
    "emberflow.streams.keyed_stream": "KeyedStream",
    "emberflow.streams.results": "CloseableIterator JobClient JobExecutionResult JobID",
    "emberflow.streams.settings.checkpoint_config": "CheckpointConfig",
    "emberflow.streams.settings.config_options": "ConfigOption ConfigOptions",
    "emberflow.streams.settings.configuration": "Configuration",
    "emberflow.streams.settings.execution_config": "ExecutionConfig",
    "emberflow.streams.settings.state_backends": """
        CheckpointStorage EmbeddedRocksDBStateBackend ExternalizedCheckpointRetention
        FileSystemCheckpointStorage HashMapStateBackend JobManagerCheckpointStorage
        PredefinedOptions StateBackend
    """,
    "emberflow.streams.slot_sharing": "MemorySize SlotSharingGroup",
    "emberflow.streams.types": "Types",
    "emberflow.streams.windowed_stream": "WindowedStream",
    "emberflow.windowing.assigners": """
        GlobalWindows MergingWindowAssigner SlidingEventTimeWindows SlidingProcessingTimeWindows
        TumblingEventTimeWindows TumblingProcessingTimeWindows WindowAssigner
    """,
    "emberflow.windowing.count_windows": "CountSlidingWindowAssigner CountTumblingWindowAssigner",
    "emberflow.windowing.evictors": "CountEvictor Evictor TimeEvictor TimestampedValue",
    "emberflow.windowing.repeating_triggers": """
        ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountTrigger
    """,
    "emberflow.windowing.serializers": "CountWindowSerializer GlobalWindowSerializer TimeWindowSerializer",
    "emberflow.windowing.sessions": """
        DynamicEventTimeSessionWindows DynamicProcessingTimeSessionWindows EventTimeSessionWindows
        ProcessingTimeSessionWindows SessionWindowTimeGapExtractor
    """,
    "emberflow.windowing.triggers": """
        EventTimeTrigger NeverTrigger ProcessingTimeTrigger PurgingTrigger Trigger TriggerResult
    """,
    "emberflow.windowing.windows": "CountWindow GlobalWindow TimeWindow Window",
}
"""By module: the names, separated by blanks."""
