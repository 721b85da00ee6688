"""Tables as streams of rows (B19): read from files, with event time, and written, on every engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emberflow.streams import (
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
)
from emberflow.streams.tables import DataTypes, Schema, StreamTableEnvironment, Table, TableDescriptor, col
from emberflow.testing import SPARK, Host, on_every_host

CLICKS = (
    Schema.new_builder()
    .column("user", DataTypes.STRING())
    .column("ts", DataTypes.BIGINT())
    .column_by_expression("rowtime", "TO_TIMESTAMP_LTZ(`ts` * 1000, 3)")
    .watermark("rowtime", "rowtime - INTERVAL '2' SECOND")
    .build()
)


class Count(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().end, len(list(elements))


def clicks(env: StreamExecutionEnvironment, path: Path) -> tuple[StreamTableEnvironment, Table]:
    t_env = StreamTableEnvironment.create(env)
    descriptor = (
        TableDescriptor.for_connector("filesystem")
        .schema(CLICKS)
        .option("format", "json")
        .option("path", f"file:///{path}")
        .build()
    )
    t_env.create_temporary_table("clicks", descriptor)
    return t_env, t_env.from_path("clicks")


@on_every_host(nightly=[SPARK])
def test_rows_of_files_have_the_event_time_of_their_schema(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    path.write_text(
        "".join(
            f'{{"user": "{user}", "ts": {ts}}}\n' for user, ts in [("a", 1), ("a", 11), ("a", 9), ("b", 12)]
        )
    )

    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        t_env, table = clicks(env, path)
        rows = t_env.to_data_stream(table.select(col("user").alias("name"), "ts"))
        by_name = rows.key_by(lambda row: row.name)
        return by_name.window(TumblingEventTimeWindows.of(Time.seconds(10))).process(Count())

    assert sorted(host.run(build)) == [("a", 10_000, 2), ("a", 20_000, 1), ("b", 20_000, 1)]
