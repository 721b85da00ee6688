"""A job that is stopped with a run in flight, and its checkpoint directory as a version has stored it.

`python -c 'from tests.golden.stored_job import *; make_all("FOLDER")'` creates the directories `job-memory` and
`job-sqlite`: two keys have called a service, remember a long text, and wait for a person's answer; one has an input queued
behind it, and one input has failed. Not with `-m`: functions are stored by their module's name.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    Budget,
    ChatMessage,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.streams import DiscardingSink, StreamExecutionEnvironment
from emberflow.testing import TestSource

BACKENDS = ("memory", "sqlite")
INPUTS = [("ann", "ask"), ("bob", "ask"), ("ann", "next"), ("cid", "broken")]
KEPT = ("emberflow.json", "starts", "local", "state.db", "latest.json", "calls", "approvals", "dead-letters")
outputs: list[Any] = []
calls: list[str] = []


async def price(customer: str) -> ChatMessage:
    calls.append(customer)
    return ChatMessage(content=f"{len(customer)} €")


async def refuse(customer: str) -> None:
    calls.append(f"refuse {customer}")
    raise LookupError(f"no {customer}")


async def act(event: InputEvent, ctx: RunnerContext) -> None:
    customer, wish = event.input
    if wish == "broken":
        raise ValueError("broken")
    memory = ctx.short_term_memory
    memory.set("profile.name", customer)
    if wish == "next":
        ctx.send_event(OutputEvent((customer, "next", len(memory.get("long")), memory.get("profile.seen"))))
        return
    memory.set("long", "a page " * 1_000)
    ctx.send_event(Event("step", {"customer": customer}))


async def ask(event: Event, ctx: RunnerContext) -> None:
    customer = event.get_attr("customer")
    ctx.short_term_memory.set("profile.seen", 1)
    found: Any = await ctx.durable_execute_async(price, customer)
    try:
        await ctx.durable_execute_async(refuse, customer)
    except LookupError as error:
        refused = str(error)
    else:
        refused = ""
    ctx.spend(tokens=10)
    answer = await ctx.ask_human(f"{customer}?", options=("yes", "no"))
    ctx.send_event(OutputEvent((customer, found.content, refused, str(answer), ctx.budget_left("tokens"))))


def program(directory: Path, backend: str, inputs: list[Any], *, bounded: bool) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=str(directory))
    env.set_option("state_backend", backend)
    env.enable_checkpointing(500)
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    agents.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    agent = Agent("keeper").add_budget(Budget(tokens=100, per="key"))
    agent.add_action("act", [InputEvent], act).add_action("ask", ["step"], ask)
    stream = env.add_source(TestSource(inputs, bounded=bounded)).uid("source")
    results = agents.from_datastream(stream, lambda value: value[0]).apply(agent).to_datastream()
    results.map(_noted).uid("noted").sink_to(DiscardingSink()).uid("out")
    return env.execute_async()


def _noted(value: Any) -> Any:
    outputs.append(value)
    return value


def make(folder: Path, backend: str) -> None:
    directory = folder / f"job-{backend}"
    job = program(directory, backend, INPUTS, bounded=False)
    deadline = time.monotonic() + 300
    while len(list((directory / "approvals").glob("*.question.json"))) < 2 or not list(
        (directory / "dead-letters").rglob("*.jsonl")
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(3)  # A checkpoint, and one more: the first may have started before.
    job.cancel()
    for path in directory.iterdir():
        if path.name not in KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def make_all(folder: str) -> None:
    for backend in BACKENDS:
        make(Path(folder), backend)
