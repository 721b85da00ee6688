"""What is done to a job, drawn from a seed as plain data: the same seed gives the same plan.

A moment is a share of the run's calls, so that a blow hits the middle of the work on fast and on slow machines alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Blow(Enum):
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


LASTING = {
    Blow.KILL_SERVER,
    Blow.SERVER_ERRORS,
    Blow.SERVER_BUSY,
    Blow.SERVER_HANGS,
    Blow.FULL_DISK,
    Blow.SLOW_DISK,
    Blow.DISK_ERRORS,
}
_CLOCK_JUMPS_S = (-7200, -3600, -90, -5, 5, 90, 3600, 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """`blow` strikes when `share` of the expected calls have reached the model server, `delay_ms` later."""

    blow: Blow
    share: float
    delay_ms: int
    lasts_ms: int = 0
    jump_s: int = 0

    def __str__(self) -> str:
        more = f" {self.jump_s:+d} s" if self.blow is Blow.CLOCK_JUMP else ""
        more += f" for {self.lasts_ms} ms" if self.lasts_ms else ""
        return f"{self.blow.value}{more} at {self.share:.0%}+{self.delay_ms} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run."""

    seed: int
    short: bool
    engine: str
    backend: str
    checkpoint_ms: tuple[int, ...]
    """Of the first start, the second, …, and again from the beginning."""
    inputs: int
    keys: int
    rate: int
    pace: float
    """The model server's latencies are multiplied by it."""
    disturbances: tuple[Disturbance, ...]

    @property
    def on_spark(self) -> bool:
        return self.engine != "local"

    @property
    def host(self) -> str:
        return self.engine if self.on_spark else f"local/{self.backend}"

    @property
    def needs_small_disk(self) -> bool:
        return any(item.blow is Blow.FULL_DISK for item in self.disturbances)

    def __str__(self) -> str:
        return "; ".join(str(item) for item in self.disturbances)


LOCAL_BLOWS = {
    Blow.KILL_JOB: 6,
    Blow.KILL_SERVER: 2,
    Blow.SERVER_ERRORS: 1,
    Blow.SERVER_BUSY: 1,
    Blow.SERVER_HANGS: 1,
    Blow.FULL_DISK: 1,
    Blow.SLOW_DISK: 1,
    Blow.DISK_ERRORS: 2,
    Blow.CLOCK_JUMP: 2,
}
SPARK_BLOWS = {**LOCAL_BLOWS, Blow.KILL_JOB: 2, Blow.KILL_DRIVER: 2, Blow.KILL_WORKER: 8}
CLUSTER_BLOWS = {**SPARK_BLOWS, Blow.KILL_EXECUTOR: 12}


def draw(seed: int, *, short: bool = False, engine: str | None = None) -> Plan:
    """The plan of a seed. `short` is for the normal test suite: less input, every fifth seed on Spark. `engine` runs
    the seed on another engine than its own."""
    chance = random.Random(f"plan {seed} {'short' if short else 'long'}")
    own = ("spark[2,4]" if seed % 5 == 0 else "local") if short else _engine(chance)
    engine = engine or own
    on_spark = engine != "local"
    blows = CLUSTER_BLOWS if engine == "cluster" else SPARK_BLOWS if on_spark else LOCAL_BLOWS
    most = 2 if on_spark else 3 if short else 4
    disturbances = [_disturbance(chance, blows) for _ in range(chance.randint(1, most))]
    return Plan(
        seed=seed,
        short=short,
        engine=engine,
        backend="sqlite" if not on_spark and chance.random() < 0.4 else "file",
        checkpoint_ms=tuple(chance.choices([20, 60, 200, 1_000], k=3)),
        inputs=chance.randint(10, 16) if short or on_spark else chance.randint(16, 30),
        keys=chance.randint(3, 6),
        rate=chance.choice([10, 20, 40]),
        pace=0.2 if short else 1.0 if on_spark else 0.4,
        disturbances=tuple(sorted(disturbances, key=lambda item: (item.share, item.delay_ms))),
    )


def _engine(chance: random.Random) -> str:
    return chance.choices(["local", "spark[2,4]", "spark[2]", "cluster"], weights=[70, 18, 7, 5])[0]


def _disturbance(chance: random.Random, blows: dict[Blow, int]) -> Disturbance:
    blow = chance.choices(list(blows), weights=list(blows.values()))[0]
    return Disturbance(
        blow=blow,
        share=round(chance.uniform(0.02, 0.95), 2),
        delay_ms=chance.choice([0, 0, 5, 20, 60, 150, 300]),
        lasts_ms=chance.randint(200, 1_200) if blow in LASTING else 0,
        jump_s=chance.choice(_CLOCK_JUMPS_S) if blow is Blow.CLOCK_JUMP else 0,
    )
