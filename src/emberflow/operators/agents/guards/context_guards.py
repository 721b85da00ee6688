"""The part of an action's context that has to do with its guards: attempts, budgets, delayed events, people.

`RunnerContext` is made of it. What an action does here counts when it has ended, as its events and its memory do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

from emberflow.errors import CallLogFailed, InvalidArgument, did_you_mean, shorten
from emberflow.events.agent_events import Event
from emberflow.events.copies import copied_event
from emberflow.operators.agents.action_errors import check_event
from emberflow.operators.agents.calls.durable_calls import ActionCalls, CallRecord, Recorded
from emberflow.operators.agents.guards.attempts import AttemptLog, Failure
from emberflow.operators.agents.guards.budgets import PAID, Amounts, added, check_amount
from emberflow.operators.agents.guards.delayed_events import Due, check_delay
from emberflow.operators.agents.guards.questions import (
    NO_DEFAULT,
    Approvals,
    HumanAnswer,
    Question,
    ask,
    check_question,
)

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.routes import RunnableAction

D = TypeVar("D")

BudgetKind = Literal["steps", "tokens", "cost"]
KINDS: tuple[BudgetKind, ...] = get_args(BudgetKind)


class Beyond:
    """What one attempt of an action does besides sending and remembering. Made when it first does."""

    __slots__ = ("asked", "attempt", "later", "log", "spent")

    def __init__(self) -> None:
        self.attempt = 1
        self.spent: Amounts = {}
        self.later: list[Due] = []
        self.asked: set[str] = set()
        """Questions that nobody has answered yet."""
        self.log: AttemptLog | None = None


class ContextGuards:
    __slots__ = ()

    beyond: Beyond | None
    ended: bool
    sent: list[Event]
    _run: AgentRun
    _action: RunnableAction
    _event: Event
    _durable: ActionCalls | None
    _unrecorded: int

    # attempts

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1 on; more only with `retry`."""
        return 1 if self.beyond is None else self.beyond.attempt

    @property
    def error(self) -> Failure | None:
        """In a fallback: how the action failed in whose place it runs."""
        return self._run.failure

    def begin_again(self, attempt: int) -> None:
        """An attempt has failed and is undone; calls that returned will be answered from the log."""
        run, beyond = self._run, self._beyond()
        if self._durable is not None:
            self._durable.fail()
        run.journal.undo()
        run.take_back(self.sent)
        self.sent = []
        self._durable = None
        self._unrecorded = 0
        beyond.attempt = attempt
        beyond.later = []
        # Started once, however often it is tried.
        beyond.spent = {kind: amount for kind, amount in beyond.spent.items() if kind == "steps"}

    def log_of_calls(self) -> Recorded | None:
        """Where the answers of this action's calls are found again, if anywhere."""
        log = self._run.agent.log
        if self._action.guards.retry is None:
            return log
        beyond = self._beyond()
        if beyond.log is None:
            beyond.log = AttemptLog(log)
        return beyond.log

    def _beyond(self) -> Beyond:
        if self.beyond is None:
            self.beyond = Beyond()
        return self.beyond

    # budgets

    def spend(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """Counts against the agent's budgets; raises BudgetExceeded if one of them is overspent by now. What was spent
        stays spent, whether the action ends well or not; an action that is repeated spends once."""
        check_amount("tokens", tokens)
        check_amount("cost", cost)
        self._check_alive("spends")
        given = {"tokens": tokens, "cost": cost}
        self._count({kind: amount for kind, amount in given.items() if amount})

    def charge_step(self) -> None:
        """The action is started."""
        self._count({"steps": 1})

    def _count(self, amounts: Amounts) -> None:
        run = self._run
        budgets = run.agent.budgets
        if not budgets or not amounts:
            return
        beyond = self._beyond()
        beyond.spent = added(beyond.spent, amounts)
        budgets.check(amounts, run.spent, run.key_spent(), beyond.spent, run.scope.clock.now_ms())

    def check_budgets(self) -> None:
        """Raises BudgetExceeded if a budget of tokens or cost is used up: to be asked before something is paid for."""
        run = self._run
        if run.agent.budgets:
            spent: Amounts = {} if self.beyond is None else self.beyond.spent
            now_ms = run.scope.clock.now_ms()
            run.agent.budgets.check(PAID, run.spent, run.key_spent(), spent, now_ms, ahead=True)

    def budget_left(self, kind: BudgetKind) -> float | None:
        """How many `steps` or `tokens`, or how much `cost`, may still be spent; None without such a budget.

        Another kind raises `InvalidArgument`.
        """
        if kind not in KINDS:
            raise InvalidArgument(
                f"there is no budget of {shorten(kind)}{did_you_mean(kind, KINDS)}",
                way_out=f"one of {', '.join(KINDS)}",
            )
        run = self._run
        spent: Amounts = {} if self.beyond is None else self.beyond.spent
        return run.agent.budgets.left(kind, run.spent, run.key_spent(), spent, run.scope.clock.now_ms())

    # delayed events

    def send_event_after(self, delay_ms: float, event: Event) -> None:
        """The event triggers its actions in a run of its own, `delay_ms` of processing time from now, also after a
        restart. When bounded input ends, what still waits comes early, and what that sends for later is dropped."""
        check_delay(delay_ms)
        self._check_alive("sends an event")
        run = self._run
        check_event(event, run.agent.max_event_bytes)
        # A copy: the event may be sent again, or changed, before it is stored.
        later = copied_event(event)
        later.id = ""
        later.upstream_event_id = self._event.id
        later.upstream_action_name = self._action.name
        clock = run.scope.clock
        # The clock of a micro-batch stands still when the batch is over, and the action may not be.
        live_ms = getattr(clock, "live_ms", clock.now_ms)
        due_ms = (live_ms() if run.detached else clock.now_ms()) + int(delay_ms)
        self._beyond().later.append((due_ms, later, run.timestamp))

    def _check_alive(self, what: str) -> None:
        if self.ended:
            raise InvalidArgument(
                f"action {self._action.name!r} {what} after it has ended",
                way_out="await everything the action starts before it returns",
            )

    # people

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
        """What a person answers (`emberflow approvals`): one of the options, or any text if there are none, with a
        `note`. The key waits, other keys do not; it survives restarts. Not answered `expires_ms` after it was first
        asked, it is answered by `default`, or raises ApprovalExpired."""
        chosen = check_question(question, options, expires_ms)
        run, durable = self._run, self._durable_calls()
        desk = run.agent.approvals
        if desk is None or durable is None:
            raise InvalidArgument(
                "ask_human() needs a place where people find the question",
                way_out="give the environment a checkpoint_dir; `emberflow approvals list DIR` looks there",
            )
        # Numbered here and not when it is awaited, as every durable call.
        call = durable.next(ask, (question, chosen, expires_ms), {}, "ask_human")
        asked = Question(
            call_id=call.call_id,
            question=question,
            options=chosen,
            expires_ms=expires_ms,
            agent=run.agent.plan.name,
            action=self._action.name,
            key=shorten(run.key),
        )
        return self._answered(desk, durable, call, asked, default)

    async def _answered(
        self, desk: Approvals, durable: ActionCalls, call: CallRecord, question: Question, default: Any
    ) -> Any:
        open_questions = self._beyond().asked
        open_questions.add(call.call_id)
        try:
            answer = await durable.run(call, partial(ask, desk, question, default), None)
        except CallLogFailed:
            raise  # The question stays open for a later start.
        except Exception:
            await asyncio.to_thread(desk.settled, call.call_id)
            open_questions.discard(call.call_id)
            raise
        # Its answer is in the log by now.
        await asyncio.to_thread(desk.settled, call.call_id)
        open_questions.discard(call.call_id)
        return answer

    def withdraw_questions(self) -> None:
        """The action has failed for good: what it asked need not be answered any more."""
        desk = self._run.agent.approvals
        if desk is not None and self.beyond is not None:
            for call_id in sorted(self.beyond.asked):
                desk.settled(call_id)
            self.beyond.asked.clear()

    def _durable_calls(self) -> ActionCalls | None:
        raise NotImplementedError(type(self).__name__)
