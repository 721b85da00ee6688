"""A chat whose process is killed before each call of its model and of its tools: no finished call is paid again (A14, A19)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.testing import SPARK, Host, on_every_host, read_committed
from tests.support.recovery.chat_program import CALLS, OUTPUT, paid, run

PROGRAM = "tests.support.recovery.chat_program"
HANG_GUARD_S = 300
FORMS = ["context", "events"]
PLAIN = ["plain", "by hand"]
"""In actions that are no coroutines: the calls block, and are recorded nevertheless."""
SUB_AGENT = ["sub-agent"]


@pytest.mark.parametrize("form", FORMS + PLAIN + SUB_AGENT)
def test_no_call_of_a_chat_is_paid_twice(form: str, tmp_path: Path) -> None:
    environment = {**os.environ, "EMBERFLOW_QUIET": "1"}
    for start in range(len(CALLS) + 1):
        ended = subprocess.run(
            [sys.executable, "-m", PROGRAM, str(tmp_path), form],
            capture_output=True,
            text=True,
            env=environment,
            timeout=HANG_GUARD_S,
        )
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stderr[-3000:]
        assert not start or paid(tmp_path) == CALLS[:start], "one more call with every start"

    assert read_committed(tmp_path / "output") == OUTPUT
    assert paid(tmp_path) == CALLS


@on_every_host(hosts=[SPARK])
def test_killed_workers_do_not_pay_for_a_chat_twice(host: Host, tmp_path: Path) -> None:
    for form in FORMS:
        folder = tmp_path / form
        folder.mkdir()
        # Workers may be lost only a few times: they die at the first tool, and before the final answer.
        for call in CALLS:
            if call not in ("pay 1", "model 3"):
                (folder / f"died-before-{call.replace(' ', '-')}").touch()
        env = host.environment(checkpoint_dir=folder / "checkpoints")
        run(env, folder, form)
        assert read_committed(folder / "output") == OUTPUT
        assert paid(folder) == CALLS
