"""What an action does besides sending events and writing memory: attempts, budgets, delayed events, questions to people.

Belongs to one `ActionExecution` and is created when the action first needs it. Like the action's events and memory
writes, it takes effect when the action has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from emberflow.errors import CallLogFailed, InvalidArgument, NotSupported, did_you_mean, shorten
from emberflow.events.agent_events import Event
from emberflow.events.run_ids import format_delayed
from emberflow.operators.agents.calls.durable_calls import ActionCalls, CallRecord, Recorded
from emberflow.operators.agents.guards.attempts import AttemptLog
from emberflow.operators.agents.guards.budgets import KINDS, PAID, Amounts, BudgetKind, added, check_amount
from emberflow.operators.agents.guards.delayed_events import Due, check_delay
from emberflow.operators.agents.guards.questions import Approvals, Question, ask, check_question
from emberflow.operators.agents.sent_events import sent_copy

if TYPE_CHECKING:
    from emberflow.operators.agents.execution import ActionExecution

_SETTLING_THREADS = 2
"""Separate from the threads of blocking calls: settling an answer must not wait for one of them."""


class ActionGuards:
    __slots__ = ("_asked", "_execution", "_log", "attempt", "later", "spent")

    def __init__(self, execution: ActionExecution) -> None:
        self._execution = execution
        self.attempt = 1
        self.spent: Amounts = {}
        self.later: list[Due] = []
        self._asked: set[str] = set()
        """Questions that have not been answered yet."""
        self._log: AttemptLog | None = None

    # attempts

    def start_attempt(self, attempt: int) -> None:
        """The previous attempt has failed and was reverted."""
        self._execution.start_over()
        self.attempt = attempt
        self.later = []
        # A step is counted once, regardless of the number of attempts.
        self.spent = {kind: amount for kind, amount in self.spent.items() if kind == "steps"}

    def log_of_attempts(self, log: Recorded | None) -> AttemptLog:
        """Where later attempts find the answers of this attempt's calls; `log` is where they are recorded, if at all."""
        if self._log is None:
            self._log = AttemptLog(log)
        return self._log

    # budgets

    def spend(self, tokens: int, cost: float) -> None:
        check_amount("tokens", tokens)
        check_amount("cost", cost)
        self._execution.check_running("spends")
        given = {"tokens": tokens, "cost": cost}
        self.count({kind: amount for kind, amount in given.items() if amount})

    def count(self, amounts: Amounts) -> None:
        """Raises BudgetExceeded if a budget is exceeded."""
        run = self._execution.run
        if run.caller is not None:
            run.caller.guarded().count(amounts)
        budgets = run.runtime.budgets
        if budgets and amounts:
            self.spent = added(self.spent, amounts)
            budgets.check(amounts, run.spent, run.key_spent(), self.spent, run.now_ms())

    def check_budgets(self) -> None:
        """Raises BudgetExceeded if a budget of tokens or cost is used up; called before something is paid for."""
        run = self._execution.run
        if run.caller is not None:
            run.caller.guarded().check_budgets()
        budgets = run.runtime.budgets
        if budgets:
            now_ms = run.now_ms()
            budgets.check(PAID, run.spent, run.key_spent(), self.spent, now_ms, ahead=True)

    def budget_left(self, kind: BudgetKind) -> float | None:
        if kind not in KINDS:
            raise InvalidArgument(
                f"there is no budget of {shorten(kind)}{did_you_mean(kind, KINDS)}",
                way_out=f"one of {', '.join(KINDS)}",
            )
        run = self._execution.run
        if run.caller is not None:
            return run.caller.guarded().budget_left(kind)
        now_ms = run.now_ms()
        return run.runtime.budgets.left(kind, run.spent, run.key_spent(), self.spent, now_ms)

    # delayed events

    def send_after(self, delay_ms: float, event: Event) -> None:
        check_delay(delay_ms)
        execution = self._execution
        execution.check_running("sends an event")
        run = execution.run
        if run.caller is not None:
            raise NotSupported(
                f"agent {run.runtime.plan.name!r} sends a delayed event, but was called by another agent",
                cause="its run ends when the call returns",
                way_out="send the delayed event in the agent that calls it",
            )
        # A copy: the event may be sent again, or changed, before it is stored.
        settings = run.runtime.settings
        later = sent_copy(event, settings.max_event_bytes, as_json=settings.events_as_json)
        later.id = format_delayed(run.run_id, run.steps, len(self.later) + 1)
        later.upstream_event_id = execution.event.id
        later.upstream_action_name = execution.action.name
        self.later.append((run.now_ms() + int(delay_ms), later, run.timestamp))

    # questions to people

    def ask_human(
        self, question: str, options: Sequence[str], expires_ms: int | None, default: Any
    ) -> Awaitable[Any]:
        chosen = check_question(question, options, expires_ms)
        run, durable = self._execution.run, self._execution.durable_calls()
        approvals = run.runtime.approvals
        if approvals is None or durable is None:
            raise InvalidArgument(
                "ask_human() needs a place where people can find the question",
                way_out="give the environment a checkpoint_dir; `emberflow approvals list DIR` reads it",
            )
        # Numbered here and not when it is awaited, like every durable call.
        call = durable.next(ask, (question, chosen, expires_ms), {}, "ask_human")
        asked = Question(
            call_id=call.call_id,
            question=question,
            options=chosen,
            expires_ms=expires_ms,
            agent=run.runtime.plan.name,
            action=self._execution.action.name,
            key=shorten(run.key),
        )
        return self._answered(approvals, durable, call, asked, default)

    async def _answered(
        self, approvals: Approvals, durable: ActionCalls, call: CallRecord, question: Question, default: Any
    ) -> Any:
        self._asked.add(call.call_id)
        try:
            answer = await durable.run(call, partial(ask, approvals, question, default), None)
        except CallLogFailed:
            raise  # The question stays open for a later start.
        except Exception:
            await self._settle(approvals, call.call_id)
            raise
        # The answer is in the log now.
        await self._settle(approvals, call.call_id)
        return answer

    async def _settle(self, approvals: Approvals, call_id: str) -> None:
        calls = self._execution.run.runtime.calls
        await calls.in_thread(partial(approvals.settled, call_id), _SETTLING_THREADS)
        self._asked.discard(call_id)

    def withdraw_questions(self) -> None:
        """The action has failed permanently: its open questions need no answers."""
        approvals = self._execution.run.runtime.approvals
        if approvals is not None:
            for call_id in sorted(self._asked):
                approvals.settled(call_id)
            self._asked.clear()
