"""Runs the commands of one call of the shell tool, in a process of its own. Imports the standard library only.

Its source is passed to `python -c` by `shell_run.py`. It receives a plan as one line on its standard input, which stays open:
when it is closed, or its writer dies, everything is killed. The commands inherit nothing but what the plan says. On Linux it
adopts whatever the commands start and leave behind, so that nothing outlives the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

POLL_S = 0.05
KILLING_S = 10.0
_ABOVE = 20
"""Descriptors of our own are above those that commands receive."""
_SHOWN = 500
"""Characters of a name in a message."""
_KILL_ALL_OF_GROUP = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""What `kill 0` of a command must not do to the supervisor, which is in the same process group."""


class Stopped(Exception):
    """Why the commands were killed."""


def main(report_fd: int) -> None:
    os.set_inheritable(report_fd, False)
    report: dict[str, Any] = {"status": None, "stopped": ""}
    supervisor = Supervisor(json.loads(_read_line(0)))
    try:
        report["status"] = supervisor.run()
    except Stopped as error:
        report["stopped"] = str(error)
    finally:
        supervisor.kill_all()
        os.write(report_fd, json.dumps(report).encode())


class Supervisor:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._steps: list[dict[str, Any]] = plan["steps"]
        self._env: dict[str, str] = plan["env"]
        self._limits: dict[str, int | float] = plan["limits"]
        self._deadline = time.monotonic() + self._limits["timeout_s"]
        os.umask(0o077)
        os.chdir(plan["cwd"])
        self._wake_r, wake_w = os.pipe()
        os.set_blocking(wake_w, False)
        os.set_blocking(self._wake_r, False)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        for caught in (signal.SIGCHLD, *_KILL_ALL_OF_GROUP):
            # Not ignored: commands would inherit that.
            signal.signal(caught, lambda number, frame: None)
        _protect()
        self._null = _above(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        self._out, self._err = _above(1), _above(2)
        self._started: set[int] = set()
        self._statuses: dict[int, int] = {}
        self._limit()

    def run(self) -> int:
        """The status of the last pipeline that ran."""
        status = 0
        for step in self._steps:
            if (step["after"] == "&&" and status != 0) or (step["after"] == "||" and status == 0):
                continue
            status = self._pipeline(step["commands"])
        return status

    def _pipeline(self, commands: list[dict[str, Any]]) -> int:
        pids: list[int | None] = []
        source = self._null
        for index, command in enumerate(commands):
            is_last = index == len(commands) - 1
            following, out = (self._null, self._out) if is_last else map(_above, os.pipe())
            try:
                pids.append(self._start(command, source, out))
            finally:
                self._close(source, out)
            source = following
        started = {pid for pid in pids if pid is not None}
        self._wait_for(started)
        last = pids[-1]
        return 126 if last is None else self._statuses[last]

    def _start(self, command: dict[str, Any], source: int, out: int) -> int | None:
        """None if the program could not be started; its error has been written."""
        table = {0: source, 1: out, 2: self._err}
        opened: list[int] = []
        place = ""
        try:
            for item in command["redirects"]:
                if item["kind"] == "dup":
                    table[item["fd"]] = table[item["source"]]
                elif item["kind"] == "null":
                    table[item["fd"]] = self._null
                else:
                    place = f"the redirect to {'/'.join(item['parts'])[:_SHOWN]!r} "
                    opened.append(_above(open_inside(item["root"], item["parts"], item["kind"])))
                    table[item["fd"]] = opened[-1]
            place = ""
            pid = os.posix_spawn(
                command["path"],
                command["argv"],
                self._env,
                file_actions=[(os.POSIX_SPAWN_DUP2, table[fd], fd) for fd in (0, 1, 2)],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
                setsigmask=[],
            )
            self._started.add(pid)
            return pid
        except OSError as error:
            reason = {errno.ENOEXEC: "it has no '#!' line", errno.ELOOP: "leads through a link"}.get(
                error.errno or 0, error.strerror
            )
            # Short enough for a pipe that nobody reads yet.
            said = f"{command['argv'][0][:_SHOWN]}: {place}{reason}\n"
            with contextlib.suppress(OSError):
                os.write(table[2], said.encode())
            return None
        finally:
            self._close(*opened)

    def _close(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            if descriptor not in (self._null, self._out, self._err):
                os.close(descriptor)

    def _wait_for(self, pids: set[int]) -> None:
        while True:
            self._reap()
            if pids <= self._statuses.keys():
                return
            readable, _, _ = select.select([0, self._wake_r], [], [], POLL_S)
            if 0 in readable:
                raise Stopped("abandoned")
            if self._wake_r in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_r, 4096)
            if time.monotonic() > self._deadline:
                raise Stopped("timeout")
            if sum(1 for _ in descendants()) > self._limits["max_processes"]:
                raise Stopped("processes")

    def _reap(self) -> bool:
        """Collects the statuses of processes that have ended; False if there are no more processes."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            code = os.waitstatus_to_exitcode(status)
            self._statuses[pid] = code if code >= 0 else 128 - code

    def kill_all(self) -> None:
        """Also what has left the process group. New processes are found as long as there are any."""
        until = time.monotonic() + KILLING_S
        self._stop_all(until - KILLING_S / 2)
        while self._reap() and time.monotonic() < until:
            for pid in [*descendants(), *(self._started - self._statuses.keys())]:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def _stop_all(self, until: float) -> None:
        """Stopped processes still count: those that multiply reach a limit instead of replacing those that are killed."""
        stopped: set[int] = set()
        while (found := set(descendants())) - stopped and time.monotonic() < until:
            for pid in found - stopped:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= found

    def _limit(self) -> None:
        limits = self._limits
        _set_limit(resource.RLIMIT_CORE, 0)
        _set_limit(resource.RLIMIT_FSIZE, int(limits["max_file_bytes"]))
        _set_limit(resource.RLIMIT_DATA, int(limits["max_memory_bytes"]))
        _set_limit(resource.RLIMIT_CPU, int(limits["timeout_s"]) + 5)
        if os.geteuid() != 0:
            # Counts all tasks of the user. The supervisor counts its own processes, but not fast enough for a fork bomb.
            _set_limit(resource.RLIMIT_NPROC, _tasks_of_user() + 16 * int(limits["max_processes"]))


def open_inside(root: str, parts: list[str], kind: str) -> int:
    """Opens a file below a directory without following links, which commands may have created a moment ago."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(root, flags)
    try:
        for part in parts[:-1]:
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        access = {
            "read": os.O_RDONLY,
            "write": os.O_WRONLY | os.O_CREAT,
            "append": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        }[kind]
        # Not blocking: opening a pipe would wait for its other end.
        found = os.open(
            parts[-1], access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder
        )
    finally:
        os.close(folder)
    try:
        _check_plain(found, kind)
        os.set_blocking(found, True)
        if kind == "write":
            os.truncate(found, 0)
    except BaseException:
        os.close(found)
        raise
    return found


def _check_plain(descriptor: int, kind: str) -> None:
    found = os.fstat(descriptor)
    # A second name of a file may be that of a file elsewhere.
    if not stat.S_ISREG(found.st_mode) or (kind != "read" and found.st_nlink > 1):
        raise OSError(errno.EACCES, "is not to a plain file")


def _above(descriptor: int) -> int:
    """A copy of a descriptor that is closed in commands; the original is closed unless it is one of the first three."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    if descriptor > 2:
        os.close(descriptor)
    return copy


def _read_line(descriptor: int) -> bytes:
    found = bytearray()
    # Nothing is sent after the line.
    while not found.endswith(b"\n"):
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            raise SystemExit(1)
        found += chunk
    return bytes(found)


def _protect() -> None:
    """Linux: adopt orphans, gain no privileges, be invisible to the commands' debuggers."""
    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        for option, value in ((36, 1), (38, 1), (4, 0)):
            prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _set_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))


def descendants(of: int | None = None) -> Iterator[int]:
    """The processes below one, at any depth; nothing where there is no /proc."""
    waiting = [os.getpid() if of is None else of]
    while waiting:
        for child in _children(waiting.pop()):
            yield child
            waiting.append(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        # The process has ended, or this kernel does not list children.
        return [] if _LISTS_CHILDREN else [child for child, parent in _parents() if parent == pid]
    return found


_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of the program is in parentheses, and may contain anything.
                    yield int(name), int(file.read().rpartition(b")")[2].split()[1])


def _tasks_of_user() -> int:
    count = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


if __name__ == "__main__":
    main(int(sys.argv[1]))
