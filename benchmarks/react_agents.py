"""200 concurrent ReAct runs of five model steps, each with one tool call but the last, with the real OpenAI client against
a loopback model that takes 100 ms: on `local` and in Spark's batch mode."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.agent_jobs import key_of
from benchmarks.loopback_model import loopback_model
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    ChatModel,
    InputEvent,
    OutputEvent,
    ReActAgent,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.streams import (
    CollectSink,
    DataGeneratorSource,
    DataStream,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

RUNS, STEPS, CALL_MS = 200, 5, 100
IDEAL_S = STEPS * CALL_MS / 1000
ANSWER = f"done after {STEPS - 1} calls"


async def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


class Chatting(Agent):
    """The same loop inside one action."""

    @action(InputEvent)
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.chat("model", event.input[1])
        ctx.send_event(OutputEvent(answer.content))


class Reacting(ReActAgent):
    def __init__(self) -> None:
        super().__init__(chat_model="model")


def question(index: int) -> tuple[int, str]:
    return index, f"question {index}"


def run(options: Options) -> list[Measure]:
    rounds = options.pick(1, 5)
    react, chat, batch = [], [], []
    with loopback_model(CALL_MS, STEPS) as url, spark_session("ReAct agents") as session:
        local_seconds(Reacting(), url)
        batch_seconds(session, url)
        for _ in range(rounds):
            react.append(local_seconds(Reacting(), url))
            chat.append(local_seconds(Chatting(), url))
            batch.append(batch_seconds(session, url))
    options.details.update(react_s=react, chat_s=chat, batch_s=batch, ideal_s=IDEAL_S)
    return [
        Measure(
            name="ReActAgent, local, against the ideal",
            value=statistics.median(react) / IDEAL_S,
            unit="x",
            bar=at_most(2),
        ),
        Measure(name="ReActAgent, local", value=statistics.median(react), unit="s"),
        Measure(name="ctx.chat, local", value=statistics.median(chat), unit="s"),
        Measure(
            name="ReActAgent, Spark batch, whole job",
            value=statistics.median(batch),
            unit="s",
            bar=at_most(4),
        ),
    ]


def local_seconds(agent: Agent, url: str) -> float:
    """The whole job, from execute() to its end."""
    return _seconds(StreamExecutionEnvironment.get_execution_environment(engine="local"), agent, url)


def batch_seconds(session: Any, url: str) -> float:
    """The whole job on a session that is warm."""
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return _seconds(env, Reacting(), url)


def _seconds(env: StreamExecutionEnvironment, agent: Agent, url: str) -> float:
    outputs: list[object] = []
    agent.add_resource("add", ResourceType.TOOL, add)
    agent.add_resource(
        "model",
        ResourceType.CHAT_MODEL,
        ChatModel.openai_compatible("loopback", base_url=url, tools=["add"]),
    )
    _applied(env.from_source(DataGeneratorSource(question, count=RUNS, parallelism=2)), agent).sink_to(
        CollectSink(lambda batch: outputs.extend(batch.values))
    )
    started = time.perf_counter()
    env.execute("ReAct agents")
    took = time.perf_counter() - started
    if outputs != [ANSWER] * RUNS:
        raise RuntimeError(f"{len(outputs)} outputs came, such as {outputs[:1]}")
    return took


def _applied(stream: DataStream, agent: Agent) -> DataStream:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(stream.get_execution_environment())
    return agents_env.from_datastream(stream, key_of).apply(agent).to_datastream()
