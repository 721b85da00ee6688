"""The judge of the torture test must reject what it is designed to find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.recovery.torture.damage import Damaged, refused_clearly
from tests.recovery.torture.judge import Call, Cause, Run, Verdict, check_alone, compare_outputs, judge
from tests.recovery.torture.run_files import RunFiles

OUTPUTS: list[tuple[Any, ...]] = [
    ("answer", "a", 1),
    ("answer", "b", 1),
    ("answer", "a", 2),
    ("window", "a", 3),
    ("answer", "b", 2),
]
CALLS = [Call(at=float(n), prompt=f"p{n}", idempotency_key=f"id{n}", outcome=200) for n in range(1, 5)]
RECONCILED = Call(at=5.0, prompt="reconciled 5", idempotency_key="id5", outcome=200)
CALLS.append(RECONCILED)


def judged(
    *more: Call,
    finished: list[tuple[float, str]] | None = None,
    causes: list[Cause] | None = None,
    calls: list[Call] | None = None,
) -> Verdict:
    undisturbed = Run(outputs=OUTPUTS, calls=CALLS)
    tortured = Run(
        outputs=OUTPUTS,
        calls=[*(CALLS if calls is None else calls), *more],
        finished=finished or [],
        causes=causes or [],
    )
    return judge(undisturbed, tortured)


def kill(at: float, **more: Any) -> Cause:
    return Cause(begin=at, end=at, what="kill", **more)


def again(number: int, at: float, **more: Any) -> Call:
    return replace(CALLS[number - 1], at=at, **more)


def test_an_undisturbed_run_is_accepted() -> None:
    verdict = judged(finished=[(call.at + 0.1, call.prompt) for call in CALLS])
    assert verdict.violations == []
    assert (verdict.calls, verdict.repeated_in_flight, verdict.repeated_recorded) == (5, 0, 0)


def test_keys_may_interleave_differently() -> None:
    other = [OUTPUTS[1], OUTPUTS[4], OUTPUTS[0], OUTPUTS[2], OUTPUTS[3]]
    assert compare_outputs(OUTPUTS, other) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (OUTPUTS[:-1], "1 outputs lost: ('answer', 'b', 2)"),
        ([*OUTPUTS, OUTPUTS[0]], "1 outputs repeated: ('answer', 'a', 1)"),
        ([*OUTPUTS, ("answer", "a", 9)], "1 outputs that the undisturbed run does not have"),
        ([OUTPUTS[2], OUTPUTS[1], OUTPUTS[0], *OUTPUTS[3:]], "another order for ('answer', 'a')"),
        ([], "5 outputs lost"),
    ],
    ids=["lost", "repeated", "strange", "reordered", "all lost"],
)
def test_wrong_outputs_are_rejected(found: list[tuple[Any, ...]], said: str) -> None:
    (violation,) = compare_outputs(OUTPUTS, found)
    assert said in violation


def test_a_changed_output_is_both_missing_and_unexpected() -> None:
    changed = [*OUTPUTS[:-1], ("answer", "b", 3)]
    assert [violation.split(":")[0] for violation in compare_outputs(OUTPUTS, changed)] == [
        "1 outputs lost",
        "1 outputs that the undisturbed run does not have",
    ]


def test_a_recorded_call_may_not_be_made_again_whatever_happened() -> None:
    verdict = judged(again(2, 9.0), finished=[(2.5, "p2")], causes=[kill(3.0), kill(8.0)])
    assert verdict.repeated_recorded == 1
    assert "a recorded call was made again, 6500 ms" in verdict.violations[0]


def test_a_call_in_flight_at_a_kill_may_be_made_again() -> None:
    verdict = judged(again(2, 9.0), finished=[(9.5, "p2")], causes=[kill(2.1)])
    assert verdict.violations == []
    assert (verdict.repeated_in_flight, verdict.repeated_recorded) == (1, 0)


def test_without_a_cause_no_call_may_be_made_again() -> None:
    for causes in ([], [kill(1.9)], [kill(9.1)]):
        assert "not in flight at any fault: 'p2'" in judged(again(2, 9.0), causes=causes).violations[0]


def test_a_call_that_was_answered_long_before_a_kill_was_not_in_flight() -> None:
    answered = [replace(call, answered_at=call.at + 0.1) for call in CALLS]
    assert judged(again(2, 9.0), calls=answered, causes=[kill(2.2)]).violations == []
    assert "not in flight" in judged(again(2, 9.0), calls=answered, causes=[kill(8.0)]).violations[0]


def test_one_kill_explains_one_repetition() -> None:
    twice = [again(2, 6.0), again(2, 9.0)]
    assert judged(*twice, causes=[kill(5.0), kill(7.0)]).violations == []
    assert len(judged(*twice, causes=[kill(5.0)]).violations) == 2
    lasting = Cause(begin=5.0, end=8.0, what="driver and what is left of it")
    assert "repeated 2 times with 1 causes" in judged(*twice, causes=[lasting]).violations[0]
    assert judged(*twice, causes=[replace(lasting, many=True)]).violations == []


def test_an_error_response_may_be_followed_by_another_attempt() -> None:
    failed = [replace(call, outcome=429) if call.prompt == "p2" else call for call in CALLS]
    verdict = judged(again(2, 9.0), calls=failed)
    assert verdict.violations == []
    assert (verdict.asked_again_after_error, verdict.repeated_in_flight) == (1, 0)


def test_a_call_with_a_reconciler_is_not_made_again_after_a_kill() -> None:
    repeated = replace(RECONCILED, at=9.0)
    assert judged(repeated, causes=[kill(6.0)]).violations
    assert judged(repeated, causes=[kill(6.0, of_server=True)]).violations == []
    asked = replace(RECONCILED, at=9.0, kind="reconcile", idempotency_key=None)
    assert judged(asked, causes=[kill(6.0)]).violations == []
    assert judged(asked, calls=CALLS[:-1], causes=[kill(6.0)]).violations == []


@pytest.mark.parametrize(
    "call",
    [
        Call(at=6.0, prompt="p9", idempotency_key="id9", outcome=200),
        Call(at=6.0, prompt="p2", idempotency_key="id9", outcome=200),
    ],
    ids=["other prompt", "other key"],
)
def test_calls_that_the_undisturbed_run_does_not_make_are_rejected(call: Call) -> None:
    assert "undisturbed run does not make" in judged(call, causes=[kill(5.5)]).violations[0]


INPUTS = [("a", 0, 0), ("b", 1, 100), ("a", 7, 700)]


def alone(outputs: list[tuple[Any, ...]] | None = None, calls: list[Call] | None = None) -> list[str]:
    made = [
        Call(at=float(n), prompt=f"open {key!r} {n}", idempotency_key=f"id{n}", outcome=200)
        for key, n, _ in INPUTS
    ]
    answers = [answer(key, at_ms, f"Close {key!r}, {n}?") for key, n, at_ms in INPUTS]
    run = Run(outputs=answers if outputs is None else outputs, calls=made if calls is None else calls)
    if calls is not None:
        run.calls = [*made, *calls]
    return check_alone(run, INPUTS)


def answer(key: str, at_ms: int, question: str) -> tuple[Any, ...]:
    return ("answer", key, at_ms, 1, 1, 1, 1, 1, [], [], "run", ("approve", question), ())


def test_a_run_alone_is_accepted_when_every_input_has_its_own() -> None:
    assert alone() == []


def test_two_calls_with_one_idempotency_key_are_rejected() -> None:
    shared = Call(at=9.0, prompt="another", idempotency_key="id1", outcome=200)
    assert "1 idempotency keys of several calls" in alone(calls=[shared])[0]
    stranger = Call(at=9.0, prompt="p9", idempotency_key="id1", outcome=200)
    assert any("of several calls" in item for item in judged(stranger).violations)


def test_answers_for_other_inputs_and_to_other_questions_are_rejected() -> None:
    first, second = answer("a", 0, "Close 'a', 0?"), answer("b", 100, "Close 'b', 1?")
    assert "answers for other inputs" in alone([first, second])[0]
    assert "answers for other inputs" in alone([first, second, second])[0]
    wrong = answer("a", 700, "Close 'b', 1?")
    assert "an answer to another question" in alone([first, second, wrong])[0]


def test_an_input_without_calls_of_its_own_is_rejected() -> None:
    run = Run(outputs=[answer(key, at_ms, f"Close {key!r}, {n}?") for key, n, at_ms in INPUTS], calls=[])
    assert "3 calls never made" in check_alone(run, INPUTS)[0]


@pytest.mark.parametrize(
    ("log", "clear"),
    [
        ("CorruptData [EF3002]: the checkpoint chk-00000007.ckpt is damaged", True),
        ("java.lang.RuntimeException: chk-00000007.ckpt", False),
        ("EngineFailed [EF3001]: something went wrong", False),
    ],
)
def test_a_rejection_has_a_code_and_names_the_file(log: str, clear: bool, tmp_path: Path) -> None:
    assert refused_clearly(log, RunFiles(tmp_path), Path("local/chk-00000007.ckpt")) is clear


def test_a_call_that_was_never_made_is_rejected() -> None:
    assert judged(calls=CALLS[1:]).violations == ["1 calls never made: p1"]


def test_a_staged_file_is_restored_where_a_rejected_start_has_moved_it(tmp_path: Path) -> None:
    path, moved = (
        tmp_path / folder / "00000001-0000-0.a" for folder in ("inprogress-000001", "inprogress-000002")
    )
    moved.parent.mkdir()
    moved.write_bytes(b"damaged")
    damaged = Damaged(path=path, how="flip", original=b"whole", left=b"damaged")
    assert damaged.is_there()
    damaged.put_back()
    assert moved.read_bytes() == b"whole"
    assert not path.exists()
    assert not damaged.is_there()
