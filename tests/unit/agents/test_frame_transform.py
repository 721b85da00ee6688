"""`df.transform(with_agent(...))`: batch, streaming, and rows on `local`."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    Configuration,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
    with_agent,
)
from emberflow.errors import InvalidArgument
from emberflow.testing import shared_session, spark_missing

ORDERS = [{"user": user, "amount": amount} for amount, user in enumerate(["ann", "bob", "ann", "cid", "ann"])]
TOTALS = [("ann", 0, 1), ("ann", 2, 2), ("ann", 6, 3), ("bob", 1, 1), ("cid", 3, 1)]


class Totals(Agent):
    """Rows of a user are processed one by one, in order; bad amounts fail."""

    @action(InputEvent)
    async def add(self, event: InputEvent, ctx: RunnerContext) -> None:
        row = event.input
        memory = ctx.short_term_memory
        memory.set("total", memory.get("total", 0) + row["amount"])
        memory.set("count", memory.get("count", 0) + 1)
        await asyncio.sleep(0.001)
        if row["amount"] < 0:
            raise ValueError("an order of less than nothing")
        ctx.send_event(
            OutputEvent({"user": ctx.key, "total": memory.get("total"), "count": memory.get("count")})
        )


HANG_GUARD_S = 500
SCHEMA = "user string, total long, count long"


@pytest.fixture
def spark() -> Any:
    if spark_missing():
        pytest.skip(f"A28 on Spark: {spark_missing()}")
    return shared_session()


def plain(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((row["user"], row["total"], row["count"]) for row in rows)


def test_rows_on_local() -> None:
    frame = with_agent(Totals(), key="user", schema=SCHEMA)(ORDERS)
    assert frame.columns == ["user", "total", "count"]
    assert plain(frame) == TOTALS


def test_without_a_schema_outputs_are_json() -> None:
    frame = with_agent(Totals(), key="user")(ORDERS)
    assert frame.columns == ["user", "output"]
    assert plain(json.loads(row["output"]) for row in frame) == TOTALS


def test_the_key_may_be_a_function() -> None:
    frame = with_agent(Totals(), key=lambda row: row["user"][0], schema=SCHEMA)(ORDERS)
    assert plain(frame) == [(user[0], total, count) for user, total, count in TOTALS]


def test_settings() -> None:
    config = Configuration().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP)
    rows = [*ORDERS, {"user": "ann", "amount": -1}, {"user": "ann", "amount": 4}]
    frame = with_agent(Totals(), key="user", schema=SCHEMA, config=config, parallelism=2)(rows)
    assert plain(frame) == sorted([*TOTALS, ("ann", 10, 4)])


@pytest.mark.spark
def test_a_batch_dataframe(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(row["user"], row["amount"]) for row in ORDERS], "user string, amount long"
    )
    with pytest.raises(InvalidArgument, match="the table has no column 'usr'; did you mean 'user'"):
        frame.transform(with_agent(Totals(), key="usr"))
    ordered = frame.coalesce(1)
    result = ordered.transform(with_agent(Totals(), key="user", schema=SCHEMA, parallelism=2))
    assert not result.isStreaming
    assert plain(result.collect()) == TOTALS
    assert result.groupBy("user").count().filter("user = 'ann'").collect()[0]["count"] == 3


@pytest.mark.spark
def test_a_streaming_dataframe(spark: Any, tmp_path: Path) -> None:
    folder, checkpoints = tmp_path / "in", tmp_path / "checkpoints"
    folder.mkdir()
    stream = spark.readStream.schema("user string, amount long").json(str(folder))
    result = stream.transform(with_agent(Totals(), key="user", schema=SCHEMA, parallelism=2))
    assert result.isStreaming

    def arrive(name: str, rows: list[dict[str, Any]]) -> None:
        (folder / f".{name}").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / f".{name}").rename(folder / f"{name}.json")

    def committed() -> list[tuple[Any, ...]]:
        found = spark.read.schema(SCHEMA).json(str(tmp_path / "out")) if (tmp_path / "out").exists() else None
        return [] if found is None else plain(row.asDict() for row in found.collect())

    def work_until(count: int) -> None:
        # Not availableNow: Spark runs one more batch forever for a query with processing-time timers.
        query = (
            result.writeStream.format("json")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(checkpoints))
            .outputMode("append")
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        deadline = time.monotonic() + HANG_GUARD_S
        while len(committed()) < count and query.isActive:
            assert time.monotonic() < deadline, committed()
            time.sleep(0.2)
        query.stop()
        if query.exception() is not None:
            raise query.exception()

    arrive("first", ORDERS[:3])
    work_until(3)
    # Memory is kept with the query: it continues where it stopped.
    arrive("second", ORDERS[3:])
    work_until(5)
    assert committed() == TOTALS
