"""Questions to people: what an action asks, and the contract of the store of questions and answers.

Asking is a durable call: its id identifies the question, so a repeated action asks the same question, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from emberflow.errors import ApprovalExpired, InvalidArgument, shorten
from emberflow.events.stored_types import stored_type

NO_DEFAULT: Any = object()
"""Distinct from None, which may be a default."""


@stored_type(
    write=lambda answer: (str(answer), answer.note, answer.by), read=lambda _, fields: HumanAnswer(*fields)
)
class HumanAnswer(str):
    """The chosen option, or the text that was entered; with `note` and `by`."""

    __slots__ = ("by", "note")

    note: str
    by: str

    def __new__(cls, answer: str, note: str = "", by: str = "") -> HumanAnswer:
        made = super().__new__(cls, answer)
        made.note = note
        made.by = by
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. `call_id` is the id of the durable call that asks."""

    call_id: str
    question: str
    options: tuple[str, ...]
    """The allowed answers; if empty, any text."""
    expires_ms: int | None
    """Measured from when the question was first asked."""
    agent: str
    action: str
    key: str


class Approvals(Protocol):
    """Kept by the engine where people can access it."""

    async def ask(self, question: Question) -> HumanAnswer | None:
        """Waits for the answer; None if the question has expired. Asking again does not create another question."""
        ...

    def settled(self, call_id: str) -> None:
        """The answer is in the log: the question need not be kept."""
        ...


def check_question(question: Any, options: Sequence[str], expires_ms: Any) -> tuple[str, ...]:
    """The options; raises InvalidArgument for an invalid question."""
    if not isinstance(question, str) or not question.strip():
        raise InvalidArgument(
            f"the question {shorten(question)} is not a string",
            way_out='write ask_human("Refund 120 € to Ann?")',
        )
    if isinstance(options, str) or not all(isinstance(item, str) and item for item in options):
        raise InvalidArgument(
            f"the options {shorten(options)} are not strings", way_out='write options=("approve", "reject")'
        )
    if expires_ms is not None and (
        isinstance(expires_ms, bool) or not isinstance(expires_ms, int) or expires_ms <= 0
    ):
        raise InvalidArgument(
            f"expires_ms cannot be {shorten(expires_ms)}", way_out="give whole milliseconds greater than 0"
        )
    return tuple(options)


async def ask(desk: Approvals, question: Question, default: Any) -> Any:
    """The person's answer; if there is none in time, the default, or raises ApprovalExpired."""
    answer = await desk.ask(question)
    if answer is not None:
        return answer
    if default is NO_DEFAULT:
        raise ApprovalExpired(
            f"the question {shorten(question.question)} was not answered within {question.expires_ms:,} ms",
            way_out="answer with `emberflow approvals answer`, ask with default=…, or give the action a fallback",
        )
    return default
