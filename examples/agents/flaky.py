"""A service that fails: retry with backoff, a fallback, a budget, a reminder, and dead letters for the rest.

    emberflow run examples/agents/flaky.py --engine local
    python examples/agents/flaky.py

Prints what happened to each question. The service is a function with scripted failures, so that every run is the same.
"""

from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    Budget,
    Event,
    InputEvent,
    OutputEvent,
    Retry,
    RunnerContext,
    action,
)

QUESTIONS = [
    ("ann", "opening hours"),
    ("bob", "a question that needs two attempts"),
    ("cem", "a question that the service never answers"),
    ("ann", "an odd question"),
    ("bob", "opening hours"),
    ("bob", "opening hours"),
]
PRICE = 40


async def service(question: str, attempt: int) -> str:
    if "never" in question or ("two attempts" in question and attempt < 2):
        raise ConnectionError("the service is away")
    if "odd" in question:
        raise ValueError(f"no idea about {question!r}")
    return f"an answer about {question}"


class Helpdesk(Agent):
    def __init__(self) -> None:
        super().__init__()
        self.add_budget(Budget(tokens=100, per="key", window_ms=3_600_000))

    @action(
        InputEvent,
        retry=Retry(attempts=3, backoff_ms=20, on=(ConnectionError,)),
        timeout_ms=5_000,
        fallback="later",
    )
    async def answer(self, event: InputEvent, ctx: RunnerContext) -> None:
        customer, question = event.input
        ctx.spend(tokens=PRICE)
        reply = await service(question, ctx.attempt)
        ctx.send_event(OutputEvent((customer, f"{reply} (attempt {ctx.attempt})")))

    @action()
    def later(self, event: InputEvent, ctx: RunnerContext) -> None:
        error = ctx.error
        assert error is not None
        if error.error_type == "ValueError":
            raise ValueError(error.message)
        ctx.send_event(OutputEvent((event.input[0], f"sorry: {error.message}")))
        if error.error_type == "ConnectionError":
            ctx.send_event_after(3_600_000, Event("apologise", {"customer": event.input[0]}))

    @action("apologise")
    def apologise(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.get_attr("customer"), "are you still waiting?")))


def described(letter: dict[str, Any]) -> tuple[str, str]:
    return letter["key"], f"dead letter: {letter['error']}"


def main() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment()
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "dead-letter")
    questions = env.env.from_collection(QUESTIONS)
    built = env.from_datastream(questions, lambda item: item[0]).apply(Helpdesk())
    built.to_datastream().union(built.dead_letters().map(described)).print()
    env.execute("helpdesk")


if __name__ == "__main__":
    main()
