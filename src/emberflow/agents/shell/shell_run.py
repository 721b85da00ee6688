"""Runs checked commands: starts the supervisor, feeds it the plan, collects the output, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from typing import Any

from emberflow.agents.shell.orphans import kill_orphans
from emberflow.agents.shell.scratch import Scratch, to_its_end
from emberflow.errors import ToolFailed

_PATIENCE_S = 30.0
"""How much longer than its own limits the supervisor may take before it is killed as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """Limits of one call."""

    timeout_s: float = 60.0
    max_output_bytes: int = 65_536
    max_processes: int = 32
    max_file_bytes: int = 64 * 1024 * 1024
    """The size of each file that a command writes."""

    max_memory_bytes: int = 2 * 1024 * 1024 * 1024
    """The data of each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOutcome:
    """What the commands wrote, and how they ended."""

    stdout: str
    stderr: str
    status: int | None
    stopped: str = ""
    """Why they were killed: `timeout`, `output` or `processes`."""


async def run_commands(
    steps: list[dict[str, Any]], *, cwd: str, scratch: Scratch, path: str, limits: ShellLimits
) -> ShellOutcome:
    """Raises ToolFailed if the commands could not be supervised. When canceled, kills them first."""
    # Nothing of this process's environment: it may contain secrets.
    env = {"PATH": path, "HOME": scratch.home, "TMPDIR": scratch.work, "LANG": "C.UTF-8", "TERM": "dumb"}
    plan = {"steps": steps, "cwd": cwd, "env": env, "limits": asdict(limits)}
    read_fd, write_fd = os.pipe()
    report = b""
    try:
        process = await _supervisor(write_fd)
    except BaseException:
        os.close(read_fd)
        raise
    finally:
        os.close(write_fd)
    output = _Output(process, limits.max_output_bytes)
    reading = asyncio.ensure_future(output.read())
    # Readable as soon as the supervisor has reported, or has died: commands may hold its output open, but not this pipe.
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(read_fd, ended.set)
    is_late = False
    try:
        async with asyncio.timeout(limits.timeout_s + _PATIENCE_S):
            await _send(plan, process)
            await ended.wait()
    except TimeoutError:
        is_late = True
    finally:
        await to_its_end(_end(process, ended, reading))
        asyncio.get_running_loop().remove_reader(read_fd)
        os.set_blocking(read_fd, False)
        with contextlib.suppress(BlockingIOError):
            report = os.read(read_fd, 4096)
        os.close(read_fd)
        if not report:
            # The supervisor was killed, or hangs: what has left its process group is left.
            await to_its_end(asyncio.to_thread(kill_orphans, scratch.home))
    return _outcome(report, output, is_late)


async def _send(plan: dict[str, Any], process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(json.dumps(plan).encode() + b"\n")
        await process.stdin.drain()


async def _supervisor(report_fd: int) -> asyncio.subprocess.Process:
    from emberflow.agents.shell import supervisor

    # The library path is for Python itself; commands receive the environment of the plan.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", inspect.getsource(supervisor), str(report_fd)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd="/",
        start_new_session=True,
        pass_fds=(report_fd,),
    )


class _Output:
    """Both outputs, up to a limit for their sum; what exceeds it ends the commands."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int) -> None:
        self._process = process
        self._left = limit
        self.exceeded = False
        self.stdout, self.stderr = bytearray(), bytearray()

    async def read(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        await asyncio.gather(
            self._collect(self._process.stdout, self.stdout), self._collect(self._process.stderr, self.stderr)
        )

    async def _collect(self, stream: asyncio.StreamReader, into: bytearray) -> None:
        while chunk := await stream.read(65_536):
            into += chunk[: self._left]
            if len(chunk) > self._left:
                self.exceeded = True
                _tell_to_stop(self._process)
            self._left -= min(self._left, len(chunk))


def _tell_to_stop(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()


async def _end(
    process: asyncio.subprocess.Process, ended: asyncio.Event, reading: asyncio.Future[None]
) -> None:
    """The supervisor kills its commands when its input is closed; it is killed itself if it does not."""
    _tell_to_stop(process)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await ended.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await reading
                await process.wait()


def _outcome(report: bytes, output: _Output, is_late: bool) -> ShellOutcome:
    found: dict[str, Any] = {"status": None, "stopped": "timeout"}
    if report:
        found = json.loads(report)
    elif not output.exceeded and not is_late:
        lines = output.stderr.decode("utf-8", "replace").split("\n")
        raise ToolFailed(
            "the shell tool has lost its supervisor, and killed the commands",
            cause=next((line for line in reversed(lines) if line.strip()), "a command may have killed it"),
        )
    stopped = "output" if output.exceeded else found["stopped"]
    return ShellOutcome(
        stdout=output.stdout.decode("utf-8", "replace"),
        stderr=output.stderr.decode("utf-8", "replace"),
        status=found["status"] if not stopped else None,
        stopped=stopped,
    )
