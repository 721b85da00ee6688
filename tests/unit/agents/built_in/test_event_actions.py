"""The built-in actions: when a plan has them, what they send, and the retry strategy (A19, A42)."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentPlan,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    ChatRequestEvent,
    ChatResponseEvent,
    ErrorEvent,
    Event,
    EventType,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    ToolRequestEvent,
    ToolResponseEvent,
)
from emberflow.agents.built_in.tool_results import result_of, shown
from emberflow.errors import CallLogFailed, EmberflowError, InvalidAgent, InvalidArgument, ModelFailed
from emberflow.testing import Reply, ScriptedChatModel, When, run_agent, tool_call
from tests.support.chat_agents import FORMS, add, chatting, reacting, requesting, with_model

BUILT_IN = ["chat_model_action", "tool_call_action"]
RETRY = {
    AgentExecutionOptions.ERROR_HANDLING_STRATEGY: "retry",
    AgentExecutionOptions.RETRY_WAIT_INTERVAL: 0.001,
}


def built_in(agent: Agent) -> list[str]:
    return [name for name in AgentPlan.from_agent(agent).actions if name in BUILT_IN]


# which plans have them


def sends_request(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(ChatRequestEvent("model", "hi"))


def sends_plain_event(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(Event(type="_chat_request_event", attributes={"model": "model", "messages": []}))


def sends_output(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(event.input))


@pytest.mark.parametrize("act", [sends_request, sends_plain_event])
def test_an_agent_that_sends_a_chat_request_has_them(act: Any) -> None:
    assert built_in(with_model(Agent("a").add_action("act", [InputEvent], act), ["hi"])) == BUILT_IN


@pytest.mark.parametrize(
    "trigger", [EventType.ToolResponseEvent, ChatResponseEvent, "type == '_chat_response_event'"]
)
def test_an_agent_that_handles_an_answer_has_them(trigger: Any) -> None:
    agent = (
        Agent("a").add_action("act", [InputEvent], sends_output).add_action("end", [trigger], sends_output)
    )
    assert built_in(agent) == BUILT_IN


def test_other_agents_do_not_pay_for_them() -> None:
    agent = with_model(Agent("a").add_action("act", [InputEvent], sends_output), ["hi"])
    assert built_in(agent) == []
    assert not AgentPlan.from_agent(agent).is_async
    assert built_in(chatting(["hi"])) == [], "ctx.chat needs no events"


def test_their_names_are_taken() -> None:
    agent = Agent("a").add_action("chat_model_action", [InputEvent], sends_request)
    with pytest.raises(InvalidAgent, match="'chat_model_action' has the name of a built-in action"):
        AgentPlan.from_agent(agent)


def test_a_plan_with_them_is_stored_as_json() -> None:
    plan = AgentPlan.from_agent(requesting(["hi"]))
    again = AgentPlan.from_json(plan.to_json())
    assert again.actions["chat_model_action"].function is plan.actions["chat_model_action"].function
    assert plan.warnings == ()


# what they send


def test_a_run_shows_every_step_as_an_event() -> None:
    replies = [Reply(tool_calls=[tool_call("add", a=1, b=2), tool_call("add", a=3, b=4)]), "3 and 7"]
    run = run_agent(requesting(replies), ["go"])

    request = run.sent(ChatRequestEvent)[0]
    tools = run.sent(ToolRequestEvent)[0]
    results = run.sent(ToolResponseEvent)[0]
    answer = run.sent(ChatResponseEvent)[0]
    assert isinstance(tools, ToolRequestEvent)
    assert isinstance(results, ToolResponseEvent)
    assert isinstance(answer, ChatResponseEvent)
    assert results.request_id == tools.id
    assert list(results.responses.values()) == [3, 7]
    assert list(results.responses) == [call["id"] for call in tools.tool_calls]
    assert answer.request_id == request.id
    assert (answer.response.content, answer.retry_count, answer.total_retry_wait_sec) == ("3 and 7", 0, 0)


def test_requests_with_their_own_ids_do_not_mix() -> None:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        for number in (1, 2):
            ctx.send_event(ChatRequestEvent("model", f"question {number}"))

    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.request_id.rpartition(".")[2], event.response.content)))

    replies = [
        When(contains="question 1", reply=[Reply(tool_calls=[tool_call("add", a=1, b=1)]), "first"]),
        When(contains="question 2", reply=[Reply(tool_calls=[tool_call("add", a=2, b=2)]), "second"]),
    ]
    agent = (
        Agent("two")
        .add_action("ask", [InputEvent], ask)
        .add_action("answered", [ChatResponseEvent], answered)
    )
    assert run_agent(with_model(agent, replies), ["go"]).outputs == [("1", "first"), ("2", "second")]


# adjacent requests: their calls are made together


arrived: list[str] = []
"""The questions, in the order in which the model is asked."""


class Meeting(BaseChatModelConnection):
    """Answers when as many calls are in flight as there are requests; fails for some questions."""

    size: int = 3

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        question = messages[-1].content
        arrived.append(question)
        # A guard against hangs: calls one after another never meet.
        for _ in range(3_000):
            if len(arrived) % self.size == 0:
                break
            await asyncio.sleep(0.01)
        together = len(arrived) % self.size == 0
        if question.startswith("fail"):
            raise ModelFailed("the service is down")
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"{question} {together}")


def asking(*questions: str) -> Agent:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        for question in questions:
            ctx.send_event(ChatRequestEvent("model", question))

    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.response.content))

    arrived.clear()
    return (
        Agent("asking")
        .add_action("ask", [InputEvent], ask)
        .add_action("answered", [ChatResponseEvent], answered)
        .add_resource(
            "service",
            ResourceType.CHAT_MODEL_CONNECTION,
            ResourceDescriptor(clazz=Meeting, size=len(questions)),
        )
        .add_resource(
            "model",
            ResourceType.CHAT_MODEL,
            ResourceDescriptor(clazz=BaseChatModelSetup, connection="service"),
        )
    )


def test_models_are_asked_concurrently_and_answer_in_order() -> None:
    run = run_agent(asking("a", "b", "c"), ["go"])
    assert run.outputs == ["a True", "b True", "c True"]
    assert arrived == ["a", "b", "c"]


@pytest.mark.parametrize("bad", ["fail a", "fail b", "fail c"])
def test_a_failure_belongs_to_its_own_request(bad: str) -> None:
    questions = ["a", "b", "c"]
    questions["abc".index(bad[-1])] = bad
    options = {AgentExecutionOptions.ERROR_HANDLING_STRATEGY: "ignore"}
    run = run_agent(asking(*questions), ["go"], options=options)
    assert run.outputs == [f"{question} True" for question in questions if question != bad]
    assert arrived == questions, "no call is made twice"


def test_a_failure_is_reported_for_the_request_that_failed() -> None:
    failed: list[str] = []

    def handle(event: ErrorEvent, ctx: RunnerContext) -> None:
        failed.append(event.event.attributes["messages"][0].content)

    agent = asking("a", "fail b", "c").add_action("handle", [ErrorEvent], handle)
    assert run_agent(agent, ["go"]).outputs == ["a True", "c True"]
    assert failed == ["fail b"]


def test_tools_of_adjacent_requests_run_concurrently() -> None:
    met: list[str] = []

    async def meet(name: str) -> str:
        """Waits for the other one."""
        met.append(name)
        for _ in range(3_000):
            if len(met) == 2:
                return f"{name} met"
            await asyncio.sleep(0.01)
        return f"{name} alone"

    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        for name in ("x", "y"):
            ctx.send_event(ToolRequestEvent(model="", tool_calls=[tool_call("meet", name=name)]))

    def answered(event: ToolResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent([*event.responses.values()]))

    agent = (
        Agent("tools").add_action("ask", [InputEvent], ask).add_action("end", [ToolResponseEvent], answered)
    )
    agent.add_resource("meet", ResourceType.TOOL, meet)
    assert run_agent(agent, ["go"]).outputs == [["x met"], ["y met"]]


def test_a_malformed_request_fails_alone() -> None:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(ChatRequestEvent("model", "a"))
        ctx.send_event(Event(type=EventType.ChatRequestEvent, attributes={"model": 3}))

    handled: list[str] = []
    agent = asking("a")
    agent.add_action("more", [InputEvent], ask)
    agent.add_action("handle", [ErrorEvent], lambda event, ctx: handled.append(event.event.type))
    assert run_agent(agent, ["go"]).outputs == ["a True", "a True"]
    assert handled == [EventType.ChatRequestEvent]


# the retry strategy


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_call_is_repeated(form: Callable[..., Agent]) -> None:
    run = run_agent(form([When(reply=Reply("yes", errors_first=[500, "timeout"]))]), ["go"], options=RETRY)
    assert run.outputs == ["yes"]


def test_the_answer_says_how_often_and_how_long() -> None:
    replies = [
        When(
            reply=[
                Reply(tool_calls=[tool_call("add", a=1, b=2)], errors_first=[500]),
                Reply("yes", errors_first=[500, 500]),
            ]
        )
    ]
    run = run_agent(requesting(replies), ["go"], options=RETRY)
    answer = run.sent(ChatResponseEvent)[0]
    assert isinstance(answer, ChatResponseEvent)
    assert answer.retry_count == 3
    assert answer.total_retry_wait_sec == pytest.approx(0.001 + 0.001 + 0.002)


@pytest.mark.parametrize("form", FORMS)
def test_retries_end(form: Callable[..., Agent]) -> None:
    calls = ScriptedChatModel.calls_of("retries")
    calls.clear()
    agent = form([When(reply=Reply(error=500))], name="retries")
    with pytest.raises(EmberflowError, match="action"):
        run_agent(agent, ["go"], options={**RETRY, AgentExecutionOptions.MAX_RETRIES: 2})
    assert len(calls) == 3


@pytest.mark.parametrize("form", FORMS)
def test_without_the_strategy_the_first_failure_counts(form: Callable[..., Agent]) -> None:
    calls = ScriptedChatModel.calls_of("once")
    calls.clear()
    with pytest.raises(EmberflowError):
        run_agent(form([When(reply=Reply(error=500))], name="once"), ["go"])
    assert len(calls) == 1


@pytest.mark.parametrize("form", [requesting, reacting])
def test_ignored_failures_are_not_answered(form: Callable[..., Agent]) -> None:
    replies = [When(contains="bad", reply=Reply(error=500)), When(reply="good")]
    options = {AgentExecutionOptions.ERROR_HANDLING_STRATEGY: "ignore"}
    run = run_agent(form(replies), ["bad", "fine"], options=options)
    assert run.outputs == ["good"]


def test_the_chat_of_a_context_cannot_ignore_a_failure() -> None:
    options = {AgentExecutionOptions.ERROR_HANDLING_STRATEGY: "ignore"}
    with pytest.raises(EmberflowError):
        run_agent(chatting([When(reply=Reply(error=500))]), ["go"], options=options)


def test_a_wait_blocks_no_other_key() -> None:
    """The first key waits for its retry until the second has ended."""
    replies = [When(contains="slow", reply=Reply("slow", errors_first=[500])), When(reply="quick")]
    inputs = [{"key": "a", "value": "slow"}, {"key": "b", "value": "quick"}]
    options = {**RETRY, AgentExecutionOptions.RETRY_WAIT_INTERVAL: 0.5}
    started = time.monotonic()
    assert run_agent(requesting(replies), inputs, options=options).outputs == ["quick", "slow"]
    assert time.monotonic() - started >= 0.5


def test_a_failure_that_would_repeat_is_not_retried() -> None:
    calls = ScriptedChatModel.calls_of("broken")
    calls.clear()
    with pytest.raises(EmberflowError, match="takes no argument 'repleis'"):
        run_agent(
            with_model(
                Agent("a").add_action("act", [InputEvent], sends_request), ["hi"], name="broken"
            ).add_resource("other", ResourceType.TOOL, add),
            ["go"],
            options=RETRY,
            resources={("service", ResourceType.CHAT_MODEL_CONNECTION): _broken_service()},
        )
    assert not calls


def _broken_service() -> Any:
    from emberflow.agents import ResourceDescriptor

    return ResourceDescriptor(clazz=ScriptedChatModel, repleis=["hi"])


def test_a_failure_reaches_the_agents_error_handling() -> None:
    def handle(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.action, event.error_type)))

    agent = requesting([When(reply=Reply(error=500))]).add_action("handle", [ErrorEvent], handle)
    ((action, error_type),) = run_agent(agent, ["go"]).outputs
    assert action == "chat_model_action"
    assert error_type


# bad input


@pytest.mark.parametrize(
    ("attributes", "missing"),
    [({"messages": []}, "model"), ({"model": "model"}, "messages")],
)
def test_a_request_without_what_it_needs(attributes: dict[str, Any], missing: str) -> None:
    event = Event(type=ChatRequestEvent.EVENT_TYPE, attributes=attributes)
    with pytest.raises(InvalidArgument, match=f"has no attribute '{missing}', which ChatRequestEvent needs"):
        ChatRequestEvent.from_event(event)


@pytest.mark.parametrize("kind", [ChatResponseEvent, ToolRequestEvent, ToolResponseEvent])
def test_other_events_without_what_they_need(kind: type[Event]) -> None:
    with pytest.raises(InvalidArgument, match=f"which {kind.__name__} needs"):
        kind.from_event(Event(type=kind.EVENT_TYPE, attributes={}))


def test_a_request_names_its_model() -> None:
    with pytest.raises(InvalidArgument, match="model must be the name of a chat model, got"):
        ChatRequestEvent(object(), "hi")  # pyright: ignore[reportArgumentType]


def test_messages_in_a_plain_event_may_be_plain_data() -> None:
    event = Event(
        type=ChatRequestEvent.EVENT_TYPE,
        attributes={"model": "m", "messages": [{"role": "user", "content": "hi"}], "output_schema": None},
    )
    request = ChatRequestEvent.from_event(event)
    assert request.messages == [ChatMessage(content="hi")]
    assert request.prompt_args == {}
    assert request.output_schema is None
    answer = Event(
        type=ChatResponseEvent.EVENT_TYPE,
        attributes={"request_id": "1", "response": {"role": "assistant", "content": "hello"}},
    )
    assert ChatResponseEvent.from_event(answer).response.content == "hello"
    assert ChatResponseEvent.from_event(answer).retry_count == 0


def test_results_nobody_waits_for_are_ignored() -> None:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(ToolResponseEvent("nobody", {"1": 2}))
        ctx.send_event(OutputEvent("done"))

    agent = with_model(Agent("a").add_action("ask", [InputEvent], ask), ["hi"])
    assert run_agent(agent, ["go"]).outputs == ["done"]


def test_a_cancelled_tool_is_a_failed_tool() -> None:
    async def cancels() -> None:
        """Cancels itself."""
        raise asyncio.CancelledError

    agent = requesting([Reply(tool_calls=[tool_call("cancels")]), "done"], tools=["cancels"])
    agent.add_resource("cancels", ResourceType.TOOL, cancels)
    run = run_agent(agent, ["go"])
    assert run.outputs == ["done"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_tried_again(form: Callable[..., Agent], status: int) -> None:
    calls = ScriptedChatModel.calls_of("scripted")
    calls.clear()
    with pytest.raises(EmberflowError):
        run_agent(form([When(reply=Reply(error=status))], name="scripted"), ["go"], options=RETRY)
    assert len(calls) == 1


def test_a_failure_of_the_log_inside_a_tool_stops_the_job() -> None:
    """However the tool wrapped it: the model is not told, and no strategy ignores it."""

    def lost() -> None:
        try:
            raise CallLogFailed("the disk is full")
        except CallLogFailed as error:
            raise RuntimeError("no answer") from error

    for form in (chatting, requesting):
        agent = form([Reply(tool_calls=[tool_call("lost")]), "never"], tools=["lost"])
        agent.add_resource("lost", ResourceType.TOOL, lost)
        with pytest.raises(CallLogFailed, match="the disk is full"):
            run_agent(agent, ["go"], options={AgentExecutionOptions.ERROR_HANDLING_STRATEGY: "ignore"})


def test_results_of_an_event_are_shown_like_those_of_a_call() -> None:
    day = datetime.date(2030, 1, 31)
    assert shown("when", {"day": day}) == ({"day": "2030-01-31"}, '{"day": "2030-01-31"}')
    assert result_of("when", {"day": day}) == dict(
        zip(("value", "text"), shown("when", {"day": day}), strict=True)
    )
    text = "Error: the tool 'lock' returned a object, which cannot be converted to text"
    assert shown("lock", object()) == (text, text)
