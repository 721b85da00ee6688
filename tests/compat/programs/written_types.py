"""How a file sink with the simple string encoder writes records of declared types."""

import datetime as dt
import os
import tempfile

from pyflink.common import Row, RowKind, Types
from pyflink.common.serialization import Encoder
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import BucketAssigner, FileSink

folder = tempfile.mkdtemp()
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
WRITTEN = {
    "tuple": (PAIR, [("And", 5), ("be, it", 6)]),
    "row": (NAMED, [Row("And", 5), Row.of_kind(RowKind.UPDATE_AFTER, "be", None)]),
    "nested": (Types.ROW([PAIR, Types.LIST(NAMED)]), [Row(("a", 1), [Row("b", 2), Row("c", 3)])]),
    "text": (Types.STRING(), ["plain", "(1, 'a')"]),
    "truth": (Types.BOOLEAN(), [True, False]),
    "double": (Types.DOUBLE(), [0.1, 1e10, 2.0]),
    "float": (Types.FLOAT(), [0.1]),
    "list": (Types.LIST(Types.STRING()), [["a", "b"]]),
    "map": (Types.MAP(Types.STRING(), Types.BOOLEAN()), [{"a": True}]),
    "date": (Types.SQL_DATE(), [dt.date(2026, 1, 2)]),
    "timestamp": (Types.SQL_TIMESTAMP(), [dt.datetime(2026, 1, 2, 3, 4, 5, 120000)]),
}

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
for name, (kind, values) in WRITTEN.items():
    sink = FileSink.for_row_format(os.path.join(folder, name), Encoder.simple_string_encoder())
    env.from_collection(list(range(len(values)))).map(values.__getitem__, kind).sink_to(
        sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    )
env.execute("written types")

for name in WRITTEN:
    for file in sorted(os.listdir(os.path.join(folder, name))):
        if not file.startswith((".", "_")):
            with open(os.path.join(folder, name, file)) as lines:
                print(f"{name}>", [line.rstrip() for line in lines])
