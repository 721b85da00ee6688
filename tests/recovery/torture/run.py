"""One seed from beginning to end: an undisturbed run, a tortured run, the judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from tests.recovery.torture.actors import ROOT, Job, Server
from tests.recovery.torture.desk import inputs_of
from tests.recovery.torture.judge import Run, Verdict, check_alone, judge
from tests.recovery.torture.person import Person
from tests.recovery.torture.plan import Plan, draw
from tests.recovery.torture.processes import until
from tests.recovery.torture.run_files import RunFiles
from tests.recovery.torture.tormentor import HANG_GUARD_S, Tormentor

_DISK_MB = {"local": 8}
_SPARK_DISK_MB = 64
_RESULT = "result "


@dataclass(slots=True, kw_only=True)
class Result:
    """What is printed about a run. `violations` is empty if all guarantees hold."""

    seed: int
    host: str
    plan: str
    short: bool
    engine: str
    """Empty: the seed's own."""
    seconds: float = 0.0
    starts: int = 0
    struck: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])
    calls: int = 0
    repeated_in_flight: int = 0
    repeated_recorded: int = 0
    asked_again_after_error: int = 0
    outputs: int = 0
    violations: list[str] = field(default_factory=list[str])
    folder: str = ""

    @classmethod
    def without(cls, plan: Plan, problem: str, folder: str) -> Result:
        """The result of a run that did not finish."""
        return cls(
            seed=plan.seed,
            host=plan.host,
            plan=str(plan),
            short=plan.short,
            engine=_other_engine(plan),
            violations=[problem],
            folder=folder,
        )


def run_seed(plan: Plan, folder: Path, *, small_disk: bool = False) -> Result:
    """Runs in this process. `small_disk`: this process may mount one, visible to no other process."""
    began = time.monotonic()
    try:
        undisturbed = run_undisturbed(plan, folder / "undisturbed")
    except AssertionError as error:
        return Result.without(plan, f"the undisturbed run failed: {error}", str(folder))
    files = RunFiles(folder / "tortured")
    if small_disk:
        size = _DISK_MB.get(plan.engine, _SPARK_DISK_MB)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(files.disk)], check=True)
    tormentor = Tormentor(plan, files, len(undisturbed.calls), small_disk=small_disk)
    tormentor.carry_out()
    tortured = files.run(tormentor.causes)
    verdict = judge(undisturbed, tortured) if not tormentor.problems else Verdict(calls=len(tortured.calls))
    alone = [
        f"undisturbed: {item}"
        for item in check_alone(undisturbed, inputs_of(plan.seed, plan.keys, plan.inputs, plan.source))
    ]
    violations = [*tormentor.problems, *alone, *verdict.violations]
    if violations:
        (folder / "causes.json").write_text(
            json.dumps([asdict(cause) for cause in tormentor.causes], indent=1)
        )
        if small_disk:
            # The small disk disappears with this process.
            shutil.copytree(files.disk, folder / "tortured" / "disk-copy", dirs_exist_ok=True)
    return Result(
        seed=plan.seed,
        host=plan.host,
        plan=str(plan),
        short=plan.short,
        engine=_other_engine(plan),
        seconds=round(time.monotonic() - began, 1),
        starts=tormentor.job.starts,
        struck=[str(item) for item in tormentor.struck],
        failures=tormentor.failures,
        calls=verdict.calls,
        repeated_in_flight=verdict.repeated_in_flight,
        repeated_recorded=verdict.repeated_recorded,
        asked_again_after_error=verdict.asked_again_after_error,
        outputs=len(tortured.outputs),
        violations=violations,
        folder=str(folder),
    )


def _other_engine(plan: Plan) -> str:
    return "" if draw(plan.seed, short=plan.short).engine == plan.engine else plan.engine


def run_undisturbed(plan: Plan, folder: Path) -> Run:
    """On the local engine, whatever the plan says: engines must not differ either. Without latencies it takes a second."""
    files = RunFiles(folder)
    server = Server(files, plan.seed, 0.0)
    server.start()
    job = Job(plan, files, server.port, undisturbed=True)
    job.start()
    try:
        with Person(files.checkpoints):
            assert until(lambda: job.ended() is not None, HANG_GUARD_S), "the undisturbed run hangs"
        assert job.ended() == 0, job.log.read_text()[-3000:]
    finally:
        job.kill_all()
        server.kill()
    run = files.run([])
    repeated = judge(run, run).violations
    assert not repeated, repeated
    return run


def run_in_process(plan: Plan, folder: Path) -> Result:
    """Runs in a separate process, which may mount a small disk that disappears with it."""
    command = [
        sys.executable,
        "-m",
        "tests.recovery.torture",
        "--one",
        str(plan.seed),
        "--folder",
        str(folder),
    ]
    command += ["--short"] * plan.short + ["--engine", plan.engine]
    if plan.needs_small_disk and (prefix := own_mounts()):
        command = [*prefix, *command, "--small-disk"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(_RESULT):
            return Result(**json.loads(line[len(_RESULT) :]))
    raise RuntimeError(f"seed {plan.seed} came to no result:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")


def print_one(seed: int, folder: Path, *, short: bool, engine: str | None, small_disk: bool) -> None:
    """The child's side of `run_in_process`."""
    result = run_seed(draw(seed, short=short, engine=engine), folder, small_disk=small_disk)
    print(_RESULT + json.dumps(asdict(result)), flush=True)


@cache
def own_mounts() -> list[str]:
    """How to start a process that may mount; empty if that is not permitted: then a full disk is only simulated."""
    prefix = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        trial = subprocess.run(
            [*prefix, "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return prefix if trial.returncode == 0 else []
