"""The modules of PyFlink 2.3 that a program can import, and the names in each of them.

A name is found under the same name in `emberflow.streams`, unless `HOMES` names another module. A name that is not there
is missing: `missing.py` says what to use instead.
"""

from __future__ import annotations

STREAMS = "emberflow.streams"

_METRIC_GROUP = "emberflow.observability.metric_group"
_SERIALIZERS = "emberflow.windowing.serializers"
_TABLES = f"{STREAMS}.tables"
_TYPES = "emberflow.events.types.type_information"

HOMES: dict[str, str] = {
    "BasicArrayTypeInfo": _TYPES,
    "BasicType": _TYPES,
    "BasicTypeInfo": _TYPES,
    "CountWindowSerializer": _SERIALIZERS,
    "Counter": _METRIC_GROUP,
    "DataType": _TABLES,
    "DataTypes": _TABLES,
    "DateTypeInfo": _TYPES,
    "Distribution": _METRIC_GROUP,
    "Expression": _TABLES,
    "ExternalTypeInfo": f"{_TABLES}.data_types:external_type_info",
    "FileSourceBuilder": "emberflow.connectors.files.file_source",
    "Function": "emberflow.streams.functions.function",
    "GlobalWindowSerializer": _SERIALIZERS,
    "ListTypeInfo": _TYPES,
    "MapTypeInfo": _TYPES,
    "Meter": _METRIC_GROUP,
    "Metric": _METRIC_GROUP,
    "MetricGroup": _METRIC_GROUP,
    "ObjectArrayTypeInfo": _TYPES,
    "PickledBytesTypeInfo": _TYPES,
    "PrimitiveArrayTypeInfo": _TYPES,
    "RestartStrategyConfiguration": "emberflow.plan.restart_strategy:RestartStrategy",
    "Schema": _TABLES,
    "SqlTimeTypeInfo": _TYPES,
    "StateDescriptor": "emberflow.state.descriptors",
    "StreamTableEnvironment": _TABLES,
    "StreamingFileSink": f"{STREAMS}:FileSink",
    "Table": _TABLES,
    "TableDescriptor": _TABLES,
    "TableResult": _TABLES,
    "TimeTypeInfo": _TYPES,
    "TimeWindowSerializer": _SERIALIZERS,
    "TimestampTypeInfo": _TYPES,
    "col": _TABLES,
}
"""Names that are found elsewhere than in `emberflow.streams`: the module, or `module:Name`."""

VALUES: dict[str, object] = {"pyflink.__version__": "2.3.0", "pyflink.version.__version__": "2.3.0"}
"""Names that stand for a plain value. The version is that of the interface."""

_FUNCTIONS = """
    AggregateFunction AsyncFunction AsyncRetryPredicate AsyncRetryStrategy BroadcastProcessFunction CoFlatMapFunction
    CoMapFunction CoProcessFunction FilterFunction FlatMapFunction KeySelector KeyedBroadcastProcessFunction
    KeyedCoProcessFunction KeyedProcessFunction MapFunction Partitioner ProcessFunction ProcessWindowFunction
    ReduceFunction RuntimeContext SinkFunction SourceFunction TimerService WindowFunction
"""
_STREAMS = """
    BroadcastConnectedStream BroadcastStream ConnectedStreams DataStream DataStreamSink KeyedStream WindowedStream
"""
_CHECKPOINTS = """
    CheckpointStorage CustomCheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage
"""
_BACKENDS = """
    CustomStateBackend EmbeddedRocksDBStateBackend HashMapStateBackend PredefinedOptions StateBackend
"""
_SCHEMAS = "ByteArraySchema DeserializationSchema Encoder SerializationSchema SimpleStringSchema"
_METRICS = "Counter Distribution Meter Metric MetricGroup"
_EXPRESSIONS = """
    array call call_sql coalesce col concat current_timestamp if_then_else json_object lit map_ row source_watermark
    to_timestamp_ltz with_columns without_columns
"""
_KEYED_STATE = """
    AggregatingState AggregatingStateDescriptor ListState ListStateDescriptor MapState MapStateDescriptor ReducingState
    ReducingStateDescriptor ValueState ValueStateDescriptor
"""

