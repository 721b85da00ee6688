"""The context that an action receives together with its event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from emberflow.errors import NotSupported
from emberflow.events.agent_events import Event
from emberflow.events.copies import copied_event
from emberflow.operators.agents.guards.budgets import BudgetKind
from emberflow.operators.agents.guards.questions import NO_DEFAULT, HumanAnswer
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.operators.agents.resources.durable_views import DurableMethod, resource_view
from emberflow.operators.agents.resources.injected_arguments import injected_arguments
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.resources import ResourceType, resource_type
from emberflow.state.memory_object import MemoryObject

if TYPE_CHECKING:
    from emberflow.observability.metric_group import MetricGroup
    from emberflow.operators.agents.execution import ActionExecution
    from emberflow.operators.agents.guards.attempts import Failure

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
D = TypeVar("D")


class WantsKey(Protocol[R_co]):
    """A function that accepts the idempotency key of its durable call."""

    def __call__(self, *args: Any, idempotency_key: str, **kwargs: Any) -> R_co: ...


class RunnerContext:
    """One action's view of its run: events, memory, resources, calls. Must not be used after the action has ended."""

    __slots__ = ("_execution", "_run", "_short_term")

    def __init__(self, execution: ActionExecution) -> None:
        self._execution = execution
        self._run = execution.run
        self._short_term: MemoryObject | None = None

    def send_event(self, event: Event) -> None:
        """Sends an event: it triggers its actions when this action has ended; an OutputEvent is then sent downstream."""
        self._execution.send(event)

    @property
    def key(self) -> Any:
        """The key of the input."""
        return self._run.key

    @property
    def timestamp(self) -> int | None:
        """Event time of the input in milliseconds; outputs have the same timestamp."""
        return self._run.timestamp

    @property
    def run_id(self) -> str:
        """Identifies this input's run; the same when the run is repeated."""
        return self._run.run_id

    @property
    def short_term_memory(self) -> MemoryObject:
        """What the agent remembers about the key, across inputs."""
        found = self._short_term
        if found is None:
            run = self._run
            found = run.runtime.memory_view(run.memory.short_term(), "", self._execution)
            self._short_term = found
        return found

    @property
    def sensory_memory(self) -> MemoryObject:
        """Memory shared by the actions of this run; discarded when the run ends."""
        run = self._run
        return run.runtime.memory_view(run.memory.sensory(), "", self._execution)

    @property
    def long_term_memory(self) -> Any:
        """Not supported yet; raises `NotSupported`."""
        raise NotSupported(
            "long-term memory needs a vector store, which this version does not have yet",
            way_out="short_term_memory keeps values per key",
        )

    @property
    def config(self) -> Configuration:
        """The agent's settings."""
        return self._run.runtime.plan.config

    @property
    def action_config(self) -> dict[str, Any]:
        """The keyword arguments of `add_action(..., **config)`."""
        return self._execution.action.config

    def get_action_config_value(self, key: str) -> Any:
        """One value of `action_config`; None if it is not set."""
        return self._execution.action.config.get(key)

    @property
    def agent_metric_group(self) -> MetricGroup:
        """Counters and gauges of the agent."""
        return self._run.runtime.metrics

    @property
    def action_metric_group(self) -> MetricGroup:
        """Counters and gauges of this action."""
        return self._run.runtime.metrics.get_sub_group(self._execution.action.name)

    # Overloads: arguments are checked against the function's parameters. A type checker cannot do that with a reconciler,
    # or for a function that accepts an idempotency key.

    @overload
    def durable_execute(self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def durable_execute(
        self, func: Callable[..., R], *args: Any, reconciler: Callable[[], object] | None, **kwargs: Any
    ) -> R: ...
    @overload
    def durable_execute(self, func: WantsKey[R], *args: Any, **kwargs: Any) -> R: ...
    def durable_execute(
        self, func: Callable[..., Any], *args: Any, reconciler: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Any:
        """Runs `func(*args, **kwargs)` now and returns its result; when the action is repeated after a crash, the
        recorded result is returned instead.

        It blocks the whole task: prefer `durable_execute_async` for long calls. `reconciler` and `idempotency_key` are
        as there. Raises `InvalidArgument` for a coroutine function, and `ReplayMismatch` if a repeated action makes
        other calls than were recorded.
        """
        if isinstance(func, DurableMethod):
            return func.at_once(args, kwargs, reconciler)
        return self._execution.call_now(func, args, kwargs, reconciler)

    @overload
    def durable_execute_async(
        self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self,
        func: Callable[..., Awaitable[R]],
        *args: Any,
        reconciler: Callable[[], object] | None,
        **kwargs: Any,
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: Callable[..., R], *args: Any, reconciler: Callable[[], object] | None, **kwargs: Any
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: WantsKey[Awaitable[R]], *args: Any, **kwargs: Any
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(self, func: WantsKey[R], *args: Any, **kwargs: Any) -> Awaitable[R]: ...
    def durable_execute_async(
        self, func: Callable[..., Any], *args: Any, reconciler: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Awaitable[Any]:
        """Runs a coroutine function, or a blocking function in a thread, while other keys continue; awaiting it returns
        the function's result.

        The answer is recorded before it is returned, and returned again when the action is repeated after a crash. Several
        calls may be combined with `gather`. If a call was started but its answer was not recorded, `reconciler` is called
        instead of repeating the call. A function with a parameter `idempotency_key` receives a key that is the same when
        the call is repeated; declare it keyword-only or with a default, so that a type checker accepts the call without
        it. Raises `ReplayMismatch` if a repeated action makes other calls than were recorded.
        """
        if isinstance(func, DurableMethod):
            return func.in_time(args, kwargs, reconciler)
        return self._execution.call_async(func, args, kwargs, reconciler)

    # resources

    def get_resource(
        self, name: str, type: ResourceType | str, metric_group: Any = None, *, durable: bool = True
    ) -> Any:
        """A resource, created on first use and shared by all actions of this process. Calls of models and tools are
        durable: recorded, and answered from the record when the action is repeated; `durable=False` disables that."""
        kind = resource_type(type) if isinstance(type, str) else type
        return resource_view(self._execution, name, kind, durable=durable)

    @overload
    def chat(
        self,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output: None = None,
        max_steps: int | None = None,
        **settings: Any,
    ) -> Awaitable[Any]: ...
    @overload
    def chat(
        self,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output: type[D],
        max_steps: int | None = None,
        **settings: Any,
    ) -> Awaitable[D]: ...
    @overload
    def chat(
        self,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output: object,
        max_steps: int | None = None,
        **settings: Any,
    ) -> Awaitable[Any]: ...
    def chat(
        self,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output: Any = None,
        max_steps: int | None = None,
        **settings: Any,
    ) -> Awaitable[Any]:
        """The final answer of the chat model with this name: `await ctx.chat("judge", "Is it true?")`.

        If the model asks for tools of its setup, they are called, concurrently, and the model is asked again with their
        results, at most `max_steps` times (by default the option `chat.max-steps`). With `output`, a Pydantic model, a
        dataclass or another type, the answer is a value of it; a reply that does not fit is sent back to the model to
        be corrected. Without it, the answer is a `ChatMessage`. `settings` go to the model's service.

        In a plain action it returns the answer itself, and blocks all keys of the task until then.

        Every call of the model and of a tool is durable. The strategy `error-handling-strategy` = `retry` applies.
        Raises `StepLimitReached`, `OutputMismatch`, `ModelRefused` if there is an `output` and the model refuses to
        answer, `InvalidArgument` if the prompt of the model has a `{name}` without a value, `BudgetExceeded`, and the
        errors of the model's service, for those of emberflow `ModelFailed`.
        """
        blocking = not self._execution.action.awaits
        chat = partial(
            self._run.runtime.api.chat, CallBranch(self._execution, self, blocking=blocking), model, messages,
            prompt_args, output=output, max_steps=max_steps, settings=settings,
        )  # fmt: skip
        return self._execution.blocked_by(chat) if blocking else chat()

    def call_tool(self, name: str, /, **arguments: Any) -> Awaitable[Any]:
        """Calls the tool with this name: `await ctx.call_tool("add", a=1, b=2)`. Durable. Injected arguments are filled in.

        Raises `UnknownResource` if the agent has no such tool, `InvalidArgument` if the arguments do not fit, `ToolFailed`
        for a tool of an MCP server, and whatever the tool itself raises.
        """
        tool = self.get_resource(name, ResourceType.TOOL)
        return tool.call(arguments, **injected_arguments(tool, self))

    def call_agent(self, name: str, input: Any) -> Awaitable[Any]:
        """Calls another agent, a resource of the type AGENT: `await ctx.call_agent("researcher", "What is new?")`.

        The result is its output; None if it has none, a list if it has several. It runs as part of this action: its calls
        of models and tools are durable calls of this action, its memory of this key is its own.

        Raises `UnknownResource` if there is no such agent, `InvalidArgument` in a plain action or for an input that does
        not fit, and, if the agent fails, `ActionFailed` or the error of emberflow that its action raised: nothing that it
        did then remains.
        """
        from emberflow.operators.agents.sub_agents.agent_calls import call_agent

        return call_agent(self._execution, name, input)

    # guards

    @property
    def attempt(self) -> int:
        """The number of this attempt, starting with 1; higher only with `retry`."""
        guards = self._execution.guards
        return 1 if guards is None else guards.attempt

    @property
    def error(self) -> Failure | None:
        """In a fallback: how the action that it replaces failed."""
        return self._run.failure

    def spend(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """Adds to what is counted against the agent's budgets; raises BudgetExceeded if one of them is exceeded. Spending
        is not reverted if the action fails; an action that is repeated spends once."""
        self._execution.guarded().spend(tokens, cost)

    def check_budgets(self) -> None:
        """Raises BudgetExceeded if a budget of tokens or cost is used up; call it before something is paid for."""
        self._execution.guarded().check_budgets()

    def budget_left(self, kind: BudgetKind) -> float | None:
        """How many `steps` or `tokens`, or how much `cost`, may still be spent; None without such a budget.

        Raises `InvalidArgument` for any other kind.
        """
        return self._execution.guarded().budget_left(kind)

    def send_event_after(self, delay_ms: float, event: Event) -> None:
        """Sends an event that triggers its actions in a separate run, `delay_ms` of processing time from now, also after a
        restart. When bounded input ends, pending events fire early, and events that those delay are dropped."""
        self._execution.guarded().send_after(delay_ms, event)

    @overload
    def ask_human(
        self,
        question: str,
        options: Sequence[str] = ("approve", "reject"),
        *,
        expires_ms: int | None = None,
    ) -> Awaitable[HumanAnswer]: ...
    @overload
    def ask_human(
        self,
        question: str,
        options: Sequence[str] = ("approve", "reject"),
        *,
        expires_ms: int | None = None,
        default: D,
    ) -> Awaitable[HumanAnswer | D]: ...
    def ask_human(
        self,
        question: str,
        options: Sequence[str] = ("approve", "reject"),
        *,
        expires_ms: int | None = None,
        default: Any = NO_DEFAULT,
    ) -> Awaitable[Any]:
        """Asks a person (`emberflow approvals`) and returns the answer: one of the options, or any text if there are none,
        with a `note`. The key waits, other keys do not; the question survives restarts. If it is not answered within
        `expires_ms` after it was first asked, returns `default`, or raises ApprovalExpired."""
        return self._execution.guarded().ask_human(question, options, expires_ms, default)


def branch_of(ctx: RunnerContext, event: Event | None = None) -> CallBranch:
    """For the built-in actions: calls that do not get in the way of the action's other calls. They are made for `event`, by
    default that of the action."""
    return CallBranch(ctx._execution, ctx, event=event)


def next_events(ctx: RunnerContext) -> list[Event]:
    """For the built-in actions: the events that the action will be executed for next, before any other action of the run."""
    execution = ctx._execution
    found: list[Event] = []
    for action, event in execution.run.tasks:
        if action is not execution.action:
            break
        found.append(copied_event(event))
    return found


def set_for_good(ctx: RunnerContext, path: str, value: Any) -> None:
    """For the built-in actions: sets a value in sensory memory that remains there if the action fails."""
    ctx.sensory_memory.set(path, value)
    ctx._execution.kept.append(("sensory", "set", path, value))


def secrets_of(ctx: RunnerContext) -> Collection[str]:
    """For the built-in actions: the values of the agent's secrets, which must not be stored."""
    return ctx._execution.run.runtime.resources.secrets
