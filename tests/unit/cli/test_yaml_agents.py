"""`emberflow run` and `emberflow explain` of YAML files."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main

ACTIONS = """
from emberflow.agents import OutputEvent

def greet(event, ctx):
    times = ctx.short_term_memory.get("times", 0) + 1
    ctx.short_term_memory.set("times", times)
    greeting = ctx.config.get_str("greeting", "hello")
    ctx.send_event(OutputEvent(f"{greeting} {event.input['name']} {times}"))
"""
AGENTS = """
agents:
  - name: greeter
    actions: [greet]
  - name: other
    actions: [greet]
actions:
  - {name: greet, function: "beside_the_file:greet", trigger_conditions: [input]}
"""
INPUTS = '{"name": "ann"}\n\n{"name": "bob"}\n{"name": "ann"}\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("EMBERFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "beside_the_file", raising=False)
    (tmp_path / "beside_the_file.py").write_text(ACTIONS)
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "in.jsonl").write_text(INPUTS)
    return str(tmp_path / "agents.yaml")


def run(file: str, *options: str) -> int:
    return main(["run", file, "--engine", "local", "--agent", "greeter", *options])


def lines(text: str) -> list[tuple[object, object]]:
    return sorted((line["key"], line["output"]) for line in map(json.loads, text.splitlines()))


def test_an_agent_runs_without_a_program(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--input", file.replace("agents.yaml", "in.jsonl")) == ExitCode.OK

    assert lines(capsys.readouterr().out) == [(1, "hello ann 1"), (3, "hello bob 1"), (4, "hello ann 1")]


def test_inputs_of_a_key_share_memory(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(INPUTS))
    output = tmp_path / "out.jsonl"
    options = ["--input", "-", "--key", "name", "--output", str(output), "--set", "greeting=hi"]
    assert run(file, *options) == ExitCode.OK

    assert lines(output.read_text()) == [("ann", "hi ann 1"), ("ann", "hi ann 2"), ("bob", "hi bob 1")]
    assert capsys.readouterr().err == f"3 outputs written to {output}\n"


def test_a_second_run_continues_and_appends(file: str, tmp_path: Path) -> None:
    output, inputs = tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    options = ["--input", str(inputs), "--key", "name", "--output", str(output)]
    options += ["--checkpoint-dir", str(tmp_path / "state"), "--quiet"]
    assert run(file, *options) == ExitCode.OK
    assert run(file, *options) == ExitCode.OK

    assert lines(output.read_text()) == [
        ("ann", "hello ann 1"),
        ("ann", "hello ann 2"),
        ("bob", "hello bob 1"),
    ]


BAD = {
    "no inputs": ([], "needs inputs", ExitCode.BAD_PROGRAM),
    "a missing file": (["--input", "nowhere.jsonl"], "there is no input file", ExitCode.BAD_PROGRAM),
    "an unknown agent": (["--input", "-", "--agent", "greter"], "did you mean 'greeter'?", ExitCode.BAD_PROGRAM),
    "an unknown field": (["--input", "-", "--key", "nme"], "line 1 of the standard input has no field 'nme'; did you", ExitCode.JOB_FAILED),
    "an unknown option": (["--input", "-", "--set", "max-stps=3"], "did you mean 'max-steps'?", ExitCode.BAD_PROGRAM),
    "an option without a value": (["--input", "-", "--set", "max-steps"], "has no value", ExitCode.BAD_PROGRAM),
    "a folder that is missing": (["--input", "-", "--output", "/none/such"], "cannot be written", ExitCode.BAD_PROGRAM),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_explained(
    case: str, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, message, code = BAD[case]
    monkeypatch.setattr(sys, "stdin", io.StringIO(INPUTS))
    assert run(file, *options) == code
    assert message in capsys.readouterr().err


def test_a_line_that_is_no_json_is_shown(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"name": "ann"}\nhello\n'))
    assert run(file, "--input", "-") == ExitCode.JOB_FAILED
    assert "line 2 of the standard input is not valid JSON: 'hello'" in capsys.readouterr().err


def test_an_agent_must_be_chosen(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", file, "--input", "-"]) == ExitCode.BAD_PROGRAM
    assert "declares 2 agents\n  cause: they are: greeter, other" in capsys.readouterr().err


def test_options_of_yaml_files_are_refused_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program.py").write_text("")
    assert main(["run", str(tmp_path / "program.py"), "--key", "x"]) == ExitCode.BAD_PROGRAM
    assert "--key applies to agents in YAML" in capsys.readouterr().err


@pytest.mark.parametrize("rest", [["--as", "pyflink"], ["--", "x"]])
def test_options_of_programs_are_refused_for_yaml_files(rest: list[str], file: str) -> None:
    assert run(file, "--input", "-", *rest) == ExitCode.BAD_PROGRAM


def test_the_plans_are_explained(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "agent 'greeter': 1 action" in shown
    assert "agent 'other': 1 action" in shown
    assert main(["explain", file, "--agent", "other", "--format", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["name"] == "other"


def test_help_shows_how_to_run_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "agents.yaml", "--help"])
    shown = capsys.readouterr().out
    assert "options for agents in YAML" in shown
    assert "emberflow run agents.yaml --input questions.jsonl" in shown
