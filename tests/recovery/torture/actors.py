"""The two parts of a run that have their own processes: the model server and the job."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.recovery.torture.desk import Inputs, write_files
from tests.recovery.torture.plan import Plan
from tests.recovery.torture.planted import WITHOUT_FAULTS
from tests.recovery.torture.processes import kill_session, processes_of, until
from tests.recovery.torture.run_files import RunFiles

ROOT = Path(__file__).parents[3]
SHIM = Path(__file__).with_name("shim")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The model server; the same port and the same record every time it is started."""

    def __init__(self, files: RunFiles, seed: int, pace: float) -> None:
        self.port = free_port()
        self._command = [
            sys.executable,
            str(Path(__file__).with_name("model_server.py")),
            str(self.port),
            str(files.record),
            str(seed),
            str(pace),
        ]
        self._log = files.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == b"ready", self._log.read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def behave(self, mode: str, seconds: float) -> None:
        if self._process is None:
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/behave", json.dumps({"mode": mode, "seconds": seconds}))
        connection.getresponse().read()
        connection.close()


class Job:
    """The tortured job; `start` continues from the checkpoint directory."""

    def __init__(self, plan: Plan, files: RunFiles, port: int, *, undisturbed: bool = False) -> None:
        self._files = files
        self._starts = 0
        self._process: subprocess.Popen[bytes]
        settings = {
            "seed": plan.seed,
            "engine": "local" if undisturbed else plan.engine,
            "backend": plan.backend,
            "checkpoint_ms": plan.checkpoint_ms,
            "inputs": plan.inputs,
            "keys": plan.keys,
            "source": plan.source,
            "parallelism": (2,) if undisturbed else plan.parallelism,
            "input_files": str(files.input_files),
            "rate": None if undisturbed else plan.rate,
            "plant": plan.plant if not undisturbed or plan.plant in WITHOUT_FAULTS else "",
            "port": port,
            "finished": str(files.finished),
            "checkpoints": str(files.checkpoints),
            "out": str(files.out),
        }
        files.settings.write_text(json.dumps(settings))
        write_files(Inputs(plan.seed, plan.keys, plan.inputs, plan.source), files.input_files)

    @property
    def starts(self) -> int:
        return self._starts

    @property
    def pid(self) -> int:
        """The driver, which is the session leader of all processes of the job."""
        return self._process.pid

    @property
    def log(self) -> Path:
        return self._files.folder / f"job-{self._starts}.log"

    def start(self) -> None:
        self._starts += 1
        self._process = self._launch(self.log)

    def start_second(self, log: Path) -> subprocess.Popen[bytes]:
        """Another driver with the same settings."""
        return self._launch(log)

    def _launch(self, log_file: Path) -> subprocess.Popen[bytes]:
        paths = [str(SHIM), str(ROOT), str(ROOT / "src")]
        environment = {
            **os.environ,
            "EMBERFLOW_QUIET": "1",
            "TORTURE_FOLDER": str(self._files.folder),
            "TMPDIR": str(self._files.temporary),
            "PYTHONPATH": os.pathsep.join(paths),
            # Short-lived JVMs: optimizing compilation costs more than it gains.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        with log_file.open("wb") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.recovery.torture.program",
                    str(self._files.settings),
                    str(self._starts),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=environment,
                start_new_session=True,
            )

    def ended(self) -> int | None:
        """The exit code after the driver has ended."""
        return self._process.poll()

    def wait_until_gone(self) -> None:
        """Waits until no process of this start is left; kills those that do not end by themselves."""
        self._process.wait()
        if not until(lambda: not processes_of(self.pid), 10):
            kill_session(self.pid)

    def kill_all(self) -> None:
        kill_session(self.pid)
        self._process.wait()

    def ask_where(self) -> None:
        """Every Python process of the job writes its stacks into the run's folder."""
        for item in processes_of(self.pid):
            if "python" in item.command.split(" ")[0]:
                os.kill(item.pid, signal.SIGUSR1)

    def pause(self, number: signal.Signals) -> None:
        """Suspends or resumes all processes of the job."""
        for item in processes_of(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(item.pid, number)

    def last_words(self, log: Path | None = None) -> str:
        """The error that ended it, in one line."""
        text = (log or self.log).read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        codes = [line for line in lines if "[EF" in line]
        return (codes or lines or ["it said nothing"])[-1][:300]
