"""Incidents from a log: errors are counted per service and minute, and an agent opens, updates and closes incidents.

    emberflow run examples/agents/incidents.py --engine local
    python examples/agents/incidents.py

Prints one line per change of an incident: `OPEN` with the model's summary, `MORE` for every further bad minute, `DONE`
after two quiet minutes in a row. Single errors open nothing.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    OutputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
    prompt,
)
from emberflow.streams import (
    DataStream,
    FileSource,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    StreamFormat,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import Reply, ScriptedChatModel, When

LOGS = Path(__file__).parent / "logs.jsonl"
QUIET_MINUTES = 2

SCRIPT = [
    When(contains="card provider", reply=Reply("The card provider does not answer.", delay_s=0.2)),
    When(contains="disk full", reply=Reply("Shard 3 ran out of disk space.", delay_s=0.2)),
]


class Errors(ProcessWindowFunction):
    """One summary per service and minute, also for minutes without errors, which end an incident."""

    def process(self, key: str, context: Any, elements: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        messages = [record["message"] for record in elements if record["level"] == "ERROR"]
        minute = context.window().start // 60_000 % 60
        yield {"service": key, "minute": minute, "errors": len(messages), "messages": sorted(set(messages))}


class IncidentKeeper(Agent):
    @prompt
    @staticmethod
    def instructions() -> Prompt:
        return Prompt.from_text("Say in one line what is wrong with the service '{service}'.")

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        # A real model goes here; see review_triage.py.
        return ResourceDescriptor(clazz=ScriptedChatModel, replies=SCRIPT)

    @chat_model_setup
    @staticmethod
    def on_call() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", prompt="instructions")

    @action("type == EventType.InputEvent && input.errors >= 3")
    async def trouble(self, event: InputEvent, ctx: RunnerContext) -> None:
        minute, memory = event.input, ctx.short_term_memory
        incident = memory.get("incident", {"since": minute["minute"], "errors": 0})
        change = {"change": "MORE" if "incident" in memory else "OPEN"}
        if change["change"] == "OPEN":
            model = ctx.get_resource("on_call", ResourceType.CHAT_MODEL)
            question = ChatMessage(content="\n".join(minute["messages"]))
            answer = await ctx.durable_execute_async(model.chat, [question], {"service": ctx.key})
            change["summary"] = answer.content
        incident = {**incident, "errors": incident["errors"] + minute["errors"], "quiet": 0}
        memory.set("incident", incident)
        ctx.send_event(OutputEvent({"at": minute["minute"], "service": ctx.key, **change, **incident}))

    @action("type == EventType.InputEvent && input.errors < 3")
    def quiet(self, event: InputEvent, ctx: RunnerContext) -> None:
        memory, at = ctx.short_term_memory, event.input["minute"]
        if "incident" not in memory:
            return
        incident = memory.get("incident")
        incident = {**incident, "quiet": incident["quiet"] + 1}
        memory.set("incident", incident)
        if incident["quiet"] == QUIET_MINUTES:
            ctx.send_event(OutputEvent({"at": at, "service": ctx.key, "change": "DONE", **incident}))
            memory.delete("incident")


def incidents(env: StreamExecutionEnvironment) -> DataStream:
    source = FileSource.for_record_stream_format(StreamFormat.json_lines(), str(LOGS)).build()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=10)).with_timestamp_assigner(
        lambda record, _: int(datetime.fromisoformat(record["at"]).timestamp() * 1000)
    )
    logs = env.from_source(source, strategy, "logs").key_by(lambda record: record["service"])
    minutes = logs.window(TumblingEventTimeWindows.of(timedelta(minutes=1))).process(Errors())
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    keyed = agents.from_datastream(minutes, lambda minute: minute["service"])
    return keyed.apply(IncidentKeeper()).to_datastream()


def line(change: dict[str, Any]) -> str:
    summary = change.get("summary", f"{change['errors']} errors since 10:{change['since']:02}")
    return f"10:{change['at']:02}  {change['change']}  {change['service']:<9} {summary}"


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    incidents(env).map(line).print()
    env.execute("incidents")
