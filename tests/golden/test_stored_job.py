"""A job whose directory was stored in this format or the previous one continues where it stopped, and repeats no paid call."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emberflow.approvals.answering import give_answer, questions
from emberflow.dead_letters.redrive import letters
from emberflow.engines.job.manifest import FORMAT_VERSION, read_manifest
from tests.golden import stored_job

FILES = Path(__file__).parent
STORED = [(version, backend) for version in ("v1", "v2") for backend in stored_job.BACKENDS]


@pytest.mark.parametrize(("version", "backend"), STORED)
def test_a_stored_job_continues(version: str, backend: str, tmp_path: Path) -> None:
    directory = tmp_path / "job"
    shutil.copytree(FILES / version / f"job-{backend}", directory)
    assert read_manifest(directory).format == int(version[1:])
    for question in questions(directory):
        give_answer(directory, question.id, "yes", note="fine")
    stored_job.outputs.clear()
    stored_job.calls.clear()

    inputs = [*stored_job.INPUTS, ("bob", "next")]
    stored_job.program(directory, backend, inputs, bounded=True).get_job_execution_result().result()

    assert sorted(stored_job.outputs) == [
        ("ann", "3 €", "no ann", "yes", 90),
        ("ann", "next", 7_000, 1),
        ("bob", "3 €", "no bob", "yes", 90),
        ("bob", "next", 7_000, 1),
    ]
    assert stored_job.calls == []
    assert len(letters(directory)) == 1
    assert read_manifest(directory).format == FORMAT_VERSION


def test_the_newest_format_has_a_stored_job() -> None:
    assert f"v{FORMAT_VERSION}" == STORED[-1][0]
