"""Product reviews, judged by a chat model: how happy customers are with each product, and who needs help now.

    emberflow run examples/agents/review_triage.py --engine local
    python examples/agents/review_triage.py

Prints a line per review with the product's average so far and its last complaints; a `!` notifies a team about an
unhappy customer, a `?` shows a reply of the model that could not be parsed. The reviews of a product are processed in
order, products concurrently: forty calls of 0.1 to 0.3 s take about a second and a half.
"""

import json
from pathlib import Path
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
    chat_model_connection,
    chat_model_setup,
    prompt,
)
from emberflow.streams import DataStream, FileSource, StreamExecutionEnvironment, StreamFormat
from emberflow.testing import Reply, ScriptedChatModel, When

REVIEWS = Path(__file__).parent / "reviews.jsonl"


def verdict(satisfaction: int, *reasons: str, delay_s: float = 0.1) -> Reply:
    return Reply(json.dumps({"satisfaction": satisfaction, "reasons": reasons}), delay_s=delay_s)


# Takes the place of a model: the reply depends on the review alone; the first matching rule is used.
SCRIPT = [
    When(matches="arrived (broken|cracked|dented)|in pieces", reply=verdict(1, "damage", delay_s=0.3)),
    When(matches="refund|Waste of money", reply=verdict(1, "price", delay_s=0.2)),
    When(matches="Stopped working|[Pp]oor quality", reply=verdict(2, "quality", delay_s=0.2)),
    When(contains="Delivery took", reply=verdict(2, "delivery")),
    When(contains="smell", reply=verdict(2, "smell")),
    When(matches="(?i)excellent|love|great", reply=verdict(5)),
    When(contains="Good", reply=verdict(4)),
    When(contains="buena", reply="The customer seems to be happy."),
    When(reply=verdict(3)),
]


Review = dict[str, Any]


class Answered(Event):
    review: Review
    answer: str


class Judged(Event):
    review: Review
    stars: int
    reasons: list[str]


class Escalation(Event):
    review: Review
    team: str


class ReviewTriage(Agent):
    @prompt
    @staticmethod
    def instructions() -> Prompt:
        return Prompt.from_text(
            "You judge reviews of a {product}. Answer with JSON: "
            '{"satisfaction": 1 to 5, "reasons": [what the customer complains about, a word each]}'
        )

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        # A real model goes here, as a class that extends BaseChatModelConnection. It is created on the worker, which also
        # looks up its key:
        #   ResourceDescriptor(clazz=MyService, base_url="https://…", api_key=Secret("MY_SERVICE_KEY"))
        return ResourceDescriptor(clazz=ScriptedChatModel, replies=SCRIPT)

    @chat_model_setup
    @staticmethod
    def judge() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", prompt="instructions")

    @action(InputEvent)
    async def ask(self, event: InputEvent, ctx: RunnerContext) -> None:
        judge = ctx.get_resource("judge", ResourceType.CHAT_MODEL)
        question = ChatMessage(content=event.input["text"])
        answer = await ctx.durable_execute_async(judge.chat, [question], {"product": ctx.key})
        ctx.send_event(Answered(review=event.input, answer=answer.content))

    @action(Answered)
    def remember(self, event: Answered, ctx: RunnerContext) -> None:
        review, memory = event.review, ctx.short_term_memory
        try:
            answer = json.loads(event.answer)
            stars, reasons = int(answer["satisfaction"]), answer["reasons"]
        except (ValueError, KeyError, TypeError):
            # Models do not always return the requested format.
            ctx.send_event(OutputEvent({**review, "unreadable": event.answer}))
            return
        count, total = memory.get("count", 0) + 1, memory.get("total", 0) + stars
        complaints = [*memory.get("complaints", []), *reasons][-3:]
        memory.set("count", count)
        memory.set("total", total)
        memory.set("complaints", complaints)
        average = round(total / count, 2)
        ctx.send_event(OutputEvent({**review, "stars": stars, "average": average, "complaints": complaints}))
        ctx.send_event(Judged(review=review, stars=stars, reasons=reasons))

    @action("type == 'Judged' && stars <= 2")
    def escalate(self, event: Judged, ctx: RunnerContext) -> None:
        team = "shipping" if "damage" in event.reasons else "support"
        ctx.send_event(Escalation(review=event.review, team=team))

    @action(Escalation)
    def notify(self, event: Escalation, ctx: RunnerContext) -> None:
        # A real one would create a ticket here, with `await ctx.durable_execute_async(...)`.
        ctx.send_event(OutputEvent({**event.review, "notify": event.team}))


def triaged(env: StreamExecutionEnvironment) -> DataStream:
    source = FileSource.for_record_stream_format(StreamFormat.json_lines(), str(REVIEWS)).build()
    reviews = env.from_source(source, source_name="reviews").key_by(lambda review: review["product"])
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    return agents.from_datastream(reviews).apply(ReviewTriage()).to_datastream()


def line(output: dict[str, Any]) -> str:
    start = f"{output['product']:<14} #{output['id']:<3}"
    if "notify" in output:
        return f"{start} ! {output['notify']}: {output['text']}"
    if "unreadable" in output:
        return f"{start} ? {output['unreadable']}"
    stars, complaints = "★" * output["stars"], ", ".join(output["complaints"]) or "none"
    return f"{start} {stars:<5}  average {output['average']:.2f}  last complaints: {complaints}"


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    triaged(env).map(line).print()
    env.execute("review triage")
