"""The file that processes of a job share: changes are atomic, dead processes hold nothing, damage only resets the limits."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.engines.job import limit_ledger
from emberflow.engines.job.limit_ledger import FileLedger, FileLedgers
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import LimitState

LIMITS = ModelLimits(max_concurrent=3)

CHILD = """
import sys
from pathlib import Path
from emberflow.engines.job.limit_ledger import FileLedger
from emberflow.operators.admission.model_limits import ModelLimits
path, what = Path(sys.argv[1]), sys.argv[2]
ledger = FileLedger(path)
if what == "hold":
    ledger.change(lambda state: state.occupy(ModelLimits(max_concurrent=3), "child", 0, 10))
else:
    for _ in range(300):
        ledger.change(lambda state: state.reserve(ModelLimits(requests_per_minute=60), 0.0, [0.0]))
print("done", flush=True)
sys.stdin.read()
"""


def child(path: Path, what: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, str(path), what]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def until_done(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"


def test_what_a_killed_process_held_is_released(tmp_path: Path) -> None:
    path = tmp_path / "model"
    process = child(path, "hold")
    until_done(process)
    ledger = FileLedger(path)

    assert ledger.change(lambda state: state.occupy(LIMITS, "parent", 0, 5)) == 0
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert ledger.change(lambda state: state.occupy(LIMITS, "parent", 0, 5)) == 3


def test_changes_of_several_processes_are_serialized(tmp_path: Path) -> None:
    path = tmp_path / "model"
    processes = [child(path, "reserve") for _ in range(3)]
    for process in processes:
        until_done(process)
        process.communicate("")
    alone = LimitState()
    for _ in range(900):
        alone.reserve(ModelLimits(requests_per_minute=60), 0.0, [0.0])
    assert FileLedger(path).change(lambda state: state.requests_at) == pytest.approx(alone.requests_at)


@pytest.mark.parametrize("damage", [b"", b"00000000\n{}", b"\xff" * 300], ids=["empty", "wrong sum", "noise"])
def test_an_unreadable_file_starts_over(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    FileLedger(path).change(lambda state: state.occupy(LIMITS, "a", 0, 10))
    path.write_bytes(damage)
    assert FileLedger(path).change(lambda state: state.occupy(LIMITS, "b", 0, 10)) == 3


def test_a_step_that_raises_changes_nothing_and_releases_the_lock(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "model")

    def fails(state: LimitState) -> None:
        state.occupy(LIMITS, "a", 0, 10)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ledger.change(fails)
    assert FileLedger(tmp_path / "model").change(lambda state: state.members) == {}


def test_every_model_has_its_own_file(tmp_path: Path) -> None:
    ledgers = FileLedgers(tmp_path)
    for name in ("a/b", "a-b", "ä" * 300):
        ledger, limits = ledgers.of(name, LIMITS)
        assert limits == LIMITS
        ledger.change(lambda state: None)
    assert len(list(tmp_path.iterdir())) == 3


def test_times_from_before_a_reboot_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = FileLedger(tmp_path / "model")
    ledger.change(lambda state: state.throttle(LIMITS, 1_000_000.0, 0, 60.0))
    assert ledger.change(lambda state: state.paused_until) == 1_000_060.0
    monkeypatch.setattr(limit_ledger, "boot_id", lambda: "another")
    assert ledger.change(lambda state: state.paused_until) == 0.0