NAMES: dict[str, str] = {
    "pyflink": "",
    "pyflink.version": "",
    "pyflink.common": f"""
        {_SCHEMAS} AssignerWithPeriodicWatermarksWrapper CompletableFuture ConfigOption ConfigOptions Configuration
        Duration ExecutionConfig InputDependencyConstraint Instant JobClient JobExecutionResult JobID JobStatus
        RestartStrategies RestartStrategyConfiguration Row RowKind Time TypeInformation TypeSerializer Types
        WatermarkStrategy
    """,
    "pyflink.common.completable_future": "CompletableFuture",
    "pyflink.common.config_options": "ConfigOption ConfigOptions",
    "pyflink.common.configuration": "Configuration",
    "pyflink.common.execution_config": "ExecutionConfig",
    "pyflink.common.input_dependency_constraint": "InputDependencyConstraint",
    "pyflink.common.io": "InputFormat",
    "pyflink.common.job_client": "CompletableFuture JobClient JobExecutionResult JobID JobStatus",
    "pyflink.common.job_execution_result": "JobExecutionResult JobID",
    "pyflink.common.job_id": "JobID",
    "pyflink.common.job_status": "JobStatus",
    "pyflink.common.restart_strategy": "RestartStrategies RestartStrategyConfiguration",
    "pyflink.common.serialization": f"{_SCHEMAS} BulkWriterFactory RowDataBulkWriterFactory RowFieldExtractorSchema",
    "pyflink.common.serializer": "TypeSerializer",
    "pyflink.common.time": "Duration Instant Time",
    "pyflink.common.typeinfo": """
        BasicArrayTypeInfo BasicType BasicTypeInfo DateTypeInfo ExternalTypeInfo InstantTypeInfo ListTypeInfo
        LocalTimeTypeInfo MapTypeInfo ObjectArrayTypeInfo PickledBytesTypeInfo PrimitiveArrayTypeInfo RowTypeInfo
        SqlTimeTypeInfo TimeTypeInfo TimestampTypeInfo TupleTypeInfo TypeInformation Types
    """,
    "pyflink.common.types": "Row RowKind",
    "pyflink.common.watermark_strategy": """
        AssignerWithPeriodicWatermarksWrapper Duration TimestampAssigner WatermarkStrategy
    """,
    "pyflink.datastream": f"""
        {_FUNCTIONS} {_STREAMS} {_CHECKPOINTS} {_BACKENDS}
        AsyncDataStream CheckpointConfig CheckpointingMode CountWindow ExternalizedCheckpointRetention GlobalWindow
        MemorySize MergingWindowAssigner OutputTag RuntimeExecutionMode SlotSharingGroup StreamExecutionEnvironment
        TimeDomain TimeWindow Trigger TriggerResult Window WindowAssigner
    """,
    "pyflink.datastream.async_data_stream": "AsyncDataStream AsyncFunction AsyncRetryStrategy DataStream Time",
    "pyflink.datastream.async_retry_predicates": """
        empty_result_predicate exception_type_predicate has_exception_predicate
    """,
    "pyflink.datastream.async_retry_strategies": """
        AsyncRetryPredicate AsyncRetryStrategy ExponentialBackoffDelayRetryStrategy FixedDelayRetryStrategy
        NoRetryStrategy RetryPredicate
    """,
    "pyflink.datastream.checkpoint_config": """
        CheckpointConfig CheckpointingMode Duration ExternalizedCheckpointRetention
    """,
    "pyflink.datastream.checkpoint_storage": _CHECKPOINTS,
    "pyflink.datastream.checkpointing_mode": "CheckpointingMode",
    "pyflink.datastream.connectors": "DeliveryGuarantee Sink Source",
    "pyflink.datastream.connectors.base": "DeliveryGuarantee Sink Source StreamTransformer SupportsPreprocessing",
    "pyflink.datastream.connectors.file_system": """
        BucketAssigner BulkFormat BulkWriterFactory Duration Encoder FileCompactStrategy FileCompactor
        FileEnumeratorProvider FileSink FileSource FileSourceBuilder FileSplitAssignerProvider OutputFileConfig
        RollingPolicy Sink SinkFunction Source StreamFormat StreamingFileSink
    """,
    "pyflink.datastream.connectors.number_seq": "NumberSequenceSource Source",
    "pyflink.datastream.data_stream": f"""
        {_FUNCTIONS} {_STREAMS} AggregatingStateDescriptor AllWindowFunction AllWindowedStream CachedDataStream
        CloseableIterator Function ListStateDescriptor MapStateDescriptor OutputTag ProcessAllWindowFunction
        ReducingStateDescriptor Row SlotSharingGroup TypeInformation Types WatermarkStrategy WindowAssigner
    """,
    "pyflink.datastream.execution_mode": "RuntimeExecutionMode",
    "pyflink.datastream.externalized_checkpoint_retention": "ExternalizedCheckpointRetention",
    "pyflink.datastream.functions": f"""
        {_FUNCTIONS} {_KEYED_STATE} AllWindowFunction BaseBroadcastProcessFunction BroadcastState Function
        KeyedStateStore MetricGroup ProcessAllWindowFunction ReadOnlyBroadcastState TimeDomain
    """,
    "pyflink.datastream.output_tag": "OutputTag",
    "pyflink.datastream.slot_sharing_group": "MemorySize SlotSharingGroup",
    "pyflink.datastream.state": f"""
        {_KEYED_STATE} AppendingState BroadcastState Duration MergingState OperatorStateStore ReadOnlyBroadcastState State
        StateDescriptor StateTtlConfig Time TypeInformation Types
    """,
    "pyflink.datastream.state_backend": _BACKENDS,
    "pyflink.datastream.stream_execution_environment": """
        CheckpointConfig CheckpointingMode Configuration DataStream ExecutionConfig JobClient JobExecutionResult
        RuntimeExecutionMode SlotSharingGroup StreamExecutionEnvironment
    """,
    "pyflink.datastream.time_domain": "TimeDomain",
    "pyflink.datastream.timerservice": "TimerService",
    "pyflink.datastream.window": """
        ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountSlidingWindowAssigner CountTrigger
        CountTumblingWindowAssigner CountWindow CountWindowSerializer DynamicEventTimeSessionWindows
        DynamicProcessingTimeSessionWindows EventTimeSessionWindows EventTimeTrigger GlobalWindow GlobalWindowSerializer
        GlobalWindows MergingWindowAssigner NeverTrigger OutputTag ProcessingTimeSessionWindows ProcessingTimeTrigger
        PurgingTrigger ReducingStateDescriptor SessionWindowTimeGapExtractor SlidingEventTimeWindows
        SlidingProcessingTimeWindows Time TimeWindow TimeWindowSerializer Trigger TriggerResult TumblingEventTimeWindows
        TumblingProcessingTimeWindows TypeSerializer Types ValueStateDescriptor Window WindowAssigner
    """,
    "pyflink.metrics": _METRICS,
    "pyflink.metrics.metricbase": _METRICS,
    "pyflink.table": """
        ChangelogMode DataTypes EnvironmentSettings ExplainDetail FormatDescriptor FunctionContext GroupedTable ListView
        MapView OverWindowedTable ResultKind Row RowKind ScalarFunction Schema SqlDialect StatementSet
        StreamTableEnvironment Table TableAggregateFunction TableConfig TableDescriptor TableEnvironment TableFunction
        TableResult TableSchema WindowGroupedTable
    """,
    "pyflink.table.expression": "Expression",
    "pyflink.table.expressions": _EXPRESSIONS,
    "pyflink.table.schema": "Schema",
    "pyflink.table.table": "Table",
    "pyflink.table.table_descriptor": "FormatDescriptor TableDescriptor",
    "pyflink.table.table_environment": "StreamTableEnvironment TableEnvironment",
    "pyflink.table.table_result": "TableResult",
    "pyflink.table.types": "DataType DataTypes Row RowKind",
}
"""PyFlink's module -> the names in it."""
