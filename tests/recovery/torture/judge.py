"""Compares a tortured run with an undisturbed one. Uses only what was recorded; no process, no clock."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

ANSWERED = (200, 422)
_SHOWN = 3
_TO_RECORD_S = 3.0
"""An answer that was sent this long before a fault must be on disk, even if the action had not received it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that the model server received."""

    at: float
    prompt: str
    idempotency_key: str | None
    outcome: int | None = None
    """HTTP status; 0: the caller was gone; None: the server died before answering."""
    answered_at: float | None = None
    kind: str = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that may require a call in flight to be repeated, from its start to its end."""

    begin: float
    end: float
    what: str
    of_server: bool = False
    many: bool = False
    """A disk fault: every attempt to record an answer may fail."""


@dataclass(slots=True, kw_only=True)
class Run:
    """What is known about a run."""

    outputs: list[tuple[Any, ...]]
    calls: list[Call]
    finished: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """When the job received the answer to which prompt: by then it was recorded."""
    causes: list[Cause] = field(default_factory=list[Cause])


@dataclass(slots=True, kw_only=True)
class Verdict:
    violations: list[str] = field(default_factory=list[str])
    calls: int = 0
    repeated_in_flight: int = 0
    repeated_recorded: int = 0
    asked_again_after_error: int = 0


def judge(undisturbed: Run, tortured: Run) -> Verdict:
    verdict = Verdict(calls=sum(call.kind == "call" for call in tortured.calls))
    verdict.violations += compare_outputs(undisturbed.outputs, tortured.outputs)
    verdict.violations += _compare_keys(undisturbed.calls, tortured.calls)
    verdict.violations += _compare_identities(tortured.calls)
    _judge_repetitions(tortured, verdict)
    return verdict


def check_alone(run: Run, inputs: Iterable[tuple[Any, int, int]]) -> list[str]:
    """Checks on a run without faults: all inputs have their own calls, answers and questions. Comparing two runs would not
    find a bug that both have."""
    violations = _compare_identities(run.calls)
    wanted = {(repr(key), at_ms): (repr(key), number) for key, number, at_ms in inputs}
    asked = {call.prompt for call in run.calls}
    unasked = [f"open {key} {number}" for key, number in wanted.values()]
    if missing := [prompt for prompt in unasked if prompt not in asked]:
        violations.append(f"{len(missing)} calls never made: {_shown(missing)}")
    answers = [item for item in run.outputs if item[0] == "answer"]
    got, expected = Counter((repr(item[1]), item[2]) for item in answers), Counter(wanted.keys())
    if got != expected:
        violations.append(
            f"answers for other inputs than there were: {_shown((got - expected) or expected - got)}"
        )
    for item in answers:
        key, number = wanted.get((repr(item[1]), item[2]), ("", 0))
        if item[11] is not None and item[11][1] != f"Close {key}, {number}?":
            violations.append(f"an answer to another question: {item[11]} for {key}, {number}")
    return violations


def _compare_identities(calls: Iterable[Call]) -> list[str]:
    """An idempotency key belongs to one call."""
    prompts: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if call.idempotency_key is not None:
            prompts[call.idempotency_key].add(call.prompt)
    shared = [sorted(items) for items in prompts.values() if len(items) > 1]
    return [f"{len(shared)} idempotency keys of several calls: {_shown(shared)}"] if shared else []


def compare_outputs(expected: Sequence[tuple[Any, ...]], found: Sequence[tuple[Any, ...]]) -> list[str]:
    """Equal as multisets, and per kind and key in the same order."""
    wanted, got = Counter(map(repr, expected)), Counter(map(repr, found))
    violations: list[str] = []
    lost, added = wanted - got, got - wanted
    if lost:
        violations.append(f"{lost.total()} outputs lost: {_shown(lost)}")
    repeated = Counter({item: count for item, count in added.items() if item in wanted})
    if repeated:
        violations.append(f"{repeated.total()} outputs repeated: {_shown(repeated)}")
    strange = added - repeated
    if strange:
        violations.append(
            f"{strange.total()} outputs that the undisturbed run does not have: {_shown(strange)}"
        )
    if not violations:
        in_order, other = _per_key(expected), _per_key(found)
        moved = [key for key in in_order if in_order[key] != other[key]]
        if moved:
            violations.append(f"outputs in another order for {_shown(moved)}")
    return violations


