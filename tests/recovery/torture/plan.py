"""The faults to inject into a job, derived from a seed as plain data: the same seed gives the same plan.

A time is a fraction of the run's calls, so that a fault hits the middle of the work on fast and on slow machines alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

from tests.recovery.torture.keys import colliding, plain
from tests.recovery.torture.steps import RECOVERY_STEPS, START_STEPS, WATCHED, steps_of

SOURCES = ("generator", "generators", "sequence", "files", "collection")
"""How the input is read: at a rate through one channel or two, as ranges of numbers, from files, from a list."""
DAMAGES = ("flip", "cut", "empty", "delete")


class Fault(Enum):
    """What can happen to a job. The value is its name in the printed line."""

    KILL_JOB = "kill all processes"
    KILL_DRIVER = "kill driver"
    KILL_WORKER = "kill worker"
    KILL_EXECUTOR = "kill executor"
    KILL_SERVER = "kill model server"
    SERVER_ERRORS = "model server answers 500"
    SERVER_BUSY = "model server answers 429"
    SERVER_HANGS = "model server hangs"
    FULL_DISK = "full disk"
    SLOW_DISK = "slow disk"
    DISK_ERRORS = "disk errors"
    CLOCK_JUMP = "clock jump"
    KILL_AT_STEP = "kill at step"
    KILL_RECOVERY = "kill all processes, and again during recovery"
    RESTARTS = "restarts"
    SECOND_DRIVER = "second driver"
    PAUSED_DRIVER = "second driver while the first is stopped"
    DAMAGE = "damaged file"
    LOAD = "machine under load"


LASTING = {
    Fault.KILL_SERVER,
    Fault.SERVER_ERRORS,
    Fault.SERVER_BUSY,
    Fault.SERVER_HANGS,
    Fault.FULL_DISK,
    Fault.SLOW_DISK,
    Fault.DISK_ERRORS,
    Fault.LOAD,
}
_CLOCK_JUMPS_S = (-7200, -3600, -90, -5, 5, 90, 3600, 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """`fault` is injected when the fraction `share` of the expected calls has reached the model server, `delay_ms` later."""

    fault: Fault
    share: float
    delay_ms: int
    lasts_ms: int = 0
    jump_s: int = 0
    step: str = ""
    """A step of a commit (`steps.py`); the `nth` time that it is executed after this disturbance is due."""
    nth: int = 0
    when: str = ""
    """Before or after the step."""
    worker_only: bool = False
    """Only the process that executes the step is killed, if it is a Spark worker."""
    damage: str = ""
    target: str = "*"
    """Names of the files that may be damaged."""
    newest: bool = False
    """The last of them by name, otherwise any."""
    restarts_ms: tuple[int, ...] = ()
    """How long each of these starts runs."""

    def __str__(self) -> str:
        more = f" {self.jump_s:+d} s" if self.fault is Fault.CLOCK_JUMP else ""
        more += f" '{self.step}' no. {self.nth}, {self.when}" if self.step else ""
        more += ", worker only" if self.worker_only else ""
        more += f", {self.damage}" if self.damage else ""
        more += f" after {', '.join(map(str, self.restarts_ms))} ms" if self.restarts_ms else ""
        more += f" for {self.lasts_ms} ms" if self.lasts_ms else ""
        return f"{self.fault.value}{more} at {self.share:.0%}+{self.delay_ms} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run."""

    seed: int
    short: bool
    engine: str
    backend: str
    checkpoint_ms: tuple[int, ...]
    """Of the first start, the second, …, then starting over."""
    parallelism: tuple[int, ...]
    """The same for the parallelism; Spark's is fixed by the first start."""
    inputs: int
    keys: tuple[str | int, ...]
    source: str
    """One of `SOURCES`."""
    rate: int
    pace: float
    """The model server's latencies are multiplied by it."""
    disturbances: tuple[Disturbance, ...]
    plant: str = ""
    """A bug that is planted into the product (`planted.py`), for tests of the torture test itself."""

    @property
    def on_spark(self) -> bool:
        return self.engine != "local"

    @property
    def host(self) -> str:
        return self.engine if self.on_spark else f"local/{self.backend}"

    @property
    def needs_small_disk(self) -> bool:
        return any(item.fault is Fault.FULL_DISK for item in self.disturbances)

    def __str__(self) -> str:
        return "; ".join(str(item) for item in self.disturbances)


