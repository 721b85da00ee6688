"""Questions to people and their answers are damaged: no wrong answer is returned, nothing hangs, nothing is removed."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    Retry,
    RunnerContext,
)
from emberflow.approvals.answering import give_answer, questions
from emberflow.approvals.asking import FileApprovals
from emberflow.approvals.question_files import ANSWER, APPROVALS_FOLDER, HISTORY, QUESTION
from emberflow.errors import ApprovalsFailed, CorruptData
from emberflow.events.identity import text_identity
from emberflow.operators.agents.guards.questions import Question

CALL = "agent-1/abc-1/1/1"
NAME = text_identity(CALL)


def ask(directory: Path) -> Any:
    question = Question(
        call_id=CALL,
        question="Pay?",
        options=("approve", "reject"),
        expires_ms=None,
        agent="a",
        action="act",
        key="'k'",
    )
    desk = FileApprovals(directory / APPROVALS_FOLDER)
    return asyncio.run(asyncio.wait_for(desk.ask(question), 300))


def post(directory: Path) -> tuple[Path, Path]:
    """A question and its answer, as left by a killed job."""
    folder = directory / APPROVALS_FOLDER
    question = Question(
        call_id=CALL, question="Pay?", options=(), expires_ms=None, agent="a", action="act", key="'k'"
    )
    FileApprovals(folder)._post(NAME, question)
    give_answer(directory, NAME, "approve", note="fine", by="eve")
    return folder / f"{NAME}{QUESTION}", folder / f"{NAME}{ANSWER}"


@pytest.mark.parametrize("which", [0, 1], ids=["question", "answer"])
def test_any_changed_bit_of_a_file_is_detected(tmp_path: Path, which: int) -> None:
    path = post(tmp_path)[which]
    whole = path.read_bytes()
    for at in range(0, 8 * len(whole), 7):
        path.write_bytes(whole[: at // 8] + bytes([whole[at // 8] ^ 1 << at % 8]) + whole[at // 8 + 1 :])
        with pytest.raises(CorruptData, match=re.escape(str(path))) as caught:
            questions(tmp_path, answered=True)
        assert "delete it" in caught.value.way_out
    for data in (whole[: len(whole) // 2], b""):
        path.write_bytes(data)
        with pytest.raises(ApprovalsFailed, match="is corrupted") as refused:
            ask(tmp_path)
        assert str(path) in refused.value.message
        assert path.read_bytes() == data


def test_the_first_versions_files_are_read(tmp_path: Path) -> None:
    for path in post(tmp_path):
        body = json.loads(path.read_bytes())
        assert (body.pop("version"), body.pop("checksum", None) is not None) == (2, True)
        path.write_text(json.dumps({"version": 1, **body}))
    assert ask(tmp_path) == "approve"


def test_corrupted_lines_of_the_history_are_skipped(tmp_path: Path) -> None:
    post(tmp_path)
    FileApprovals(tmp_path / APPROVALS_FOLDER).settled(CALL)
    path = tmp_path / APPROVALS_FOLDER / HISTORY
    line = path.read_bytes()
    assert [item.answer for item in questions(tmp_path, answered=True)] != []
    path.write_bytes(line.replace(b"approve", b"apprete") + b"\xff\n[]\n" + line)
    (found,) = questions(tmp_path, answered=True)
    assert found.answer is not None
    assert found.answer["answer"] == "approve"


def test_a_job_stops_and_continues_after_the_advice_was_followed(tmp_path: Path) -> None:
    """The damage is not an outcome of the action: no retry, no dead letter, nothing recorded; then the question is asked
    again."""
    got: list[Any] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.ask_human("Pay?")
        got.append((str(answer), ctx.attempt))
        ctx.send_event(OutputEvent(str(answer)))

    def run(meanwhile: Any = None) -> None:
        env = AgentsExecutionEnvironment.get_execution_environment(
            engine="local", parallelism=1, checkpoint_dir=str(tmp_path)
        )
        env.get_config().set(AgentExecutionOptions.ON_ERROR, "skip")
        agent = Agent("a").add_action("act", [InputEvent], act, retry=Retry(attempts=2, backoff_ms=0))
        env.from_list([{"key": "k", "value": 1}]).apply(agent).to_list()
        job = env.execute_async()
        if meanwhile is not None:
            meanwhile()
        job.get_job_execution_result().result()

    def answer_and_damage() -> None:
        folder = tmp_path / APPROVALS_FOLDER
        while not (found := list(folder.glob(f"*{QUESTION}"))):
            pass
        # Damaged while it is written: the job must not see it intact.
        answer = found[0].with_name(found[0].name.replace(QUESTION, ANSWER))
        part = answer.with_name(".part")
        part.write_text(json.dumps({"version": 2, "answer": "approve", "checksum": 1}))
        part.rename(answer)

    with pytest.raises(ApprovalsFailed, match=r"answer\.json is corrupted") as caught:
        run(answer_and_damage)
    assert "delete it" in caught.value.way_out
    (path,) = (tmp_path / APPROVALS_FOLDER).glob(f"*{ANSWER}")
    path.unlink()

    def answer() -> None:
        give_answer(tmp_path, questions(tmp_path)[0].id, "reject")

    run(answer)
    assert got == [("reject", 1)]
