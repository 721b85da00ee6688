"""What of PyFlink emberflow does not have, and what to use instead; one sentence each, shown at the import."""

from __future__ import annotations

MODULES: dict[str, str] = {
    "pyflink.table": "use to_dataframe() and from_dataframe(), and SQL on the DataFrames",
    "pyflink.datastream.connectors.cassandra": "use from_dataframe() with Spark's connector, or a Sink of your own",
    "pyflink.datastream.connectors.dynamic_kafka": "use from_dataframe() with Spark's Kafka source",
    "pyflink.datastream.connectors.elasticsearch": "use to_dataframe() with Spark's connector, or a Sink of your own",
    "pyflink.datastream.connectors.hybrid_source": "read the bounded source first and union() it with the unbounded one",
    "pyflink.datastream.connectors.jdbc": "use from_dataframe() and to_dataframe() with Spark's JDBC source, or a Sink of your own",
    "pyflink.datastream.connectors.kafka": "use from_dataframe() and to_dataframe() with Spark's Kafka source and sink",
    "pyflink.datastream.connectors.kinesis": "use from_dataframe() with Spark's connector, or a Source of your own",
    "pyflink.datastream.connectors.pulsar": "use from_dataframe() with Spark's connector, or a Source of your own",
    "pyflink.datastream.connectors.rabbitmq": "write a Source or a Sink of your own",
    "pyflink.datastream.formats": "use StreamFormat's readers (text, CSV, JSON, Parquet) and an Encoder, or a DataFrame",
    "pyflink.fn_execution": "it is internal to Flink's Python workers; there is no replacement",
    "pyflink.java_gateway": "there is no Flink JVM to talk to; use emberflow's Python API",
    "pyflink.serializers": "values are pickled; register nothing",
    "pyflink.shell": "import emberflow.compat.pyflink.install in a Python shell",
    "pyflink.testing": "use emberflow.testing",
    "pyflink.util": "it is internal to PyFlink; there is no replacement",
}
"""Modules, with all that is below them."""

_SCHEMAS = "connectors of the JVM use it; read and write strings or bytes, and encode them with map()"
_TYPE = "declare types with Types, whose methods return their own classes"
_STATE = "annotate with ValueState, ListState, MapState, ReducingState or AggregatingState"

NAMES: dict[str, str] = {
    "AppendingState": _STATE,
    "ByteArraySchema": _SCHEMAS,
    "DeliveryGuarantee": "a Sink is exactly once if its commit is, see docs/guide.md",
    "DeserializationSchema": _SCHEMAS,
    "InstantTypeInfo": _TYPE,
    "LocalTimeTypeInfo": _TYPE,
    "MergingState": _STATE,
    "SerializationSchema": _SCHEMAS,
    "SimpleStringSchema": _SCHEMAS,
    "State": _STATE,
    "AssignerWithPeriodicWatermarksWrapper": "use WatermarkStrategy.for_generator()",
    "BaseBroadcastProcessFunction": "derive from BroadcastProcessFunction or KeyedBroadcastProcessFunction",
    "BulkFormat": "use StreamFormat, or from_dataframe() for columnar files",
    "BulkWriterFactory": "write columnar files with to_dataframe() on Spark, or rows with FileSink.for_row_format()",
    "CachedDataStream": "keep the records with to_dataframe().cache() on Spark",
    "CustomCheckpointStorage": "name a folder with checkpoint_dir or execution.checkpointing.dir",
    "CustomStateBackend": "choose a backend with the option state_backend",
    "ExternalTypeInfo": "it belongs to the Table API; use the Types",
    "FileCompactStrategy": "files are never compacted; set a larger checkpoint interval for fewer files",
    "FileCompactor": "files are never compacted; set a larger checkpoint interval for fewer files",
    "FileEnumeratorProvider": "FileSource enumerates files by itself",
    "FileSplitAssignerProvider": "FileSource assigns splits by itself",
    "InputDependencyConstraint": "the engine schedules steps by itself",
    "InputFormat": "use from_source() with a Source",
    "RowDataBulkWriterFactory": "write columnar files with to_dataframe() on Spark, or rows with FileSink.for_row_format()",
    "RowFieldExtractorSchema": "map() the row to its field before the sink",
    "SourceFunction": "in PyFlink it wraps a Java class; use from_source() with a Source",
    "StreamTransformer": "it wraps a Java class; use map() before the sink",
    "StreamingFileSink": "use FileSink",
    "SupportsPreprocessing": "it wraps a Java class; use map() before the sink",
    "TypeSerializer": "values are pickled, and declared types are encoded by themselves",
}
"""Names, wherever they are imported from."""
