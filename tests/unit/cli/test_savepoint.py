"""`emberflow savepoint` and `emberflow checkpoints`: what they print, change and reject."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emberflow.cli.main import main
from emberflow.engines.job.checkpoint_history import KEPT, CheckpointHistory, CheckpointRecord, read_history
from emberflow.savepoints import Savepoint
from emberflow.savepoints.form import FrameKind
from emberflow.savepoints.writer import SavepointWriter

PROGRAM = """\
import sys
from emberflow.streams import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
stream = env.from_collection([("ann", 1)] * int(sys.argv[1])).uid("pairs")
stream.key_by(lambda pair: pair[0]).sum(1).uid(sys.argv[2]).print().uid("out")
env.execute("sums")
"""


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    with SavepointWriter(
        tmp_path / "s",
        job_name="orders",
        job_id="id",
        engine="spark",
        max_parallelism=64,
        epoch=7,
        created_ms=1_800_000_000_000,
    ) as writer:
        writer.source("words", [1, 2], [False, True])
        step = writer.step("totals", "sum")
        step.entry("ann", {"count": 3, "pair": ("a", 1)})
        step.entry(("b", 2), {"count": 1})
        step.timer(FrameKind.EVENT_TIMERS, 5, "ann")
    return tmp_path / "s"


def test_inspect_shows_the_contents(savepoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", str(savepoint)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "savepoint of 'orders' on spark, 2027-01-15 08:00:00 UTC, format 4"
    assert lines[1].startswith("1 steps with 2 keys, ")
    assert lines[2] == "  source words: 2 channels, 1 ended"
    assert lines[3].startswith("  sum totals: 2 keys, 1 event-time timers, ")

    assert main(["savepoint", "inspect", str(savepoint), "--step", "totals", "--key", '["b", 2]']) == 0
    assert capsys.readouterr().out == "('b', 2)\n  count = 1\n"
    assert main(["savepoint", "inspect", str(savepoint), "--step", "totals", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"key": "ann", "values": {"count": 3, "pair": ["a", 1]}} in shown
    assert main(["savepoint", "inspect", str(savepoint), "--step", "totals", "--limit", "1"]) == 0
    assert capsys.readouterr().out.endswith("… 1 more (--limit)\n")
    assert main(["savepoint", "inspect", str(savepoint), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"]["totals"]["keys"] == 2


def test_edit_writes_another_savepoint(savepoint: Path, tmp_path: Path) -> None:
    changed = str(tmp_path / "changed")
    edit = ["savepoint", "edit", str(savepoint), changed, "--step", "totals", "--key", "ann"]
    assert main([*edit, "--set", "count=0", "--set", 'pair=["x", 2]']) == 0
    assert Savepoint.read(changed).step("totals").get("ann") == {"count": 0, "pair": ("x", 2)}
    assert Savepoint.read(savepoint).step("totals").get("ann") == {"count": 3, "pair": ("a", 1)}
    less = str(tmp_path / "less")
    assert main(["savepoint", "edit", changed, less, "--step", "totals", "--key", "ann", "--delete"]) == 0
    assert list(Savepoint.read(less).step("totals").keys()) == [("b", 2)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["inspect", "S", "--step", "nobody"], "the savepoint has no step 'nobody'"),
        (["inspect", "S", "--step", "totals", "--key", "bob"], "step 'totals' has no key 'bob'"),
        (
            ["edit", "S", "OUT", "--step", "totals", "--key", "bob", "--delete"],
            "step 'totals' has no key 'bob'",
        ),
        (
            ["edit", "S", "OUT", "--step", "totals", "--key", "ann", "--set", "count"],
            "'count' is not NAME=JSON",
        ),
        (["edit", "S", "OUT", "--step", "totals", "--key", "ann", "--set", "count=x"], "'x' is not JSON"),
        (
            ["edit", "S", "OUT", "--step", "totals", "--key", "ann", "--set", "n=1"],
            "its states are: count, pair",
        ),
        (["edit", "S", "S", "--step", "totals", "--key", "ann", "--delete"], "exists already"),
        (["inspect", "OUT"], "there is no savepoint in"),
        (["create", "OUT", "S2"], "is not a checkpoint directory"),
    ],
    ids=[
        "step",
        "key",
        "key to delete",
        "no equals sign",
        "no JSON",
        "state",
        "target exists",
        "no savepoint",
        "no checkpoints",
    ],
)
def test_mistakes_are_named(
    savepoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    places = {"S": str(savepoint), "OUT": str(tmp_path / "out"), "S2": str(tmp_path / "s2")}
    assert main(["savepoint", *(places.get(item, item) for item in arguments)]) != 0
    assert text in capsys.readouterr().err


def test_a_program_runs_from_a_savepoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = ["run", str(program), "--quiet", "--checkpoint-dir"]
    assert main([*run, str(tmp_path / "first"), "--", "2", "sums"]) == 0
    assert main(["savepoint", "create", str(tmp_path / "first"), str(tmp_path / "s")]) == 0
    assert capsys.readouterr().out.count("('ann'") == 2

    start = ["--from-savepoint", str(tmp_path / "s")]
    assert main([*run, str(tmp_path / "second"), *start, "--", "2", "sums"]) == 0
    assert capsys.readouterr().out == "", "the input had ended"
    assert main([*run, str(tmp_path / "third"), *start, "--", "2", "other"]) != 0
    assert "gone: sum 'sums'; new: sum 'other'" in capsys.readouterr().err
    assert (
        main([*run, str(tmp_path / "third"), *start, "--allow-non-restored-state", "--", "2", "other"]) == 0
    )


def test_checkpoints_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = CheckpointHistory(str(tmp_path))
    for number in range(2 * KEPT + 5):
        history.add(
            CheckpointRecord(
                id=number, kind="checkpoint", started_ms=1_800_000_000_000, duration_ms=12, bytes=2048
            )
        )
    history.add(
        CheckpointRecord(
            id=9, kind="savepoint", started_ms=0, duration_ms=1, bytes=1, path="savepoints/monday"
        )
    )
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"id": 1, "kind"')  # a crash in the middle of a line
    assert len(read_history(tmp_path)) <= KEPT
    assert read_history(tmp_path)[-1].path == "savepoints/monday"

    assert main(["checkpoints", str(tmp_path), "--last", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        str(2 * KEPT + 4),
        "checkpoint",
        "2027-01-15",
        "08:00:00",
        "12",
        "ms",
        "2.0",
        "KB",
    ]
    assert lines[2].endswith("savepoints/monday")
    assert main(["checkpoints", str(tmp_path), "--json", "--last", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "savepoint"
    assert main(["checkpoints", str(tmp_path / "nowhere")]) != 0
    assert "is not a checkpoint directory" in capsys.readouterr().err
