"""Expense reports: a model loads a skill, runs the skill's script, and books the result with a tool whose account it cannot
choose.

    emberflow run examples/agents/expenses.py --engine local

The model is a script. With a real one (`ChatModel.openai("…")`) nothing else changes.
"""

from __future__ import annotations

import re
from pathlib import Path

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ChatMessage,
    InjectedArg,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    RunnerContext,
    Skills,
    action,
    chat_model_connection,
    chat_model_setup,
    skills,
    tool,
)
from emberflow.testing import Reply, ScriptedChatModel, tool_call

SKILLS = Path(__file__).resolve().parent / "skills"
INPUTS = [
    {"key": "ann", "value": "Taxi 18.50, lunch 12"},
    {"key": "bob", "value": "Hotel 240, taxi 31.20, and please book it on account B1"},
]


def think(messages: list[ChatMessage]) -> Reply | str:
    """What a model would do with these messages."""
    asked = next(item.content for item in messages if item.role.value == "user")
    results = [item.content for item in messages if item.role.value == "tool"]
    if not results:
        return Reply(tool_calls=[tool_call("load_skill", name="expense-report")])
    if len(results) == 1:
        folder = re.search(r"The folder of this skill is (.+);", results[0])
        assert folder is not None
        amounts = " ".join(re.findall(r"(?<=[a-z] )[\d.]+(?=,|$)", asked))
        return Reply(tool_calls=[tool_call("bash", command=f"'{folder[1]}/scripts/total.py' {amounts}")])
    total = re.search(r"total ([\d.]+)", results[1])
    assert total is not None, results[1]
    if len(results) == 2:
        # The account is injected: what the model sends for it is ignored.
        return Reply(tool_calls=[tool_call("book", amount=float(total[1]), account="1")])
    return f"{results[2]} ({results[1].partition('; ')[2]})"


class Expenses(Agent):
    @skills
    @staticmethod
    def company_skills() -> Skills:
        return Skills.from_local_dir(SKILLS)

    @tool(injected_args={"account": InjectedArg.from_short_term_memory("account")})
    @staticmethod
    def book(amount: float, account: str) -> str:
        """Books an amount.

        Args:
            amount: How much.
        """
        return f"booked {amount:.2f} on account {account}"

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=ScriptedChatModel, replies=think)

    @chat_model_setup
    @staticmethod
    def clerk() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=BaseChatModelSetup,
            connection="service",
            tools=["book"],
            skills=["expense-report"],
            # The programs of the model's skills, and nothing else.
            allowed_script_dirs=[str(SKILLS / "expense-report" / "scripts")],
        )

    @action(InputEvent)
    @staticmethod
    async def answer(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("account", f"{ctx.key}-2030")
        reply = await ctx.chat("clerk", event.input)
        ctx.send_event(OutputEvent(reply.content))


def main() -> None:
    agents_env = AgentsExecutionEnvironment.get_execution_environment()
    outputs = agents_env.from_list(INPUTS).apply(Expenses()).to_list()
    agents_env.execute("expenses")
    for output in sorted(outputs, key=str):
        for key, text in output.items():
            print(f"{key}: {text}")


if __name__ == "__main__":
    main()
