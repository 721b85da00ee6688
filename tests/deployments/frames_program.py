"""Started by the deployment tests: `frames_program.py classic|connect`. Every type of a DataFrame through a program, in a
session with a non-default time zone, and the error shown by a user's own query. Prints one line per finding."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from program import session

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, with_agent
from emberflow.errors import NotSupported
from emberflow.streams import RuntimeExecutionMode, StreamExecutionEnvironment

SESSION_ZONE = "America/New_York"
EVERY_TYPE = """
    select cast(1 as byte) as b, cast(2 as short) as s, 3 as i, 4L as l, cast(1.5 as float) as f, 0.1D as d,
      cast(12.34 as decimal(10, 2)) as dec, 'ä' as str, cast('x' as binary) as bin, true as bool, date'2026-01-02' as day,
      timestamp'2026-07-01 12:30:00.000001' as ts, timestamp_ntz'2026-07-01 12:30:00' as ntz,
      interval '1' day as dt, void as nothing, array(1, null) as arr, map('a', 1L, 'b', null) as m,
      map(date'2026-01-01', array(timestamp'2026-01-01 00:00:00')) as deep_map,
      named_struct('t', timestamp'2026-03-08 03:30:00', 'in', named_struct('m', map(1, 'one'))) as st
    union all
    select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
""".replace("void as nothing", "null as nothing")


def as_it_came(row: dict[str, Any]) -> dict[str, Any]:
    """In a worker: the contents of a record."""
    if row["i"] is not None:
        assert row["ts"] == datetime(2026, 7, 1, 16, 30, 0, 1, tzinfo=UTC)
        assert row["ts"].tzinfo is UTC
        assert row["ntz"] == datetime(2026, 7, 1, 12, 30)
        assert row["m"] == {"a": 1, "b": None}
        assert row["deep_map"] == {date(2026, 1, 1): [datetime(2026, 1, 1, 5, tzinfo=UTC)]}
        assert row["st"]["in"] == {"m": {1: "one"}}
    return row


def no_three(row: dict[str, Any]) -> dict[str, Any]:
    if row["id"] == 3:
        raise ValueError("no three, please")
    return row


def act(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(no_three(event.input)))


def shown(name: str, run: Callable[[], Any]) -> None:
    """What a user sees, line by line."""
    try:
        run()
    except Exception as error:
        for line in str(error).splitlines():
            print("shown", name, line, flush=True)
    else:
        print("shown", name, "no error", flush=True)


def main(kind: str) -> None:
    os.environ["TZ"] = "Asia/Tokyo"
    spark = session(kind)
    spark.conf.set("spark.sql.session.timeZone", SESSION_ZONE)

    def env() -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment.get_execution_environment(
            engine="spark", spark=spark, parallelism=2
        )

    table = spark.sql(EVERY_TYPE)
    there = env().from_dataframe(table).map(as_it_came).to_dataframe(table.schema)
    same = sorted(map(repr, there.collect())) == sorted(map(repr, table.collect()))
    print("result every type the same:", same and there.schema == table.schema, flush=True)

    batch = env().set_runtime_mode(RuntimeExecutionMode.BATCH)
    times = batch.from_collection([(1, datetime(2026, 7, 1, 12)), (2, datetime(2026, 7, 1, 12, tzinfo=UTC))])
    written = times.to_dataframe("id long, at timestamp").selectExpr("id", "cast(at as string) as at")
    for row in sorted(written.collect()):
        print("result", tuple(row), flush=True)

    people = spark.createDataFrame([(number, "x") for number in range(5)], "id long, name string")
    schema = "id long, name string"
    shown("map", env().from_dataframe(people).map(no_three).to_dataframe(schema).collect)
    misspelt = env().from_dataframe(people).map(lambda row: {"idd": row["id"], "name": row["name"]})
    shown("names", misspelt.to_dataframe(schema).collect)
    agent = Agent("strict").add_action("act", [InputEvent], act)
    shown("agent", people.transform(with_agent(agent, key="id", schema=schema)).collect)

    folder = Path.cwd() / "people"
    people.write.json(str(folder))
    stream = spark.readStream.schema(schema).json(str(folder))
    keyed = env().from_dataframe(stream).key_by(lambda row: row["id"]).map(no_three).to_dataframe(schema)
    query = keyed.writeStream.format("memory").queryName("people").option("checkpointLocation", "chk")
    shown("stream", query.trigger(availableNow=True).start().awaitTermination)

    for text in ("parse_json('1') as v", "interval '1' year as v", "1 as v, 2 as v"):
        try:
            env().from_dataframe(spark.sql(f"select {text}")).to_dataframe("v int")
        except NotSupported as error:
            print("result", error.message, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
