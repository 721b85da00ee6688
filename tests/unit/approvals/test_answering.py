"""What is listed while a job settles questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.approvals import answering
from emberflow.approvals.asking import FileApprovals
from emberflow.approvals.question_files import APPROVALS_FOLDER, question_name
from emberflow.operators.agents.guards.questions import Question


def test_a_question_that_is_settled_while_it_is_listed_is_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = FileApprovals(tmp_path / APPROVALS_FOLDER)
    question = Question(
        call_id="agent-1/abc-1/1/1",
        question="Pay?",
        options=(),
        expires_ms=None,
        agent="a",
        action="act",
        key="'k'",
    )
    name = question_name(tmp_path / APPROVALS_FOLDER, question.call_id)
    desk._post(name, question)
    assert [item.id for item in answering.questions(tmp_path)] == [name]
    answering.give_answer(tmp_path, name, "approve", by="eve")
    read = answering.read_answer

    def settled_before(path: Path) -> dict[str, Any] | None:
        desk.settled(question.call_id)
        return read(path)

    monkeypatch.setattr(answering, "read_answer", settled_before)
    assert answering.questions(tmp_path) == []
    answers = [item.answer for item in answering.questions(tmp_path, answered=True)]
    assert [found and found["answer"] for found in answers] == ["approve"]
