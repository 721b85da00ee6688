"""Refunds: small ones are paid immediately, large ones wait for a person.

    emberflow run examples/agents/approvals.py --engine local
    emberflow run examples/agents/approvals.py --engine local -- state/ 600

Without arguments no one answers, so every question expires after a second and counts as rejected. With a directory and
a number of seconds there is time to answer, from another terminal:

    emberflow approvals list state/
    emberflow approvals answer state/ ID approve --note "loyal customer"

Stop the program, answer, start it again: it continues where it stopped.
"""

import sys
import tempfile

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    Event,
    HumanAnswer,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)

CLAIMS = [("ann", 12), ("bob", 480), ("ann", 30), ("cem", 950), ("bob", 5)]


class Pay(Event):
    amount: int
    why: str


class Refunds(Agent):
    """Waits per customer: bob's 5 € come after his 480 € are decided, ann does not wait for anyone."""

    def __init__(self, patience_ms: int) -> None:
        super().__init__()
        self._patience_ms = patience_ms

    @action(InputEvent)
    async def decide(self, event: InputEvent, ctx: RunnerContext) -> None:
        customer, amount = event.input
        if amount < 100:
            ctx.send_event(Pay(amount=amount, why="small"))
            return
        question = (
            f"Refund {amount} € to {customer}, who got {ctx.short_term_memory.get('paid', 0)} € so far?"
        )
        answer = await ctx.ask_human(question, expires_ms=self._patience_ms, default=HumanAnswer("expired"))
        if answer == "approve":
            ctx.send_event(Pay(amount=amount, why=answer.note or "approved"))
        else:
            ctx.send_event(OutputEvent(f"{customer}: {amount} € not paid ({answer})"))

    @action(Pay)
    def pay(self, event: Pay, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("paid", ctx.short_term_memory.get("paid", 0) + event.amount)
        ctx.send_event(OutputEvent(f"{ctx.key}: {event.amount} € paid ({event.why})"))


def main(directory: str, patience_s: float) -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(checkpoint_dir=directory)
    claims = env.env.from_collection(CLAIMS)
    agent = Refunds(int(patience_s * 1000))
    env.from_datastream(claims, lambda claim: claim[0]).apply(agent).to_datastream().print()
    env.execute("refunds")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 600)
    else:
        with tempfile.TemporaryDirectory(prefix="refunds-") as temporary:
            main(temporary, 1)
