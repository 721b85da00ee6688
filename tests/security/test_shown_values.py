"""What people see of data: no secrets under recognizable names, nothing that controls a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import timeit
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, AgentPlan, Configuration, InputEvent
from emberflow.cli.main import main
from emberflow.dead_letters.letter_files import DEAD_LETTERS_FOLDER, LETTERS
from emberflow.errors import StepFailed, describe_cause, from_marker, shorten, to_marker
from emberflow.rendering.masked_repr import masked_repr
from emberflow.rendering.secret_names import scrub
from emberflow.savepoints.writer import SavepointWriter

# A colour, a title for the window, its C1 form, a direction override, a bell and a carriage return.
HOSTILE = "\x1b[31mred\x1b]0;owned\x07\x9b2J\u202egnp.exe\r\x00"
PASSWORD = "hunter2-and-more"


@dataclass
class Login:
    user: str
    password: str


class Odd:
    def __repr__(self) -> str:
        return f"Odd({HOSTILE})"


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize(
    "value",
    [
        {"user": "ann", "password": PASSWORD},
        {"login": {"password": [PASSWORD, PASSWORD]}},
        [({"api_key": {"inner": PASSWORD}},)],
        {"Authorization": f"Bearer {PASSWORD}"},
        Login("ann", PASSWORD),
        [Login("ann", PASSWORD)],
        f"password={PASSWORD}",
        json.dumps({"client_secret": PASSWORD}),
        {"a" * 500: 1, "password": PASSWORD},
        {"token": PASSWORD * 400},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_shown_value_has_no_secrets(value: Any) -> None:
    for limit in (20, 60, 120, 10_000):
        assert PASSWORD[:7] not in shorten(value, limit)
        assert len(shorten(value, limit)) <= limit
    assert PASSWORD not in describe_cause(ValueError(f"cannot take {value}"))


@pytest.mark.parametrize(
    "value",
    [{"password": [[1], PASSWORD]}, ({"api_key": {"inner": {"a": (1,)}, "more": PASSWORD}},)],
    ids=["list", "dictionary"],
)
def test_a_secret_with_structure_is_masked_as_a_whole(value: Any) -> None:
    """Its repr alone does not show where it ends."""
    assert PASSWORD[:7] not in shorten(value, 10_000)


def test_a_shown_value_is_otherwise_its_repr() -> None:
    for value in ({"user": "ann", "tokens": 12}, [1, ("a",)], "text", None, {"password": None}, b"\x00"):
        assert shorten(value) == repr(value)
    kept: dict[str, Any] = {"password": PASSWORD}
    shorten(kept)
    assert kept == {"password": PASSWORD}, "the value itself is not changed"
    circle: list[Any] = []
    circle.extend([circle] * 20)
    assert masked_repr(circle, 50).startswith("[[...]")


@pytest.mark.parametrize(
    "value", [HOSTILE, Odd(), {HOSTILE: 1}, [Odd()]], ids=["text", "repr", "name", "inner"]
)
def test_a_shown_value_does_not_control_the_terminal(value: Any) -> None:
    assert is_harmless(shorten(value))
    assert is_harmless(describe_cause(ValueError(value)))
    assert is_harmless(describe_cause(ValueError(str(value))))


def test_an_error_does_not_control_the_terminal() -> None:
    error = StepFailed(f"step {HOSTILE}", cause=HOSTILE, way_out=HOSTILE, committed="first\nsecond")
    for shown in (str(error), str(from_marker(to_marker(error)))):
        assert is_harmless(shown)
        assert [line[:4] for line in shown.splitlines()] == ["Step", "  ca", "  wh", "  fi", "seco"]


@pytest.mark.parametrize(
    "part", ["password=", 'password="', "password=[", "token-", "password\\", "api_key: "]
)
def test_masking_secrets_takes_linear_time(part: str) -> None:
    def took_s(times: int) -> float:
        text = part * times
        return min(timeit.repeat(lambda: scrub(text), number=1, repeat=3))

    assert took_s(64_000) < 40 * took_s(8_000) + 0.05, "eight times as much; quadratic would be sixty-four"


COMMAND = "import sys; from emberflow.cli.main import main; sys.exit(main())"
PROGRAM = """
from emberflow.streams import StreamExecutionEnvironment

def fail(value):
    raise ValueError(f"refused {value['note']} with password={value['password']}")

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
env.from_collection([{"note": %r, "password": %r}]).map(fail).print()
env.execute()
"""


def test_the_console_shows_neither_secrets_nor_escape_sequences(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM % (HOSTILE, PASSWORD))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "run", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "'password': '***'" in done.stderr
    assert "ValueError: refused" in done.stderr
    assert PASSWORD not in done.stderr + done.stdout
    assert is_harmless(done.stderr), repr(done.stderr)


def write_letter(directory: Path) -> None:
    folder = directory / DEAD_LETTERS_FOLDER / "agent" / LETTERS
    folder.mkdir(parents=True)
    letter = {
        "version": 1,
        "id": "0123456789ab",
        "agent": f"agent{HOSTILE}",
        "action": "act",
        "event_type": "_input_event",
        "key": {"password": PASSWORD, "id": HOSTILE},
        "input": {"password": PASSWORD, "note": HOSTILE},
        "timestamp": None,
        "error_type": "ValueError",
        "error": f"{HOSTILE} password={PASSWORD}",
        "attempts": 1,
        "failed_ms": int(time.time() * 1000),
        "record": None,
    }
    (folder / "letters-1.jsonl").write_text(json.dumps(letter) + "\n")


def test_dead_letters_are_listed_without_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_letter(tmp_path)
    for command in (["list", str(tmp_path)], ["show", str(tmp_path), "0123"]):
        assert main(["dead-letters", *command]) == 0
        shown = capsys.readouterr().out
        assert "0123456789ab" in shown
        assert PASSWORD[:8] not in shown, "a listing is truncated to its width"
        assert is_harmless(shown)
    assert main(["dead-letters", "show", str(tmp_path), "0123", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input"]["password"] == PASSWORD, "the data, for programs"


def test_savepoints_are_inspected_without_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "savepoint"
    with SavepointWriter(
        path, job_name=f"job {HOSTILE}", job_id="1", engine="local", max_parallelism=8, epoch=1
    ) as writer:
        step = writer.step(f"totals{HOSTILE}", "keyed_process")
        step.entry(HOSTILE, {"login": {"password": PASSWORD}, "token": PASSWORD, f"odd{HOSTILE}": 1})
    for arguments in ([], ["--step", f"totals{HOSTILE}"]):
        assert main(["savepoint", "inspect", str(path), *arguments]) == 0
        shown = capsys.readouterr().out
        assert "totals" in shown or "login" in shown
        assert PASSWORD not in shown
        assert is_harmless(shown), repr(shown)


def test_an_explained_plan_masks_settings_by_name() -> None:
    config = Configuration()
    config.set_str("service.password", "s3cret")
    agent = Agent("shop").add_action("act", [InputEvent], print, api_key="s3cret", greeting="hi")
    text = AgentPlan.from_agent(agent, config).explain()
    assert "s3cret" not in text
    assert "api_key=***, greeting='hi'" in text
    assert "service.password = ***" in text