def _per_key(outputs: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, Any], list[tuple[Any, ...]]]:
    found: dict[tuple[Any, Any], list[tuple[Any, ...]]] = defaultdict(list)
    for item in outputs:
        found[item[0], item[1]].append(item)
    return found


def _compare_keys(expected: list[Call], found: list[Call]) -> list[str]:
    """The same calls with the same idempotency keys. A call of which only a reconciler's request arrived counts."""
    wanted = {call.prompt: call.idempotency_key for call in expected}
    got = {(call.prompt, call.idempotency_key) for call in found if call.kind == "call"}
    strange = [item for item in sorted(got) if wanted.get(item[0]) != item[1]]
    missing = sorted(wanted.keys() - {call.prompt for call in found})
    violations: list[str] = []
    if strange:
        violations.append(f"{len(strange)} calls that the undisturbed run does not make: {_shown(strange)}")
    if missing:
        violations.append(f"{len(missing)} calls never made: {_shown(missing)}")
    return violations


def _judge_repetitions(run: Run, verdict: Verdict) -> None:
    reconciled = {call.prompt for call in run.calls if call.prompt.startswith("reconciled")}
    recorded: dict[str, float] = {}
    for at, prompt in run.finished:
        recorded[prompt] = min(at, recorded.get(prompt, at))
    by_prompt: dict[str, list[Call]] = defaultdict(list)
    for call in sorted(run.calls, key=lambda call: call.at):
        if call.kind == "call":
            by_prompt[call.prompt].append(call)
    for prompt, calls in by_prompt.items():
        repeated = 0
        for before, again in itertools.pairwise(calls):
            if again.at > recorded.get(prompt, again.at):
                verdict.repeated_recorded += 1
                late_ms = (again.at - recorded[prompt]) * 1000
                verdict.violations.append(
                    f"a recorded call was made again, {late_ms:.0f} ms after its answer was given: {prompt!r}"
                )
            elif before.outcome is not None and before.outcome not in (*ANSWERED, 0):
                verdict.asked_again_after_error += 1
            else:
                repeated += 1
                in_flight_to = again.at
                if before.outcome in ANSWERED and before.answered_at is not None:
                    in_flight_to = min(again.at, before.answered_at + _TO_RECORD_S)
                causes = _causes_between(
                    run.causes, before.at, in_flight_to, server_only=prompt in reconciled
                )
                if not causes:
                    verdict.violations.append(
                        f"a call was made again after {(again.at - before.at) * 1000:.0f} ms "
                        f"and was not in flight at any fault: {prompt!r}"
                    )
        verdict.repeated_in_flight += repeated
        causes = _causes_between(run.causes, calls[0].at, calls[-1].at)
        allowed = len(causes)
        if repeated > allowed > 0 and not any(cause.many for cause in causes):
            verdict.violations.append(
                f"a call in flight was repeated {repeated} times with {allowed} causes: {prompt!r}"
            )


def _causes_between(
    causes: list[Cause], begin: float, end: float, *, server_only: bool = False
) -> list[Cause]:
    """With a reconciler, only a loss between job and server is a reason to repeat the call: otherwise the reconciler is
    called."""
    return [
        cause
        for cause in causes
        if cause.begin <= end and begin <= cause.end and (cause.of_server or not server_only)
    ]


def _shown(items: Iterable[Any]) -> str:
    shown = [str(item)[:160] for item in items]
    rest = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + rest
