from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from emberflow.approvals.answering import give_answer, questions
from emberflow.approvals.asking import FileApprovals
from emberflow.approvals.question_files import APPROVALS_FOLDER
from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.errors import ApprovalExpired, CorruptData, InvalidArgument
from emberflow.events.identity import text_identity
from emberflow.operators.agents.guards.questions import NO_DEFAULT, HumanAnswer, Question, ask, check_question

CALL = "agent-1/abc-1/1/1"


def question(call_id: str = CALL, **fields: Any) -> Question:
    given: dict[str, Any] = {
        "question": "Refund 120 € to Ann?",
        "options": ("approve", "reject"),
        "expires_ms": None,
        "agent": "refunds",
        "action": "decide",
        "key": "'ann'",
        **fields,
    }
    return Question(call_id=call_id, **given)


@contextmanager
def asked(directory: Path, *wanted: Question) -> Iterator[list[Any]]:
    """Waits for answers in the background; they are in the list when the block has ended."""
    desk = FileApprovals(directory / APPROVALS_FOLDER)
    got: list[Any] = []

    async def wait() -> None:
        got.extend(await asyncio.gather(*(desk.ask(item) for item in wanted)))

    thread = threading.Thread(target=lambda: asyncio.run(wait()), daemon=True)
    thread.start()
    while len(questions(directory, answered=True)) < len({item.call_id for item in wanted}):
        thread.join(0.01)
    # Not in a finally: if the block fails, the expected answers never come.
    yield got
    thread.join(300)


def test_a_question_is_listed_and_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asked(tmp_path, question(expires_ms=600_000)) as got:
        assert main(["approvals", "list", str(tmp_path)]) == ExitCode.OK
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(text_identity(CALL))
        assert lines[0].endswith("refunds/decide for 'ann'")
        assert lines[1] == "  Refund 120 € to Ann?"
        assert lines[2].startswith("  answer: approve | reject; expires in 59")
        prefix = text_identity(CALL)[:5]
        assert (
            main(["approvals", "answer", str(tmp_path), prefix, "approve", "--note", "ok", "--by", "eve"])
            == 0
        )
        assert capsys.readouterr().out.startswith(f"answered {text_identity(CALL)} with 'approve'")
    assert got == ["approve"]
    assert (got[0].note, got[0].by) == ("ok", "eve")
    assert main(["approvals", "list", str(tmp_path)]) == ExitCode.OK
    assert "there are no open questions" in capsys.readouterr().err


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asked(tmp_path, question()):
        main(["approvals", "list", str(tmp_path), "--json"])
        (line,) = capsys.readouterr().out.splitlines()
        body = json.loads(line)
        assert body["id"] == text_identity(CALL)
        assert body["options"] == ["approve", "reject"]
        assert (body["expires_at_ms"], body["answer"]) == (None, None)
        main(["approvals", "answer", str(tmp_path), body["id"], "reject", "--json"])
        assert json.loads(capsys.readouterr().out)["answer"] == "reject"


def test_a_settled_question_is_kept_as_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asked(tmp_path, question()):
        give_answer(tmp_path, text_identity(CALL), "approve", note="fine", by="eve")
    FileApprovals(tmp_path / APPROVALS_FOLDER).settled(CALL)
    assert questions(tmp_path) == []
    main(["approvals", "list", str(tmp_path), "--all"])
    assert "  answered 'approve' by eve (fine)" in capsys.readouterr().out.splitlines()
    with pytest.raises(InvalidArgument, match="was already answered"):
        give_answer(tmp_path, text_identity(CALL), "approve")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ffff", "approve"], "'ffff' matches no question"),
        (["", "approve"], "'' matches no question"),
        (
            ["{id}", "perhaps"],
            "'perhaps' is not an option of 'Refund 120 € to Ann?'\n  what to do: answer with one of 'approve'",
        ),
    ],
    ids=["unknown", "empty", "no-option"],
)
def test_invalid_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    with asked(tmp_path, question()):
        given = [item.format(id=text_identity(CALL)) for item in arguments]
        assert main(["approvals", "answer", str(tmp_path), *given]) == ExitCode.BAD_PROGRAM
        assert text in capsys.readouterr().err
        give_answer(tmp_path, text_identity(CALL), "approve")


