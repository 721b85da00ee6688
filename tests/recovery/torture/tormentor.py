"""Carries out a plan: starts server and job, strikes at the planned moments, starts again what has died."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.recovery.torture.actors import Job, Server
from tests.recovery.torture.judge import Cause
from tests.recovery.torture.plan import Blow, Disturbance, Plan
from tests.recovery.torture.processes import executors_of, kill, talking_to, until, workers_of
from tests.recovery.torture.run_files import Progress, RunFiles

HANG_GUARD_S = 120
"""This long without a call, a new process or a blow means that the job hangs."""
_MOST_STARTS = 40
_QUERY_ENDS_S = 3.0
"""Spark gives a Python worker whose task it gave up two seconds."""
_AFTERMATH_S = 5.0
_AFTERMATH_SPARK_S = 60.0
"""A failure this long after a disk fault has ended is still put down to it; Spark takes its time to give up."""
_AIMED = 0.8
"""Of the killed workers, how many are to have calls in flight."""
_MODES = {Blow.SERVER_ERRORS: "500", Blow.SERVER_BUSY: "429", Blow.SERVER_HANGS: "hang"}
_MAY_END_THE_JOB = {Blow.FULL_DISK, Blow.DISK_ERRORS, Blow.SERVER_ERRORS}


class Tormentor:
    def __init__(self, plan: Plan, files: RunFiles, expected_calls: int, *, small_disk: bool) -> None:
        self._plan = plan
        self._small_disk = small_disk
        self._files = files
        self._expected = expected_calls
        self._chance = random.Random(f"victims {plan.seed}")
        self._faults: dict[str, float] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._excused_until = 0.0
        self.server = Server(files, plan.seed, plan.pace)
        self.job = Job(plan, files, self.server.port)
        self.causes: list[Cause] = []
        self.struck: list[Disturbance] = []
        self.problems: list[str] = []
        self.failures: list[str] = []

    def carry_out(self) -> None:
        """Returns when the job has finished, or cannot."""
        self.server.start()
        self.job.start()
        try:
            self._follow()
        finally:
            self.job.kill_all()
            self.server.kill()

    def _follow(self) -> None:
        progress = Progress(self._files.record)
        waiting = list(self._plan.disturbances)
        due: list[tuple[float, Disturbance]] = []
        seen, last_sign = None, time.monotonic()
        while True:
            now = time.monotonic()
            code = self.job.ended()
            if code == 0:
                return
            if code is not None and not self._start_again(code):
                return
            share = progress.calls() / self._expected
            if (sign := (share, self.job.starts, len(self.struck), self._files.processes())) != seen:
                seen, last_sign = sign, now
            elif now > last_sign + HANG_GUARD_S:
                self.problems.append(f"the job hangs: nothing has happened for {HANG_GUARD_S} s")
                self.job.ask_where()
                time.sleep(1)
                return
            while waiting and waiting[0].share <= share:
                blow = waiting.pop(0)
                due.append((now + blow.delay_ms / 1000, blow))
            for item in [item for item in due if item[0] <= now]:
                due.remove(item)
                self._strike(item[1])
            for item in [item for item in self._later if item[0] <= now]:
                self._later.remove(item)
                item[1]()
            time.sleep(0.01)

    def _start_again(self, code: int) -> bool:
        """After the driver has ended by itself."""
        self.job.wait_until_gone()
        now = time.monotonic()
        self.causes.append(Cause(begin=now, end=now, what="the job failed"))
        self.failures.append(f"exit code {code}: {self.job.last_words()}")
        if now > self._excused_until:
            self.problems.append(f"the job failed by itself: {self.job.last_words()}")
            return False
        if self.job.starts >= _MOST_STARTS:
            self.problems.append(f"the job was started {_MOST_STARTS} times and never finished")
            return False
        time.sleep(0.1)
        self.job.start()
        return True

    # blows

    def _strike(self, item: Disturbance) -> None:
        self.struck.append(item)
        begin, end = time.monotonic(), time.monotonic() + item.lasts_ms / 1000
        blow = item.blow
        if blow in _MAY_END_THE_JOB:
            aftermath_s = _AFTERMATH_SPARK_S if self._plan.on_spark else _AFTERMATH_S
            self._excused_until = max(self._excused_until, end + aftermath_s)
        if blow in _MODES:
            self.server.behave(_MODES[blow], item.lasts_ms / 1000)
        elif blow is Blow.KILL_SERVER:
            self.server.kill()
            self.causes.append(Cause(begin=begin, end=time.monotonic(), what=blow.value, of_server=True))
            self._later.append((end, self.server.start))
        elif blow is Blow.CLOCK_JUMP:
            self._bend(clock_s=self._faults.get("clock_s", 0) + item.jump_s)
        elif blow is Blow.SLOW_DISK:
            self._bend(slow=0.08)
            self._later.append((end, lambda: self._bend(slow=0)))
        elif blow is Blow.DISK_ERRORS:
            self._bend(errors=0.3)
            self._later.append((end, lambda: self._bend(errors=0)))
        elif blow is Blow.FULL_DISK:
            # Whatever failed may be noticed, and tried again, a little later than there is room again.
            self.causes.append(Cause(begin=begin, end=end + _AFTERMATH_S, what=blow.value, many=True))
            if self._small_disk:
                fill(self._files.disk)
                self._later.append((end, lambda: (self._files.disk / "filling").unlink(missing_ok=True)))
            else:
                # Nothing may be mounted here, and the machine's own disk is not ours to fill: every write fails.
                self._bend(errors=1.0)
                self._later.append((end, lambda: self._bend(errors=0)))
        else:
            self._kill(blow, begin)

    def _bend(self, **faults: float) -> None:
        self._faults.update(faults)
        temporary = self._files.faults.with_suffix(".new")
        temporary.write_text(json.dumps(self._faults))
        os.replace(temporary, self._files.faults)

    def _kill(self, blow: Blow, begin: float) -> None:
        if blow is Blow.KILL_JOB:
            self.job.kill_all()
            self.job.start()
        elif blow is Blow.KILL_DRIVER:
            kill([self.job.pid])
            self.job.wait_until_gone()
            self.job.start()
        else:
            victims = self._victims(blow)
            begin = time.monotonic()
            kill(victims)
        end = time.monotonic()
        if blow is Blow.KILL_WORKER and self._plan.engine == "spark[2]":
            # Tasks are not repeated there: the query ends, and Spark ends the other workers with it.
            end += _QUERY_ENDS_S
        self.causes.append(Cause(begin=begin, end=end, what=blow.value))

    def _victims(self, blow: Blow) -> list[int]:
        """One worker, mostly one that has calls in flight, or one executor."""
        if blow is Blow.KILL_EXECUTOR:
            until(lambda: executors_of(self.job.pid) or self.job.ended() is not None, 10)
            found = executors_of(self.job.pid)
        else:
            found: list[int] = []
            if self._chance.random() < _AIMED:
                until(lambda: self._calling() or self.job.ended() is not None, 2)
                found = self._calling()
            found = found or workers_of(self.job.pid)
        return [self._chance.choice(found)] if found else []

    def _calling(self) -> list[int]:
        return talking_to(self.server.port, workers_of(self.job.pid))


def fill(folder: Path) -> None:
    """Takes all that is left of the file system, down to single bytes."""
    with (folder / "filling").open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                while file.write(b"\0" * size) == size:
                    pass
                size //= 2
            except OSError:
                size //= 2
