"""Two agents in sequence: the first determines the topic of a support message, the second answers it.

    emberflow run examples/agents/chained.py --engine local
    python examples/agents/chained.py

Prints topic and answer of each message. The second agent remembers what each customer wrote about: a customer who comes
back with the same topic is passed on to a person, without asking a model.
"""

from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ChatMessage,
    Event,
    InputEvent,
    OutputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import Reply, ScriptedChatModel, When

MESSAGES = [
    ("ann", "My invoice from March is wrong."),
    ("bob", "The app crashes when I open it."),
    ("cem", "How do I change my address?"),
    ("ann", "Where can I change my password?"),
    ("bob", "It still crashes, even after the update."),
    ("dina", "You charged me twice this month!"),
    ("ann", "The invoice is still wrong."),
    ("cem", "Thank you, that worked."),
]

# One script for both: each request contains a string that only one of the agents uses.
SCRIPT = [
    When(matches="TOPIC.*(invoice|charged)", reply=Reply("billing", delay_s=0.1)),
    When(matches="TOPIC.*crash", reply=Reply("bug", delay_s=0.1)),
    When(matches="TOPIC.*change", reply=Reply("account", delay_s=0.1)),
    When(contains="TOPIC", reply=Reply("other", delay_s=0.1)),
    When(contains="(billing)", reply=Reply("Sorry! We look at the bill today.", delay_s=0.2)),
    When(contains="(bug)", reply=Reply("Please install version 4.2.", delay_s=0.2)),
    When(contains="(account)", reply=Reply("You find it under Settings, Account.", delay_s=0.2)),
    When(reply="You are welcome."),
]


class Classifier(Agent):
    @action(InputEvent)
    async def classify(self, event: InputEvent, ctx: RunnerContext) -> None:
        customer, text = event.input
        topic = await ask(ctx, f"TOPIC of this message, in one word? {text}")
        ctx.send_event(OutputEvent({"customer": customer, "text": text, "topic": topic}))


class AnswerNeeded(Event):
    message: dict[str, Any]


class Responder(Agent):
    @action(InputEvent)
    def look_back(self, event: InputEvent, ctx: RunnerContext) -> None:
        """Decides who answers, without waiting for anything."""
        message = event.input
        known = message["topic"] in ctx.short_term_memory.get("topics", [])
        ctx.short_term_memory.append("topics", message["topic"])
        if known:
            ctx.send_event(OutputEvent({**message, "answer": "-> a person calls back"}))
        else:
            ctx.send_event(AnswerNeeded(message=message))

    @action(AnswerNeeded)
    async def answer(self, event: AnswerNeeded, ctx: RunnerContext) -> None:
        message = event.message
        answer = await ask(ctx, f"({message['topic']}) Answer in one line: {message['text']}")
        ctx.send_event(OutputEvent({**message, "answer": answer}))


async def ask(ctx: RunnerContext, question: str) -> str:
    model = ctx.get_resource("support_model", ResourceType.CHAT_MODEL)
    answer = await ctx.durable_execute_async(model.chat, [ChatMessage(content=question)])
    return answer.content


def answered(env: StreamExecutionEnvironment) -> DataStream:
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    # Resources of the environment serve all its agents. A real model goes here; see review_triage.py.
    service = ResourceDescriptor(clazz=ScriptedChatModel, replies=SCRIPT)
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", prompt="manners")
    agents.add_resource("manners", ResourceType.PROMPT, Prompt.from_text("You work in support. Be friendly."))
    agents.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
    agents.add_resource("support_model", ResourceType.CHAT_MODEL, model)
    # Both agents are keyed by customer, so that messages of a customer stay in order. The first could also be keyed by
    # a message's number: it has no memory, and all its calls would run concurrently.
    messages = env.from_collection(MESSAGES)
    topics = agents.from_datastream(messages, lambda message: message[0]).apply(Classifier()).to_datastream()
    return (
        agents.from_datastream(topics, lambda message: message["customer"]).apply(Responder()).to_datastream()
    )


def line(message: dict[str, Any]) -> str:
    return f"{message['customer']:<5} {message['topic']:<8} {message['text']:<42} {message['answer']}"


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    answered(env).map(line).print()
    env.execute("support")
