"""2,000 inputs, each with one call of a second to a service like OpenAI's through the official client, local and Spark batch."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.agent_jobs import with_agent
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.model_service import many_files, model_service
from benchmarks.session import environment, spark_session
from emberflow.agents import (
    Agent,
    ChatModel,
    InputEvent,
    OutputEvent,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.streams import (
    CollectSink,
    DataGeneratorSource,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

KEYS = 2_000


class Asker(Agent):
    """Asks the model and outputs its answer."""

    @action(InputEvent)
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.chat("judge", f"Is {event.input[1]} a number?")
        ctx.send_event(OutputEvent(answer.content))


def question(index: int) -> tuple[int, int]:
    return index, index


def run(options: Options) -> list[Measure]:
    many_files()
    local, batch = [], []
    with model_service() as address:
        agent = Asker().add_resource(
            "judge", ResourceType.CHAT_MODEL, ChatModel.openai_compatible("bench", base_url=address)
        )
        # The client is imported once, and its modules are compiled.
        seconds(StreamExecutionEnvironment.get_execution_environment(engine="local"), agent, 10)
        for _ in range(options.pick(1, 5)):
            env = StreamExecutionEnvironment.get_execution_environment(engine="local")
            local.append(seconds(env, agent, KEYS))
        with spark_session("model calls") as session:
            on_spark(session, agent)
            for _ in range(options.pick(1, 5)):
                batch.append(on_spark(session, agent))
    options.details.update(local_s=local, batch_s=batch)
    return [
        Measure(name="local", value=statistics.median(local), unit="s", bar=at_most(3)),
        Measure(name="Spark batch, warm session", value=statistics.median(batch), unit="s", bar=at_most(5)),
    ]


def on_spark(session: Any, agent: Agent) -> float:
    env = environment(session, max_records_per_batch=KEYS)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return seconds(env, agent, KEYS)


def seconds(env: StreamExecutionEnvironment, agent: Agent, count: int) -> float:
    """The whole job, from execute() to its end."""
    outputs: list[object] = []
    stream = env.from_source(DataGeneratorSource(question, count=count, parallelism=2))
    with_agent(stream, agent).sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
    started = time.perf_counter()
    env.execute("model calls")
    took = time.perf_counter() - started
    if outputs != ["yes"] * count:
        raise RuntimeError(f"{len(outputs)} outputs came instead of {count}")
    return took
