"""Executes a plan: starts server and job, injects faults at the planned times, restarts what has died."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recovery.torture.actors import Job, Server
from tests.recovery.torture.damage import Damaged, damage, refused_clearly
from tests.recovery.torture.judge import Cause
from tests.recovery.torture.person import Person
from tests.recovery.torture.plan import Disturbance, Fault, Plan
from tests.recovery.torture.processes import (
    below,
    executors_of,
    kill,
    processes_of,
    talking_to,
    until,
    workers_of,
)
from tests.recovery.torture.run_files import Progress, RunFiles
from tests.recovery.torture.second import SecondDriver
from tests.recovery.torture.steps import STEPS, WATCHED

HANG_GUARD_S = 120
"""This long without a call, a new process or a fault means that the job hangs."""
_MOST_STARTS = 40
_ORPHANS_END_S = 60.0
_QUERY_ENDS_S = 3.0
"""Spark gives a Python worker whose task it abandoned two seconds."""
_AFTERMATH_S = 5.0
_AFTERMATH_SPARK_S = 60.0
"""A failure this long after a disk fault has ended is still attributed to it; Spark may take long to give up."""
_BUSY = 8
"""Processes that only keep the machine busy."""
_AIMED = 0.8
"""The fraction of killed workers that should have calls in flight."""
_MODES = {Fault.SERVER_ERRORS: "500", Fault.SERVER_BUSY: "429", Fault.SERVER_HANGS: "hang"}
_MAY_END_THE_JOB = {Fault.FULL_DISK, Fault.DISK_ERRORS, Fault.SERVER_ERRORS}


class Tormentor:
    def __init__(self, plan: Plan, files: RunFiles, expected_calls: int, *, small_disk: bool) -> None:
        self._plan = plan
        self._small_disk = small_disk
        self._files = files
        self._expected = expected_calls
        self._chance = random.Random(f"victims {plan.seed}")
        self._faults: dict[str, Any] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._excused_until = 0.0
        self._aims: dict[int, Disturbance] = {}
        self._aimed = 0
        self._hits = 0
        self._died_at_step = False
        self._watch: tuple[Disturbance, set[str]] | None = None
        self._second: SecondDriver | None = None
        self._seconds = 0
        self._damaged: Damaged | None = None
        self._busy: list[subprocess.Popen[bytes]] = []
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
            with Person(self._files.checkpoints):
                self._follow()
        finally:
            if self._second is not None:
                self._second.end()
            self._calm()
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
            if self._second is not None:
                self._look_at_second(first_ended=code is not None)
            self._note_hits()
            if code == 0:
                return
            if code is not None and not self._start_again(code):
                return
            self._look_for_step()
            share = progress.calls() / self._expected
            if (
                sign := (share, self.job.starts, len(self.struck), self._files.processes(), self._second)
            ) != seen:
                seen, last_sign = sign, now
            elif now > last_sign + HANG_GUARD_S:
                self.problems.append(f"the job hangs: nothing has happened for {HANG_GUARD_S} s")
                self.job.ask_where()
                time.sleep(1)
                return
            while waiting and waiting[0].share <= share:
                fault = waiting.pop(0)
                due.append((now + fault.delay_ms / 1000, fault))
            for item in [item for item in due if item[0] <= now]:
                # Checked one by one: the previous fault may have restarted the job.
                if self._can_strike(item[1]):
                    due.remove(item)
                    self._strike(item[1])
            for item in [item for item in self._later if item[0] <= now]:
                self._later.remove(item)
                item[1]()
            time.sleep(0.01 if self._watch is None else 0.002)

    def _can_strike(self, item: Disturbance) -> bool:
        """One second driver at a time, and only next to a job that owns its directory: otherwise it would be the first."""
        if self._second is not None:
            return False
        if item.fault not in (Fault.SECOND_DRIVER, Fault.PAUSED_DRIVER):
            return True
        return self._files.owner() == self.job.pid

    def _start_again(self, code: int) -> bool:
        """Called after the driver has ended, by itself or at a planned step."""
        self.job.wait_until_gone()
        now = time.monotonic()
        self.causes.append(Cause(begin=now, end=now, what="the job failed"))
        self._note_hits()
        if self._died_at_step and code == -signal.SIGKILL:
            self._died_at_step = False
            self.job.start()
            return True
        self.failures.append(f"exit code {code}: {self.job.last_words()}")
        if now > self._excused_until and self._damaged is not None and self._damaged.is_there():
            return self._refused(self._damaged)
        if now > self._excused_until:
            self.problems.append(f"the job failed by itself: {self.job.last_words()}")
            return False
        if self.job.starts >= _MOST_STARTS:
            self.problems.append(f"the job was started {_MOST_STARTS} times and never finished")
            return False
        time.sleep(0.1)
        self.job.start()
        return True

    def _refused(self, damaged: Damaged) -> bool:
        """The job does not run with a damaged file: it must report why, and run when the file is restored."""
        self._damaged = None
        if not refused_clearly(self.job.log.read_text(errors="replace"), self._files, damaged.path):
            self.problems.append(f"{damaged} led to an error that does not name it: {self.job.last_words()}")
            return False
        self.failures.append(f"refused, and goes on with the file as it was: {damaged}")
        damaged.put_back()
        self.job.start()
        return True

    # faults

    def _strike(self, item: Disturbance) -> None:
        if item.fault is Fault.KILL_AT_STEP:
            self._aim_at(item)
            return
        self.struck.append(item)
        begin, end = time.monotonic(), time.monotonic() + item.lasts_ms / 1000
        fault = item.fault
        if fault in _MAY_END_THE_JOB:
            aftermath_s = _AFTERMATH_SPARK_S if self._plan.on_spark else _AFTERMATH_S
            self._excused_until = max(self._excused_until, end + aftermath_s)
        if fault in _MODES:
            self.server.behave(_MODES[fault], item.lasts_ms / 1000)
        elif fault is Fault.KILL_SERVER:
            self.server.kill()
            self.causes.append(Cause(begin=begin, end=time.monotonic(), what=fault.value, of_server=True))
            self._later.append((end, self.server.start))
        elif fault is Fault.CLOCK_JUMP:
            self._bend(clock_s=self._faults.get("clock_s", 0) + item.jump_s)
        elif fault is Fault.SLOW_DISK:
            self._bend(slow=0.08)
            self._later.append((end, lambda: self._bend(slow=0)))
        elif fault is Fault.DISK_ERRORS:
            self._bend(errors=0.3)
            self._later.append((end, lambda: self._bend(errors=0)))
        elif fault is Fault.LOAD:
            self._busy += [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(_BUSY)]
            self._later.append((end, self._calm))
        elif fault in (Fault.SECOND_DRIVER, Fault.PAUSED_DRIVER):
            self._seconds += 1
            self._bend(aims=[])
            log = self._files.folder / f"second-{self._seconds}.log"
            self._second = SecondDriver(self.job, log, pause_first=fault is Fault.PAUSED_DRIVER)
        elif fault is Fault.RESTARTS:
            self._restart(item)
        elif fault is Fault.FULL_DISK:
            # A failed write may be noticed, and retried, slightly after there is space again.
            self.causes.append(Cause(begin=begin, end=end + _AFTERMATH_S, what=fault.value, many=True))
            if self._small_disk:
                fill(self._files.disk)
                self._later.append((end, lambda: (self._files.disk / "filling").unlink(missing_ok=True)))
            else:
                # Mounting is not permitted here, and the machine's own disk must not be filled: every write fails.
                self._bend(errors=1.0)
                self._later.append((end, lambda: self._bend(errors=0)))
        else:
            self._kill(item, begin)

    def _calm(self) -> None:
        for process in self._busy:
            process.kill()
            process.wait()
        self._busy.clear()

    def _look_at_second(self, *, first_ended: bool) -> None:
        assert self._second is not None
        found = self._second.look(first_ended)
        if found is not None:
            self.problems += found
            self._second = None
            self._bend_aims()

    def _restart(self, item: Disturbance) -> None:
        """Short starts, one after another."""
        for life_ms in item.restarts_ms:
            self._kill_all(item.fault.value)
            self.job.start()
            until(lambda: self.job.ended() is not None, life_ms / 1000)
            if self.job.ended() is not None:
                return
        self._kill_all(item.fault.value)
        self.job.start()

    def _kill_all(self, what: str) -> None:
        begin = time.monotonic()
        self.job.kill_all()
        self.causes.append(Cause(begin=begin, end=time.monotonic(), what=what))

    # steps

    def _aim_at(self, item: Disturbance) -> None:
        if item.step in WATCHED:
            self._watch = item, self._watched(item)
            return
        self._aimed += 1
        self._aims[self._aimed] = item
        self._bend_aims()

    def _bend_aims(self) -> None:
        aims = [
            {
                "number": number,
                "step": STEPS[item.step],
                "nth": item.nth,
                "when": item.when,
                "victims": "self" if item.worker_only else "all",
            }
            for number, item in self._aims.items()
        ]
        self._bend(aims=aims)

    def _note_hits(self) -> None:
        """What the shim has killed since the last call."""
        hits = self._files.hits()
        new, self._hits = hits[self._hits :], len(hits)
        for hit in new:
            lasts_s = _QUERY_ENDS_S if self._plan.on_spark else 0.0
            self.causes.append(Cause(begin=hit["t"], end=hit["t"] + lasts_s, what=hit["step"]))
            # Two workers may reach it at the same time: each of them has recorded it.
            item = self._aims.pop(hit["number"], None)
            if item is None:
                continue
            if item.fault is Fault.KILL_AT_STEP:
                self.struck.append(item)
            self._died_at_step = not item.worker_only or hit["pid"] == self.job.pid
            self._bend_aims()

    def _look_for_step(self) -> None:
        if self._watch is None or self.job.ended() is not None:
            return
        item, before = self._watch
        if len(self._watched(item) - before) >= item.nth:
            self._watch = None
            self._kill_all(f"{item.fault.value} {item.step}")
            self.struck.append(item)
            self.job.start()

    def _watched(self, item: Disturbance) -> set[str]:
        folder = self._files.checkpoints / WATCHED[item.step]
        return {name for name in os.listdir(folder) if name.isdigit()} if folder.is_dir() else set()

    def _bend(self, **faults: Any) -> None:
        self._faults.update(faults)
        temporary = self._files.faults.with_suffix(".new")
        temporary.write_text(json.dumps(self._faults))
        os.replace(temporary, self._files.faults)

    def _kill(self, item: Disturbance, begin: float) -> None:
        fault = item.fault
        if fault is Fault.KILL_JOB:
            self.job.kill_all()
            self.job.start()
        elif fault is Fault.KILL_RECOVERY:
            self.job.kill_all()
            self._aim_at(item)
            self.job.start()
        elif fault is Fault.DAMAGE:
            self.job.kill_all()
            # One file at a time: the job may have been killed before it could reject the previous one.
            if self._damaged is None or not self._damaged.is_there():
                self._damaged = damage(self._files, item, self._chance)
                if self._damaged is not None:
                    self.failures.append(f"damaged: {self._damaged}")
            self.job.start()
        elif fault is Fault.KILL_DRIVER:
            kill([self.job.pid])
            self.job.wait_until_gone()
            self.job.start()
        else:
            victims = self._victims(fault)
            orphans = below(self.job.pid, victims)
            begin = time.monotonic()
            kill(victims)
            # Workers of an executor end slightly later than the executor, and may start a call before.
            until(lambda: not orphans & {item.pid for item in processes_of(self.job.pid)}, _ORPHANS_END_S)
        end = time.monotonic()
        if fault is Fault.KILL_WORKER and self._plan.engine == "spark[2]":
            # Tasks are not repeated there: the query ends, and Spark ends the other workers with it.
            end += _QUERY_ENDS_S
        self.causes.append(Cause(begin=begin, end=end, what=fault.value))

    def _victims(self, fault: Fault) -> list[int]:
        """Kills one worker, usually one with calls in flight, or one executor."""
        if fault is Fault.KILL_EXECUTOR:
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
    """Fills the file system, down to single bytes."""
    with (folder / "filling").open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                while file.write(b"\0" * size) == size:
                    pass
                size //= 2
            except OSError:
                size //= 2
