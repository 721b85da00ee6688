"""A file sink with Flink's default buckets, and a file source that reads what was written."""

import glob
import os
import re
import tempfile

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.serialization import Encoder
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

folder = tempfile.mkdtemp()
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
lines = env.from_collection(["one", "two", "three"], type_info=Types.STRING())
lines.sink_to(
    FileSink.for_row_format(os.path.join(folder, "hourly"), Encoder.simple_string_encoder()).build()
)
config = OutputFileConfig.builder().with_part_prefix("part").with_part_suffix(".txt").build()
lines.sink_to(
    FileSink.for_row_format(os.path.join(folder, "flat"), Encoder.simple_string_encoder(charset_name="UTF-8"))
    .with_output_file_config(config)
    .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    .with_rolling_policy(RollingPolicy.default_rolling_policy())
    .build()
)
env.execute("write")

hours = [name for name in os.listdir(os.path.join(folder, "hourly")) if not name.startswith(("_", "."))]
print("hourly>", [bool(re.fullmatch(r"\d{4}-\d\d-\d\d--\d\d", name)) for name in hours])
print(
    "flat>",
    [
        name.endswith(".txt")
        for name in map(os.path.basename, glob.glob(os.path.join(folder, "flat", "*.txt")))
    ],
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
for path in [os.path.join(folder, "flat")]:
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
    read = env.from_source(source, WatermarkStrategy.no_watermarks(), "files", Types.STRING())
    read.map(lambda line: line.upper(), Types.STRING()).print("read")
env.execute("read")