LOCAL_FAULTS = {
    Fault.KILL_JOB: 6,
    Fault.KILL_SERVER: 2,
    Fault.SERVER_ERRORS: 1,
    Fault.SERVER_BUSY: 1,
    Fault.SERVER_HANGS: 1,
    Fault.FULL_DISK: 1,
    Fault.SLOW_DISK: 1,
    Fault.DISK_ERRORS: 2,
    Fault.CLOCK_JUMP: 2,
    Fault.KILL_AT_STEP: 12,
    Fault.KILL_RECOVERY: 4,
    Fault.RESTARTS: 2,
    Fault.SECOND_DRIVER: 2,
    Fault.PAUSED_DRIVER: 2,
    Fault.DAMAGE: 6,
    Fault.LOAD: 1,
}
SPARK_FAULTS = {
    **{fault: max(weight, 2) for fault, weight in LOCAL_FAULTS.items()},
    Fault.KILL_JOB: 2,
    Fault.KILL_DRIVER: 2,
    Fault.KILL_WORKER: 8,
    Fault.KILL_AT_STEP: 16,
    Fault.KILL_RECOVERY: 2,
}
CLUSTER_FAULTS = {**SPARK_FAULTS, Fault.KILL_EXECUTOR: 16}
_GENERATION = 3
"""Part of every seed. Chosen so that 200 seeds contain every fault on every engine; another value gives other plans."""
_COLLIDING = 0.3
"""The fraction of seeds with keys that have equal short hashes."""
_FIRST_COMMIT = 0.25
"""The fraction of steps that are targeted before anything was committed."""


def draw(seed: int, *, short: bool = False, engine: str | None = None) -> Plan:
    """The plan of a seed. `short` is for the normal test suite: less input, every fifth seed on Spark. `engine` runs
    the seed on another engine than its own."""
    chance = random.Random(f"{_GENERATION} plan {seed} {'short' if short else 'long'}")
    own = ("spark[2,4]" if seed % 5 == 0 else "local") if short else _engine(chance)
    engine = engine or own
    on_spark = engine != "local"
    faults = CLUSTER_FAULTS if engine == "cluster" else SPARK_FAULTS if on_spark else LOCAL_FAULTS
    most = 2 if on_spark else 3 if short else 4
    backend = "sqlite" if not on_spark and chance.random() < 0.4 else "file"
    steps = steps_of(engine, backend)
    disturbances = [_disturbance(chance, faults, steps, on_spark) for _ in range(chance.randint(1, most))]
    keys = chance.randint(3, 6)
    return Plan(
        seed=seed,
        short=short,
        engine=engine,
        backend=backend,
        checkpoint_ms=tuple(chance.choices([20, 60, 200, 1_000], k=3)),
        inputs=chance.randint(10, 16) if short or on_spark else chance.randint(16, 30),
        parallelism=(2,) if on_spark or chance.random() < 0.6 else (2, *chance.choices([1, 2, 3], k=2)),
        keys=tuple(colliding(keys, seed) if chance.random() < _COLLIDING else plain(keys)),
        source=chance.choices(SOURCES, weights=[6, 4, 2, 2, 2])[0],
        rate=chance.choice([10, 20, 40]),
        pace=0.2 if short else 1.0 if on_spark else 0.4,
        disturbances=tuple(sorted(disturbances, key=lambda item: (item.share, item.delay_ms))),
    )


def _engine(chance: random.Random) -> str:
    return chance.choices(["local", "spark[2,4]", "spark[2]", "cluster"], weights=[70, 18, 7, 5])[0]


def _disturbance(
    chance: random.Random, faults: dict[Fault, int], steps: list[str], on_spark: bool
) -> Disturbance:
    fault = chance.choices(list(faults), weights=list(faults.values()))[0]
    share = round(chance.uniform(0.02, 0.95), 2)
    if fault is Fault.KILL_AT_STEP:
        step = chance.choice(steps)
        first = chance.random() < _FIRST_COMMIT or step in START_STEPS
        return Disturbance(
            fault=fault,
            share=0.0 if first else share,
            delay_ms=0,
            step=step,
            nth=_nth(chance, step)
            if step in START_STEPS
            else chance.choice([1, 1, 2])
            if first
            else _nth(chance, step),
            when=chance.choice(["before", "after"]),
            worker_only=on_spark and step not in WATCHED and chance.random() < 0.3,
        )
    if fault is Fault.KILL_RECOVERY:
        step = chance.choice(RECOVERY_STEPS)
        when = chance.choice(["before", "after"])
        return Disturbance(fault=fault, share=share, delay_ms=0, step=step, nth=_nth(chance, step), when=when)
    if fault is Fault.RESTARTS:
        lives = [500, 3_000, 9_000] if on_spark else [300, 600, 1_000, 1_500, 3_000]
        restarts = tuple(chance.choices(lives, k=1 if on_spark else chance.randint(2, 4)))
        return Disturbance(fault=fault, share=share, delay_ms=0, restarts_ms=restarts)
    return Disturbance(
        fault=fault,
        share=share,
        damage=chance.choice(DAMAGES) if fault is Fault.DAMAGE else "",
        delay_ms=chance.choice([0, 0, 5, 20, 60, 150, 300]),
        lasts_ms=chance.randint(200, 1_200) if fault in LASTING else 0,
        jump_s=chance.choice(_CLOCK_JUMPS_S) if fault is Fault.CLOCK_JUMP else 0,
    )


def _nth(chance: random.Random, step: str) -> int:
    """Some steps are executed all the time, others rarely."""
    most = {
        "anything": 200,
        "lease taken": 1,
        "calls removed": 2,
        "sink taken over": 2,
        "first reads": 8,
        "manifest": 6,
        "owner": 6,
        "call appended": 30,
        "call recorded": 30,
    }
    return chance.randint(1, most.get(step, 4))
