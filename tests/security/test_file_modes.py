"""Only the job's user can read what it stores, whatever the umask is."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import spark_missing

PROGRAM = Path(__file__).with_name("stores_everything.py")
HANG_GUARD_S = 570
MODULE_PATH = re.compile(rb"emberflow\.[a-z_]+\.")
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
BELOW_A_CLOSED_DIRECTORY = re.compile(r"checkpoint/spark/|tmp/[^/]+/")

COMMON = [
    "checkpoint",
    "checkpoint/approvals/*.question.json",
    "checkpoint/approvals/history.jsonl",
    "checkpoint/calls/*.calls",
    "checkpoint/calls/*.lease",
    "checkpoint/dead-letters/*/letters/letters-*.jsonl",
    "checkpoint/dead-letters/*/letters/.emberflow/*/*.done",
    "checkpoint/dead-letters/*/redrive/*.json",
    "checkpoint/emberflow.json",
    "checkpoint/history.jsonl",
    "checkpoint/wiring.json",
    "events/*/events-*.jsonl",
    "letters.jsonl",
    "savepoints/first/savepoint.json",
    "savepoints/first/calls/*.calls",
    "savepoints/first/state/*.state",
]
KINDS = {
    "memory": [*COMMON, "checkpoint/local/chk-*.ckpt"],
    "sqlite": [*COMMON, "checkpoint/state.db", "checkpoint/state.db-wal", "checkpoint/state.db-shm"],
    "spark": [
        *COMMON,
        "checkpoint/channels.json",
        "checkpoint/starts",
        "checkpoint/limits/*.json",
        "tmp/emberflow-spark-*/local/blockmgr-*",
    ],
}


def modes_of(engine: str, backend: str, folder: Path, umask: str) -> dict[str, int]:
    """Of everything below the folder while the job ran."""
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), engine, backend, str(folder), umask],
        env={**os.environ, "EMBERFLOW_QUIET": "1", "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # Nothing stored names a module of ours, which may move (tests/rules/test_stored_bytes.py).
    files = [path for part in ("checkpoint", "savepoints") for path in (folder / part).rglob("*")]
    assert [path for path in files if path.is_file() and MODULE_PATH.search(path.read_bytes())] == []
    printed = done.stdout.splitlines()
    ports = {line.split()[1] for line in printed if line.startswith("listens ")}
    assert ports <= LOOPBACK
    assert bool(ports) == (engine == "spark")
    lines = [line.split(maxsplit=2) for line in printed if line.startswith("mode ")]
    return {path: int(mode, 8) for _, mode, path in lines}


def check(modes: dict[str, int], kinds: list[str]) -> None:
    missing = [kind for kind in kinds if not any(Path(path).match(kind) for path in modes)]
    assert not missing, f"the program no longer makes {missing}: {sorted(modes)}"
    stored = {path: mode for path, mode in modes.items() if Path(path).parts[0] != "out" and path != "tmp"}
    # Spark's own files follow the umask; their directories do not.
    ours = {path: mode for path, mode in stored.items() if not BELOW_A_CLOSED_DIRECTORY.match(path)}
    readable = {path: f"{mode:o}" for path, mode in ours.items() if mode & 0o077}
    assert readable == {}
    assert {mode & 0o777 for mode in ours.values()} == {0o700, 0o600}


@pytest.mark.parametrize("umask", ["000", "077"])
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_what_a_local_job_stores(backend: str, umask: str, tmp_path: Path) -> None:
    modes = modes_of("local", backend, tmp_path, umask)
    check(modes, KINDS[backend])
    output = {mode & 0o777 for path, mode in modes.items() if Path(path).match("out/part-*")}
    assert output == {0o666 & ~int(umask, 8)}, "a sink's output is the user's"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(bool(spark_missing()), reason=f"C5 on Spark: {spark_missing()}")
def test_what_a_job_on_spark_stores(tmp_path: Path) -> None:
    modes = modes_of("spark", "", tmp_path, "000")
    check(modes, KINDS["spark"])
    assert modes["checkpoint/spark"] & 0o777 == 0o700
    output = {mode & 0o777 for path, mode in modes.items() if Path(path).match("out/part-*")}
    assert output == {0o666}, "a sink's output is the user's"


def run_job(directory: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=directory)
    env.from_collection([(1, 1)]).key_by(lambda value: value[0]).sum(1).print()
    env.execute()


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o700, False), (0o755, False), (0o750, False), (0o777, True), (0o1777, True)]
)
def test_a_checkpoint_directory_that_others_can_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: bool
) -> None:
    """The directory itself is the user's and keeps its mode; its contents are restricted."""
    directory = tmp_path / "checkpoint"
    (directory / "local").mkdir(parents=True)
    directory.chmod(mode)
    (directory / "local").chmod(0o777)
    with caplog.at_level(logging.WARNING):
        run_job(directory)
    assert directory.stat().st_mode & 0o7777 == mode
    open_to_others = [path.name for path in directory.rglob("*") if path.stat().st_mode & 0o077]
    assert (open_to_others, (directory / "local").exists()) == ([], True)
    reported = [
        record.getMessage() for record in caplog.records if "checkpoint directory" in record.getMessage()
    ]
    assert len(reported) == warned
    if warned:
        assert reported[0] == (
            f"other users can write to the checkpoint directory {directory} (its mode is {mode:04o}), and thereby run code in "
            "this job: make this user its owner, and remove the write permission of others (chmod go-w)"
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="C5: only root can give a directory to another user")
def test_a_checkpoint_directory_of_another_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = tmp_path / "checkpoint"
    directory.mkdir()
    os.chown(directory, 4242, 4242)
    with caplog.at_level(logging.WARNING):
        run_job(directory)
    assert any("(it belongs to the user 4242)" in record.getMessage() for record in caplog.records)


def test_files_of_an_older_version_are_restricted(tmp_path: Path) -> None:
    folder, file = tmp_path / "calls", tmp_path / "calls" / "a.calls"
    folder.mkdir()
    file.write_bytes(b"first")
    folder.chmod(0o755)
    file.chmod(0o644)
    make_private_folder(folder)
    os.close(open_private(file, os.O_WRONLY | os.O_APPEND))
    assert [path.stat().st_mode & 0o777 for path in (folder, file)] == [0o700, 0o600]
    assert file.read_bytes() == b"first"
    database = tmp_path / "state.db"
    SqliteCheckpoints(tmp_path).close()
    database.chmod(0o644)
    SqliteCheckpoints(tmp_path).close()
    assert database.stat().st_mode & 0o777 == 0o600