def test_only_the_first_answer_counts(tmp_path: Path) -> None:
    with asked(tmp_path, question()) as got:
        give_answer(tmp_path, text_identity(CALL), "approve")
        with pytest.raises(InvalidArgument, match="was already answered"):
            give_answer(tmp_path, text_identity(CALL), "reject")
    assert got == ["approve"]


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    """As after a restart: the question is asked again, and both callers get the one answer."""
    with asked(tmp_path, question(), question()) as got:
        assert len(questions(tmp_path)) == 1
        give_answer(tmp_path, text_identity(CALL), "reject")
    assert got == ["reject", "reject"]


def test_expiry_counts_from_the_first_time_it_was_asked(tmp_path: Path) -> None:
    folder = tmp_path / APPROVALS_FOLDER
    with asked(tmp_path, question(expires_ms=1)) as got:
        pass
    assert got == [None]
    # Asked again after a restart: it expired long ago, however long this takes.
    (folder / f"{text_identity(CALL)}.answer.json").unlink()
    with asked(tmp_path, question(expires_ms=1)) as got:
        pass
    assert got == [None]
    with pytest.raises(InvalidArgument, match=f"the question {text_identity(CALL)} has expired"):
        give_answer(tmp_path, text_identity(CALL), "approve")


def test_any_text_without_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asked(tmp_path, question(options=())) as got:
        main(["approvals", "list", str(tmp_path)])
        assert "  answer: any text" in capsys.readouterr().out.splitlines()
        give_answer(tmp_path, text_identity(CALL), "call her first")
    assert got == ["call her first"]


def test_many_questions_have_one_thread(tmp_path: Path) -> None:
    wanted = [question(f"call/{number}") for number in range(40)]
    with asked(tmp_path, *wanted) as got:
        assert [item.name for item in threading.enumerate()].count(
            f"emberflow-approvals {tmp_path}/approvals"
        ) == 1
        for number in range(40):
            give_answer(tmp_path, text_identity(f"call/{number}"), "approve" if number % 3 else "reject")
    assert got == ["approve" if number % 3 else "reject" for number in range(40)]


def test_questions_do_not_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asked(tmp_path, question(question="a\x1b[31mb")):
        main(["approvals", "list", str(tmp_path)])
        assert "\x1b" not in capsys.readouterr().out
        give_answer(tmp_path, text_identity(CALL), "approve")


def test_a_directory_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "list", str(tmp_path / "no")]) == ExitCode.BAD_PROGRAM
    assert "name the checkpoint directory of the job" in capsys.readouterr().err


def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / APPROVALS_FOLDER).mkdir()
    (tmp_path / APPROVALS_FOLDER / "x.question.json").write_text("{")
    with pytest.raises(CorruptData, match=r"x\.question\.json is corrupted"):
        questions(tmp_path)


def test_default_or_error_if_there_is_no_answer() -> None:
    class Nobody:
        async def ask(self, question: Question) -> HumanAnswer | None:
            return None

        def settled(self, call_id: str) -> None: ...

    wanted = question(expires_ms=5_000)
    assert asyncio.run(ask(Nobody(), wanted, "reject")) == "reject"
    assert asyncio.run(ask(Nobody(), wanted, None)) is None
    with pytest.raises(ApprovalExpired) as caught:
        asyncio.run(ask(Nobody(), wanted, NO_DEFAULT))
    assert str(caught.value) == (
        "ApprovalExpired [EF2208]: the question 'Refund 120 € to Ann?' was not answered within 5,000 ms\n"
        "  what to do: answer with `emberflow approvals answer`, ask with default=…, or give the action a fallback"
    )


def test_an_answer_is_pickled_unchanged() -> None:
    again = pickle.loads(pickle.dumps(HumanAnswer("approve", "ok", "eve")))
    assert (again, again.note, again.by) == ("approve", "ok", "eve")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("", ("a",), None), "the question '' is not a string"),
        (("q", "ab", None), "the options 'ab' are not strings"),
        (("q", ("",), None), "are not strings"),
        (("q", (), 0), "expires_ms cannot be 0"),
        (("q", (), 1.5), "expires_ms cannot be 1.5"),
    ],
    ids=["no-text", "one-text", "empty-option", "no-time", "half-a-time"],
)
def test_invalid_questions(given: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        check_question(*given)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["list"], ["answer"]):
        with pytest.raises(SystemExit):
            main(["approvals", *command, "--help"])
        assert "emberflow approvals answer state/ 3f2a approve" in capsys.readouterr().out
