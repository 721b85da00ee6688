"""The demo's program: an agent that judges product reviews, live.

reviews ─ by product ─► the agent (a model call per review) ─┬─► verdicts ─ by mood ─► how many per 5 seconds
                                                             └─► escalations
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple, TypeGuard

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
from emberflow.demo.reviews import Review, ReviewGenerator, answer
from emberflow.streams import (
    AggregateFunction,
    DataGeneratorSource,
    ProcessWindowFunction,
    RateLimiterStrategy,
    Sink,
    StreamExecutionEnvironment,
    TimeWindow,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowContext,
)
from emberflow.testing import ScriptedChatModel

WINDOW = timedelta(seconds=5)
LATENESS = timedelta(milliseconds=500)
UNHAPPY = 2
"""Customers with up to this many stars are unhappy; one more is neutral."""
LAST_COMPLAINTS = 3


class Verdict(NamedTuple):
    """A review with the model's opinion and what the agent remembers about its product."""

    review: Review
    stars: int
    average: float
    """The product's average so far."""
    asked_ms: float
    answered_ms: float
    """Wall clock around the model call."""


class Escalation(NamedTuple):
    number: int
    product: str
    team: str
    text: str
    complaints: list[str]
    """The product's last complaints, this one included."""
    written_ms: int


class Moods(NamedTuple):
    mood: str
    start_ms: int
    reviews: int


class Answered(Event):
    review: Review
    answer: str
    asked_ms: float
    answered_ms: float


class Judged(Event):
    review: Review
    stars: int
    complaint: str


def is_unhappy(event: Event) -> bool:
    """A trigger may be a function of the event; "type == 'Judged' && stars <= 2" would work too."""
    return isinstance(event, Judged) and event.stars <= UNHAPPY


class ReviewTriage(Agent):
    """Asks a model about each review, tracks how each product is doing, and escalates unhappy customers."""

    @prompt
    @staticmethod
    def instructions() -> Prompt:
        return Prompt.from_text(
            'You judge reviews of "{product}". Answer with JSON: '
            '{"satisfaction": 1 to 5, "complaint": one word, or empty}'
        )

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        # A real model goes here: ResourceDescriptor(clazz=MyService, api_key=Secret("MY_SERVICE_KEY")).
        return ResourceDescriptor(clazz=ScriptedChatModel, replies=answer)

    @chat_model_setup
    @staticmethod
    def judge() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", prompt="instructions")

    @action(InputEvent)
    async def ask(self, event: InputEvent, ctx: RunnerContext) -> None:
        review: Review = event.input
        judge: BaseChatModelSetup = ctx.get_resource("judge", ResourceType.CHAT_MODEL)
        asked_ms = time.time() * 1000
        said = await ctx.durable_execute_async(
            judge.chat, [ChatMessage(content=review.text)], {"product": ctx.key}
        )
        ctx.send_event(
            Answered(review=review, answer=said.content, asked_ms=asked_ms, answered_ms=time.time() * 1000)
        )

    @action(Answered)
    def remember(self, event: Answered, ctx: RunnerContext) -> None:
        found, memory = json.loads(event.answer), ctx.short_term_memory
        stars, complaint = int(found["satisfaction"]), str(found["complaint"])
        count, total = memory.get("count", 0) + 1, memory.get("total", 0) + stars
        memory.set("count", count)
        memory.set("total", total)
        if complaint:
            memory.set("complaints", [*memory.get("complaints", []), complaint][-LAST_COMPLAINTS:])
        verdict = Verdict(event.review, stars, total / count, event.asked_ms, event.answered_ms)
        ctx.send_event(OutputEvent(verdict))
        ctx.send_event(Judged(review=event.review, stars=stars, complaint=complaint))

    @action(is_unhappy)
    def escalate(self, event: Judged, ctx: RunnerContext) -> None:
        review, complaints = event.review, ctx.short_term_memory.get("complaints", [])
        team = "shipping" if event.complaint == "damage" else "support"
        ctx.send_event(
            OutputEvent(
                Escalation(
                    review.number, review.product, team, review.text, list(complaints), review.written_ms
                )
            )
        )


def product(review: Review) -> str:
    return review.product


def written(review: Review, _: int) -> int:
    return review.written_ms


def is_verdict(output: object) -> TypeGuard[Verdict]:
    return isinstance(output, Verdict)


def is_escalation(output: object) -> TypeGuard[Escalation]:
    return isinstance(output, Escalation)


def mood(verdict: Verdict) -> str:
    if verdict.stars <= UNHAPPY:
        return "unhappy"
    return "neutral" if verdict.stars == UNHAPPY + 1 else "happy"


class Count(AggregateFunction[Verdict, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Verdict, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


class WithWindow(ProcessWindowFunction[int, Moods, str, TimeWindow]):
    def process(
        self, key: str, context: WindowContext[TimeWindow], elements: Iterable[int]
    ) -> Iterable[Moods]:
        for reviews in elements:
            yield Moods(key, context.window().start, reviews)


def build(
    env: StreamExecutionEnvironment,
    *,
    reviews: int,
    reviews_per_s: float | None,
    start_ms: int,
    verdicts_sink: Sink[Verdict],
    escalations_sink: Sink[Escalation],
    moods_sink: Sink[Moods],
) -> None:
    """Adds the whole program to an environment; without a rate all reviews are available at once."""
    rate = RateLimiterStrategy.per_second(reviews_per_s) if reviews_per_s else None
    generator = ReviewGenerator(start_ms, reviews_per_s or 1000.0)
    source = DataGeneratorSource(generator, count=reviews, rate_limiter_strategy=rate)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(LATENESS).with_timestamp_assigner(written)
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.from_source(source, strategy, "reviews")
    outputs = agents.from_datastream(stream, product).apply(ReviewTriage()).to_datastream()
    verdicts = outputs.filter(is_verdict).name("verdicts")
    verdicts.sink_to(verdicts_sink).name("to the shop")
    outputs.filter(is_escalation).name("escalations").sink_to(escalations_sink).name("to the teams")
    windows = verdicts.key_by(mood).window(TumblingEventTimeWindows.of(WINDOW))
    windows.aggregate(Count(), WithWindow()).name("moods per 5 s").sink_to(moods_sink).name("moods")
