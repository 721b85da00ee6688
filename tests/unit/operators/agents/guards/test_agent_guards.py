"""Retry, timeout, fallback, error events, budgets and delayed events, in plain runs of the local engine."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelConnection,
    BaseChatModelSetup,
    Budget,
    ChatMessage,
    ErrorEvent,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Retry,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
)
from emberflow.approvals.answering import give_answer, questions
from emberflow.dead_letters.redrive import letters, redrive
from emberflow.errors import ActionFailed, BudgetExceeded, InvalidArgument, StepLimitReached
from emberflow.events.batch import MAX_WATERMARK
from emberflow.events.identity import text_identity
from emberflow.operators.agents.guards.attempts import jitter_share
from emberflow.testing import ManualClock, TestSource, run_agent
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.waiting import until

SKIP = {AgentExecutionOptions.ON_ERROR: ErrorHandling.SKIP}
QUICK = Retry(attempts=3, backoff_ms=1, jitter=0)


def single(function: Any, **guards: Any) -> Agent:
    return Agent("single").add_action("act", [InputEvent], function, **guards)


# retry


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "waiting"])
def test_a_failed_attempt_leaves_nothing(waits: bool) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        memory.append("attempts", ctx.attempt)
        ctx.sensory_memory.set("seen", ctx.attempt)
        ctx.send_event(OutputEvent(("early", ctx.attempt)))
        if ctx.attempt < event.input:
            raise ConnectionError("not yet")
        ctx.send_event(OutputEvent((memory.get("attempts"), ctx.sensory_memory.get("seen"))))

    async def act_later(event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(0)
        act(event, ctx)

    run = run_agent(single(act_later if waits else act, retry=QUICK), [1, 3, 2])
    assert run.outputs == [
        ("early", 1), ([1], 1), ("early", 3), ([1, 3], 3), ("early", 2), ([1, 3, 2], 2),
    ]  # fmt: skip
    ids = [event.id.rpartition(".")[2] for event in run.sent(OutputEvent)]
    assert ids == ["1", "2", "1", "2", "1", "2"]


def test_the_error_of_the_last_attempt_is_reported() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise ConnectionError(f"attempt {ctx.attempt}")

    with pytest.raises(ActionFailed) as caught:
        run_agent(single(act, retry=QUICK), [1])
    text = str(caught.value)
    assert (
        "action 'act', key 'test', event InputEvent(input=1): the action raised in each of 3 attempts" in text
    )
    assert "cause: ConnectionError: attempt 3" in text


def test_only_listed_errors_are_retried() -> None:
    calls: list[int] = []

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        calls.append(ctx.attempt)
        raise (ConnectionResetError if event.input == 1 else KeyError)("lost")

    agent = single(act, retry=Retry(attempts=3, backoff_ms=1, on=(ConnectionError,)))
    run_agent(agent, [1, 2], options=SKIP)
    assert calls == [1, 2, 3, 1]


@pytest.mark.parametrize("stored", [False, True], ids=["without-log", "with-log"])
def test_calls_that_returned_are_not_made_again(stored: bool, tmp_path: Path) -> None:
    made: list[tuple[str, str]] = []

    async def good(what: str, *, idempotency_key: str) -> str:
        made.append((what, idempotency_key))
        return what.upper()

    async def bad(attempt: int) -> int:
        made.append(("bad", str(attempt)))
        if attempt < 3:
            raise TimeoutError("slow")
        return attempt

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        first = await ctx.durable_execute_async(good, "a")
        second = ctx.durable_execute(len, "abc")
        # The arguments are those of the first attempt, so that the calls are the same.
        third = await ctx.durable_execute_async(lambda: bad(ctx.attempt))
        ctx.send_event(OutputEvent((first, second, third)))

    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=tmp_path if stored else None
    )
    agent = Agent("calls").add_action("act", [InputEvent], act, retry=QUICK)
    found = env.from_list([{"key": "k", "value": 1}]).apply(agent).to_list()
    env.execute()
    assert found == [{"k": ("A", 3, 3)}]
    assert [what for what, _ in made] == ["a", "bad", "bad", "bad"]
    assert made[0][1].endswith("/1/1")


@pytest.mark.parametrize("stored", [False, True], ids=["without-log", "with-log"])
def test_what_an_attempt_does_to_an_answer_is_not_seen_by_the_next(stored: bool, tmp_path: Path) -> None:
    async def found() -> list[int]:
        return [1]

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.durable_execute_async(found)
        answer.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError
        ctx.send_event(OutputEvent(answer))

    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=tmp_path if stored else None
    )
    outputs = env.from_list([{"key": "k", "value": 1}]).apply(single(act, retry=QUICK)).to_list()
    env.execute()
    assert outputs == [{"k": [1, 3]}]


def test_backoff_does_not_delay_other_keys() -> None:
    order: list[str] = []

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        order.append(f"{ctx.key}{ctx.attempt}")
        if ctx.key == "slow" and ctx.attempt == 1:
            raise ConnectionError

    inputs = [{"key": key, "value": 1} for key in ("slow", "a", "b", "a", "b")]
    run_agent(single(act, retry=Retry(backoff_ms=100)), inputs)
    assert order == ["slow1", "a1", "b1", "a1", "b1", "slow2"]


def test_jitter_is_the_same_for_a_repeated_attempt() -> None:
    shares = [jitter_share(f"step/run-{number}/1/", attempt) for number in range(50) for attempt in (2, 3)]
    assert shares == [
        jitter_share(f"step/run-{number}/1/", attempt) for number in range(50) for attempt in (2, 3)
    ]
    assert all(0 <= share < 1 for share in shares)
    assert max(shares) - min(shares) > 0.8


# timeout


def test_an_attempt_that_takes_too_long_is_cancelled() -> None:
    cancelled: list[int] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        try:
            if ctx.attempt < 3:
                await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(ctx.attempt)
            raise
        ctx.send_event(OutputEvent(ctx.attempt))

    run = run_agent(single(act, timeout_ms=500, retry=Retry(backoff_ms=1, on=(TimeoutError,))), [1])
    assert (run.outputs, cancelled) == ([3], [1, 2])


def test_a_timeout_is_reported() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(60)

    with pytest.raises(ActionFailed, match="TimeoutError: the action did not end within 10 ms"):
        run_agent(single(act, timeout_ms=10), [1])


def test_a_timeout_inside_the_action_is_reported_unchanged() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise TimeoutError("the socket")

    with pytest.raises(ActionFailed, match="TimeoutError: the socket"):
        run_agent(single(act, timeout_ms=10_000), [1])


def test_a_function_that_blocks_too_long_has_failed_when_it_returns() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        time.sleep(0.03)
        ctx.send_event(OutputEvent("late"))

    with pytest.raises(ActionFailed, match="the action did not end within 5 ms"):
        run_agent(single(act, timeout_ms=5), [1])


# fallback


class Sorry(Agent):
    @action(InputEvent, retry=QUICK, fallback="say_sorry")
    @staticmethod
    async def answer(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("answered", True)
        ctx.send_event(OutputEvent("half an answer"))
        if event.input == "bad":
            raise ConnectionError("the model is away")

    @action()
    @staticmethod
    def say_sorry(event: InputEvent, ctx: RunnerContext) -> None:
        error = ctx.error
        assert error is not None
        seen = ctx.short_term_memory.get("answered")
        reported = (event.input, error.action, error.error_type, error.message, error.attempts, seen)
        ctx.send_event(OutputEvent(reported))


def test_a_fallback_gets_the_event_and_the_error() -> None:
    assert run_agent(Sorry(), ["bad", "good"]).outputs == [
        ("bad", "answer", "ConnectionError", "the model is away", 3, None),
        "half an answer",
    ]


def test_fallbacks_of_fallbacks() -> None:
    def fails(event: Event, ctx: RunnerContext) -> None:
        before = ctx.error
        raise ValueError("1" if before is None else before.message + "2")

    def tells(event: Event, ctx: RunnerContext) -> None:
        assert ctx.error is not None
        ctx.send_event(OutputEvent((ctx.error.action, ctx.error.message)))

    agent = Agent("chain").add_action("one", [InputEvent], fails, fallback="two")
    agent.add_action("two", [], fails, fallback="three").add_action("three", [], tells)
    assert run_agent(agent, [0]).outputs == [("two", "12")]


def test_a_fallback_runs_before_other_events_that_were_sent() -> None:
    class Ordered(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("first"))
            ctx.send_event(Event("second"))

        @action("first", fallback="instead")
        @staticmethod
        def first(event: Event, ctx: RunnerContext) -> None:
            raise ValueError

        @action()
        @staticmethod
        def instead(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent("instead"))

        @action("second")
        @staticmethod
        def second(event: Event, ctx: RunnerContext) -> None:
            assert ctx.error is None
            ctx.send_event(OutputEvent("second"))

    assert run_agent(Ordered(), [0]).outputs == ["instead", "second"]


# error events


class Mending(Agent):
    @action(InputEvent)
    @staticmethod
    def check(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Event("go on"))
        if event.input < 0:
            raise ValueError(f"{event.input} is negative")
        ctx.send_event(OutputEvent(event.input))

    @action(ErrorEvent)
    @staticmethod
    def repair(event: ErrorEvent, ctx: RunnerContext) -> None:
        assert isinstance(event.event, InputEvent)
        if event.event.input == -13:
            raise KeyError("not this one")
        reported = (event.action, event.event.input, event.error_type, event.message, event.attempts)
        ctx.send_event(OutputEvent(reported))


def test_an_error_event_is_handled_by_its_action() -> None:
    run = run_agent(Mending(), [1, -2, 3])
    assert run.outputs == [1, ("check", -2, "ValueError", "-2 is negative", 1), 3]
    (reported,) = run.sent(ErrorEvent)
    assert reported.upstream_action_name == "check"
    assert reported.id.endswith("-2.1")


def test_an_error_handler_that_fails_goes_to_on_error() -> None:
    with pytest.raises(ActionFailed, match=r"action 'repair'[\s\S]*KeyError: 'not this one'"):
        run_agent(Mending(), [-13])
    assert run_agent(Mending(), [-13, 5], options=SKIP).outputs == [5]


def test_an_action_for_any_event_does_not_swallow_errors() -> None:
    agent = Mending()
    agent = Agent("any").add_action("check", [InputEvent], Mending.check)
    agent.add_action("log", [Event], lambda event, ctx: None)
    with pytest.raises(ActionFailed):
        run_agent(agent, [-1])


def test_error_events_by_expression() -> None:
    agent = Agent("by expression").add_action("check", [InputEvent], Mending.check)
    agent.add_action(
        "repair",
        ["type == '_error_event' && error_type == 'ValueError'"],
        lambda event, ctx: ctx.send_event(OutputEvent(event.get_attr("message"))),
    )
    assert run_agent(agent, [-1]).outputs == ["-1 is negative"]


def test_a_cycle_of_errors_ends_at_the_step_limit() -> None:
    class Circle(Agent):
        @action(InputEvent, "again")
        @staticmethod
        def fails(event: Event, ctx: RunnerContext) -> None:
            raise ValueError

        @action(ErrorEvent)
        @staticmethod
        def again(event: ErrorEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("again"))

    with pytest.raises(StepLimitReached):
        run_agent(Circle(), [0], options={AgentExecutionOptions.MAX_STEPS: 20})


# budgets


def spending(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.spend(tokens=event.input)
    ctx.send_event(OutputEvent((event.input, ctx.budget_left("tokens"))))


def test_a_key_spends_until_its_budget_is_used_up() -> None:
    agent = single(spending).add_budget(Budget(tokens=100, per="key"))
    inputs = [
        {"key": key, "value": tokens}
        for key, tokens in [("a", 60), ("b", 90), ("a", 50), ("a", 1), ("b", 10)]
    ]
    run = run_agent(agent, inputs, options=SKIP)
    assert run.by_key == {"a": [(60, 40)], "b": [(90, 10), (10, 0)]}


def test_an_exceeded_budget_is_an_error_that_says_so() -> None:
    agent = single(spending).add_budget(Budget(tokens=10))
    with pytest.raises(BudgetExceeded) as caught:
        run_agent(agent, [11])
    assert (
        "action 'act', key 'test', event InputEvent(input=11): the run has spent 11 tokens; its budget is 10"
        in str(caught.value)
    )


def test_retry_does_not_apply_to_budgets_but_a_fallback_does() -> None:
    attempts: list[int] = []

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        attempts.append(ctx.attempt)
        ctx.spend(cost=0.75)

    agent = single(act, retry=QUICK, fallback="cheap").add_budget(Budget(cost=0.5))
    agent.add_action("cheap", [], lambda event, ctx: ctx.send_event(OutputEvent(ctx.error.error_type)))
    assert run_agent(agent, [1]).outputs == ["BudgetExceeded"]
    assert attempts == [1]


def test_a_retried_action_spends_once() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.spend(tokens=10)
        if ctx.attempt < 3:
            raise ConnectionError
        ctx.send_event(OutputEvent(ctx.budget_left("tokens")))

    agent = single(act, retry=QUICK).add_budget(Budget(tokens=100, per="key"))
    assert run_agent(agent, [1, 1]).outputs == [90, 80]


def test_what_a_failed_action_spent_is_spent() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.spend(tokens=30)
        ctx.send_event(OutputEvent(ctx.budget_left("tokens")))
        if event.input:
            raise ValueError

    agent = single(act).add_budget(Budget(tokens=100, per="key"))
    assert run_agent(agent, [1, 1, 0], options=SKIP).outputs == [10]


def test_steps_of_a_run_and_of_a_key() -> None:
    def act(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(ctx.budget_left("steps")))
        ctx.send_event(Event("again"))

    agent = Agent("steps").add_action("act", [InputEvent, "again"], act).add_budget(Budget(steps=3))
    assert run_agent(agent, [1, 2], options=SKIP).outputs == [2, 1, 0, 2, 1, 0]
    agent = (
        Agent("steps").add_action("act", [InputEvent, "again"], act).add_budget(Budget(steps=4, per="key"))
    )
    assert run_agent(agent, [1, 2], options=SKIP).outputs == [3, 2, 1, 0]


def test_checking_before_paying() -> None:
    paid: list[int] = []

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.check_budgets()
        paid.append(event.input)
        ctx.spend(tokens=50)

    run_agent(single(act).add_budget(Budget(tokens=100, per="key")), [1, 2, 3, 4], options=SKIP)
    assert paid == [1, 2]


class PaidModel(BaseChatModelConnection):
    """Reports the tokens that its answers consumed."""

    calls: ClassVar[list[str]] = []

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        self.calls.append(messages[-1].content)
        return ChatMessage(content="ok", extra_args={"usage": {"total_tokens": 30}})


class Chatting(Agent):
    @chat_model_connection
    @staticmethod
    def connection() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=PaidModel)

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="connection")

    @action(InputEvent, retry=QUICK, fallback="decline")
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.check_budgets()
        model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
        await model.chat([ChatMessage(content=event.input)])
        if ctx.attempt < 2:
            raise ConnectionError
        ctx.send_event(OutputEvent(ctx.budget_left("tokens")))

    @action()
    @staticmethod
    def decline(event: InputEvent, ctx: RunnerContext) -> None:
        assert ctx.error is not None
        ctx.send_event(OutputEvent(ctx.error.error_type))


def test_model_answers_are_counted_once_automatically() -> None:
    PaidModel.calls.clear()
    agent = Chatting().add_budget(Budget(tokens=60, per="key"))
    assert run_agent(agent, ["a", "b", "c"]).outputs == [30, 0, "BudgetExceeded"]
    assert PaidModel.calls == ["a", "b"], "a repeated attempt is answered from recorded answers"


def test_without_budgets_spending_is_free() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.spend(tokens=10**9, cost=1e9)
        ctx.check_budgets()
        ctx.send_event(OutputEvent(ctx.budget_left("tokens")))

    assert run_agent(single(act), [1]).outputs == [None]


@pytest.mark.parametrize("amount", [-1, "5", float("nan")])
def test_invalid_amounts_to_spend(amount: Any) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.spend(tokens=amount)

    with pytest.raises(InvalidArgument, match="tokens cannot be"):
        run_agent(single(act), [1])


# delayed events


def test_delayed_events_fire_in_order_of_due_time_and_once() -> None:
    class Reminders(Agent):
        @action(InputEvent)
        @staticmethod
        def plan(event: InputEvent, ctx: RunnerContext) -> None:
            for delay_ms in (30, 10, 20, 10):
                count = ctx.short_term_memory.get("count", 0) + 1
                ctx.short_term_memory.set("count", count)
                ctx.send_event_after(delay_ms, Event("remind", {"delay": delay_ms, "number": count}))
            runs.append(ctx.run_id)

        @action("remind")
        @staticmethod
        def remind(event: Event, ctx: RunnerContext) -> None:
            runs.append(ctx.run_id)
            ctx.send_event(OutputEvent((event.get_attr("delay"), event.get_attr("number"))))
            assert event.upstream_action_name == "plan"

    runs: list[str] = []

    # The input ends at once, so that all of them fire early.
    assert run_agent(Reminders(), [1]).outputs == [(10, 2), (10, 4), (20, 3), (30, 1)]
    assert len(set(runs)) == 5, "each has a run of its own"


def test_delayed_events_of_a_failed_attempt_are_never_sent() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event_after(5, OutputEvent(("later", ctx.attempt)))
        if ctx.attempt < 2 or event.input < 0:
            raise ConnectionError

    assert run_agent(single(act, retry=QUICK), [1, -1], options=SKIP).outputs == [("later", 2)]


def test_the_end_waits_for_a_delayed_event_that_becomes_due_after_the_last_input() -> None:
    async def act(event: Event, ctx: RunnerContext) -> None:
        number = event.get_attr("input")[1]
        if number == 1:
            ctx.send_event_after(5, OutputEvent("later"))
        await Turn()
        ctx.send_event(OutputEvent(number))

    made = AgentHarness(Agent("a").add_action("act", [InputEvent], act), clock=ManualClock(0))
    made.send([("k", 1), ("k", 2)])
    made.calls.finish()
    made.end()
    made.advance_clock(10)
    made.calls.finish_all()
    assert made.values == [1, 2, "later"]
    assert made.outlet().watermarks == [MAX_WATERMARK]
    made.close()


def test_a_delayed_event_fires_while_the_job_is_idle() -> None:
    """Set by the end of a call, while the task sleeps and nothing else would wake it."""

    class Later(Agent):
        @action(InputEvent)
        @staticmethod
        async def begin(event: InputEvent, ctx: RunnerContext) -> None:
            await asyncio.sleep(0.05)
            ctx.send_event_after(50, OutputEvent("later"))

    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    stream = env.env.add_source(TestSource([("a", 1)], bounded=False))
    results = (
        env.from_datastream(stream, lambda pair: pair[0]).apply(Later()).to_datastream().execute_and_collect()
    )
    assert not isinstance(results, list)
    guard = threading.Timer(60, results.close)
    guard.start()
    with results:
        assert next(results) == "later"
    guard.cancel()


def test_unconsumed_dead_letters_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise ValueError

    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        run_agent(single(act), [1], options={AgentExecutionOptions.ON_ERROR: ErrorHandling.DEAD_LETTER})
    assert "the input goes to the dead letters, which no stream consumes: ActionFailed" in caplog.text


def test_an_event_that_sets_itself_again_ends_with_the_input() -> None:
    class Ticking(Agent):
        @action(InputEvent, "tick")
        @staticmethod
        async def tick(event: Event, ctx: RunnerContext) -> None:
            await asyncio.sleep(0)
            ctx.send_event(OutputEvent(event.type))
            ctx.send_event_after(60_000, Event("tick"))

    assert run_agent(Ticking(), [1]).outputs == ["_input_event", "tick"]


@pytest.mark.parametrize("delay", [-1, "5", float("nan"), float("inf"), None])
def test_invalid_delays(delay: Any) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event_after(delay, Event("x"))

    with pytest.raises(InvalidArgument, match="an event cannot be sent after"):
        run_agent(single(act), [1])


# questions to people


def test_asking_needs_a_checkpoint_directory() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.ask_human("May I?")

    with pytest.raises(InvalidArgument, match="give the environment a checkpoint_dir"):
        run_agent(single(act), [1])


class Refunds(Agent):
    @action(InputEvent)
    @staticmethod
    async def decide(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("asked", event.input)
        answer = await ctx.ask_human(f"Refund {event.input}?", expires_ms=event.input * 1_000_000)
        ctx.send_event(
            OutputEvent((event.input, str(answer), answer.note, ctx.short_term_memory.get("asked")))
        )


def asking(directory: Path, inputs: list[dict[str, Any]], agent: Agent) -> tuple[Any, list[Any]]:
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=directory
    )
    env.env.enable_checkpointing(20)
    outputs = env.from_list(inputs).apply(agent).to_list()
    return env.execute_async(), outputs


def open_questions(directory: Path, count: int) -> list[Any]:
    deadline = time.monotonic() + 300
    while len(found := questions(directory)) != count:
        assert time.monotonic() < deadline, "hang guard"
        time.sleep(0.01)
    return found


def test_a_person_is_asked_while_other_keys_continue_and_across_a_restart(tmp_path: Path) -> None:
    inputs = [{"key": key, "value": value} for key, value in (("a", 1), ("b", 2), ("a", 3))]
    client, _ = asking(tmp_path, inputs, Refunds())
    asked = {item.question: item for item in open_questions(tmp_path, 2)}
    assert asked.keys() == {"Refund 1?", "Refund 2?"}
    client.cancel()
    # Answered while the job is not running.
    give_answer(tmp_path, asked["Refund 1?"].id, "approve", note="fine")
    client, outputs = asking(tmp_path, inputs, Refunds())
    (third,) = [item for item in open_questions(tmp_path, 2) if item.question == "Refund 3?"]
    (second,) = [item for item in open_questions(tmp_path, 2) if item.question == "Refund 2?"]
    assert second == asked["Refund 2?"], "the same question, asked once"
    give_answer(tmp_path, second.id, "reject")
    give_answer(tmp_path, third.id, "reject", note="enough")
    client.get_job_execution_result().result()
    assert sorted(outputs, key=str) == [
        {"a": (1, "approve", "fine", [1])},
        {"a": (3, "reject", "enough", [1, 3])},
        {"b": (2, "reject", "", [2])},
    ]
    assert questions(tmp_path) == []
    assert len(questions(tmp_path, answered=True)) == 3


def test_questions_expire(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        default = {} if event.input else {"default": "reject"}
        ctx.send_event(OutputEvent(await ctx.ask_human("May I?", expires_ms=5, **default)))

    agent = single(act, fallback="late")
    agent.add_action("late", [], lambda event, ctx: ctx.send_event(OutputEvent(ctx.error.error_type)))
    client, outputs = asking(tmp_path, [{"key": key, "value": key} for key in (0, 1)], agent)
    client.get_job_execution_result().result()
    assert sorted(outputs, key=str) == [{0: "reject"}, {1: "ApprovalExpired"}]
    assert questions(tmp_path) == []


def test_an_action_that_times_out_withdraws_its_question(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.ask_human("May I?")

    agent = single(act, timeout_ms=300, retry=Retry(attempts=2, backoff_ms=0), fallback="late")
    agent.add_action("late", [], lambda event, ctx: ctx.send_event(OutputEvent(ctx.error.message)))
    client, outputs = asking(tmp_path, [{"key": 0, "value": 0}], agent)
    client.get_job_execution_result().result()
    assert outputs == [{0: "the action did not end within 300 ms"}]
    assert questions(tmp_path, answered=True) == []


# dead letters


def redriven(directory: Path, repaired: bool) -> list[Any]:
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=directory
    )
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "dead-letter")
    env.env.enable_checkpointing(20)

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("seen", event.input)
        if event.input < 0 and not repaired:
            raise ValueError(f"{event.input} is negative")
        ctx.send_event(OutputEvent(tuple(ctx.short_term_memory.get("seen"))))

    source = TestSource([("a", 1), ("b", -2), ("a", -3)], bounded=False)
    keyed = env.env.add_source(source).key_by(lambda pair: pair[0]).map(lambda pair: pair)
    stream = env.from_datastream(keyed, lambda pair: pair[0])
    agent = single(lambda event, ctx: act(InputEvent(event.input[1]), ctx))
    outputs: list[Any] = []
    stream.apply(agent).to_datastream().add_sink(outputs.append).uid("outputs")
    client = env.execute_async()
    return [client, outputs]


def test_redriven_letters_are_processed_once_by_a_running_and_a_restarted_job(tmp_path: Path) -> None:
    client, outputs = redriven(tmp_path, repaired=False)
    found = until(lambda: letters(tmp_path) if len(letters(tmp_path)) == 2 else [])
    assert {letter.body["key"]: letter.body["error"] for letter in found} == {
        "b": "-2 is negative",
        "a": "-3 is negative",
    }
    # It fails again, in a separate run.
    redrive([letter for letter in found if letter.body["key"] == "b"])
    again = until(
        lambda: [item for item in letters(tmp_path) if item.id.endswith("-2") and item.body["key"] == "b"]
    )
    client.cancel()
    assert outputs == [(1,)]
    # Requested while the job is not running, and processed by the program as it is now.
    redrive([letter for letter in letters(tmp_path) if not letter.redriven])
    client, outputs = redriven(tmp_path, repaired=True)
    until(lambda: len(outputs) >= 2)
    client.cancel()
    assert sorted(outputs) == [(-2,), (1, -3)]
    assert len(again) == 1
    client, outputs = redriven(tmp_path, repaired=True)
    client.cancel()
    assert outputs == []
    assert len(letters(tmp_path)) == 3


def test_dead_letters_are_a_stream() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "dead-letter")

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("seen", event.input)
        if event.input < 0:
            raise ValueError(f"{event.input} is negative")
        ctx.send_event(OutputEvent(ctx.short_term_memory.get("seen")))

    inputs = [{"key": "k", "value": value} for value in (1, -2, 3)]
    built = env.from_list(inputs).apply(single(act, retry=Retry(attempts=2, backoff_ms=0)))
    outputs, letters = built.to_list(), list[Any]()
    built.dead_letters().add_sink(letters.append)
    env.execute()
    assert outputs == [{"k": [1]}, {"k": [1, 3]}]
    (letter,) = letters
    assert letter.pop("failed_ms") > 0
    assert letter.pop("id").endswith("-2")
    assert letter == {
        "agent": "single",
        "action": "act",
        "event_type": "_input_event",
        "key": "k",
        "input": -2,
        "timestamp": None,
        "error_type": "ValueError",
        "error": "-2 is negative",
        "attempts": 2,
    }


def test_dead_letters_without_the_option() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    built = env.from_list([]).apply(single(lambda event, ctx: None))
    with pytest.raises(InvalidArgument, match="its option 'on-error' is not 'dead-letter'"):
        built.dead_letters()


def test_dead_letters_do_not_change_the_identity_of_the_agent(tmp_path: Path) -> None:
    """The state of a job without dead letters is compatible with a job that has them."""

    def uids(on_error: str, *, taken: bool = False) -> set[str]:
        env = AgentsExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=tmp_path)
        env.get_config().set(AgentExecutionOptions.ON_ERROR, on_error)
        built = env.from_list([]).apply(single(lambda event, ctx: None))
        built.to_datastream().print()
        if taken:
            built.dead_letters().print()
        return {node.uid for node in env.env.job_graph().stream_graph.nodes}

    plain, with_letters = uids("skip"), uids("dead-letter")
    assert plain < with_letters
    assert with_letters < uids("dead-letter", taken=True)


def test_two_agents_with_one_name_have_separate_letters(tmp_path: Path) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise ValueError(str(event.input))

    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=tmp_path
    )
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "dead-letter")
    for value in (1, 2):
        env.from_list([{"key": "k", "value": value}]).apply(single(act)).to_list()
    env.execute()
    found = {letter.folder.name: letter.body["input"] for letter in letters(tmp_path)}
    # The name of the second agent's folder cannot be that of another agent.
    assert found == {"single": 1, f"single_2-{text_identity('single#2')}": 2}
