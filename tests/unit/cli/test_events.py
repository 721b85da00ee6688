from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from emberflow.cli import events
from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.events.agent_events import Event
from emberflow.observability.event_log import EventLog, EventLogSettings, EventRecord

NEW_YEAR_MS = 1_767_225_600_000


def write(directory: Path, runs: range, agent: str = "scorer") -> None:
    settings = EventLogSettings(
        directory=str(directory),
        level="STANDARD",
        max_string=100,
        max_items=5,
        max_depth=5,
        max_file_bytes=10_000,
        max_files=5,
    )
    log = EventLog(settings, agent)
    for run in runs:
        event = Event("Scored" if run % 2 else "Placed", {"n": run}, id=f"e{run}")
        log.record(EventRecord(NEW_YEAR_MS + run, agent, f"user-{run}", f"run-{run}", event, "event"))
    log.close()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write(tmp_path / "logs", range(4))
    return tmp_path / "logs"


def rows(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_table_by_time(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(logs)]) == ExitCode.OK
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == ["TIME", "(UTC)", "AGENT", "KEY", "TYPE", "ACTION", "ATTRIBUTES"]
    assert [line.split()[-1] for line in lines[1:]] == ["n=0", "n=1", "n=2", "n=3"]
    assert captured.err == ""


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--key", "user-2"], [2]),
        (["--run", "run-1"], [1]),
        (["--type", "Scored"], [1, 3]),
        (["--type", "Scored", "--last", "1"], [3]),
        (["--agent", "scorer", "--last", "2"], [2, 3]),
        (["--since", "2026-01-01T00:00:00.002"], [2, 3]),
        (["--since", "2026-01-01T01:00:00.003+01:00"], [3]),
    ],
)
def test_filters_select_events(
    options: list[str], shown: list[int], logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["events", "show", str(logs), "--json", *options]) == ExitCode.OK
    assert [json.loads(line)["attributes"]["n"] for line in rows(capsys)] == shown


def test_trees(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(logs), "--tree", "--type", "Placed"]) == ExitCode.OK
    assert [line.split()[1] for line in rows(capsys) if line.startswith("run ")] == ["run-0", "run-2"]


def test_trees_of_many_runs_show_the_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, range(30))
    assert main(["events", "show", str(tmp_path), "--tree"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert captured.out.count("run run-") == 20
    assert "the last 20 of 30 runs; --last 30 shows all" in captured.err


def test_a_path_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(tmp_path / "nowhere")]) == ExitCode.BAD_PROGRAM
    text = capsys.readouterr().err
    assert "there is no event log at" in text
    assert "baseLogDir" in text


def test_a_directory_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(tmp_path)]) == ExitCode.OK
    assert "there are no event logs in" in capsys.readouterr().err


def test_a_log_without_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text("nonsense\nmore\n")
    assert main(["events", "show", str(tmp_path), "--tree"]) == ExitCode.OK
    text = capsys.readouterr().err
    assert "there are no events in" in text
    assert "skipped 2 lines without a valid event" in text


def test_nothing_matches(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(logs), "--key", "nobody"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "none of the 4 events in" in captured.err


@pytest.mark.parametrize(
    "options", [["--last", "0"], ["--last", "x"], ["--since", "soon"], ["--tree", "--json"], ["--nonsense"]]
)
def test_wrong_usage(options: list[str], logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["events", "show", str(logs), *options])
    assert stop.value.code == ExitCode.BAD_PROGRAM
    assert "usage: emberflow" in capsys.readouterr().err


def test_a_tree_cannot_follow(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "show", str(logs), "--tree", "--follow"]) == ExitCode.BAD_PROGRAM
    assert "leave one out" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["events", "--help"], ["events", "show", "--help"]])
def test_help_has_examples(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(options)
    assert "examples:\n  emberflow events show" in capsys.readouterr().out


def test_colours_only_for_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert events._color()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not events._color()


def test_following_shows_what_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = iter([range(2), range(2, 4), None])

    def pause(seconds: float) -> None:
        added = next(rounds)
        if added is None:
            raise KeyboardInterrupt
        write(tmp_path / "logs", added)

    # The log's own writer sleeps too, but on its thread; only the command's pauses add events.
    monkeypatch.setattr(time, "sleep", lambda s: pause(s) if is_main() else None)
    assert main(["events", "show", str(tmp_path / "logs"), "--follow"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert [line.split()[-1] for line in captured.out.splitlines()[1:]] == ["n=0", "n=1", "n=2", "n=3"]
    assert "waiting for it" in captured.err


def is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    line = " ".join(f"'{argument}'" for argument in (sys.executable, "-m", "emberflow.cli.main", *arguments))
    return subprocess.run(
        ["sh", "-c", line + variables.pop("then", "")],
        capture_output=True,
        env=variables or None,
        timeout=500,
    )


def test_a_reader_that_closes_the_pipe(tmp_path: Path) -> None:
    write(tmp_path, range(40))
    done = command("events", "show", str(tmp_path), then=" | head -1")
    assert done.stdout.startswith(b"TIME")
    assert done.stderr == b""


def test_a_terminal_without_utf_8(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    done = command("events", "show", str(tmp_path), "--tree", PYTHONIOENCODING="ascii")
    assert done.returncode == ExitCode.OK, done.stderr
    assert b"Placed" in done.stdout
