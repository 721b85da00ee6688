"""A watermark strategy without a timestamp assigner, over sources that give their records no event time."""

import os
import tempfile

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

path = os.path.join(tempfile.mkdtemp(), "lines.txt")
with open(path, "w") as file:
    file.write("to be or\nnot to be\n")

for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(1)
    lines = env.from_source(
        source=FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)
        .process_static_file_set()
        .build(),
        watermark_strategy=WatermarkStrategy.for_monotonous_timestamps(),
        source_name="file_source",
    )
    pairs = lines.flat_map(str.split).map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
    counts = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    counts.print(f"{mode.name} words")
    numbers = env.from_source(
        NumberSequenceSource(1, 3), WatermarkStrategy.for_monotonous_timestamps(), "numbers", Types.LONG()
    )
    numbers.map(lambda n: n * n).print(f"{mode.name} numbers")
    env.execute("words")
