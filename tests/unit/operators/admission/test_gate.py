"""Gates of several processes, on an event loop whose clock jumps: order, limits, pauses, bounds, cancellation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from emberflow.errors import ResourceFailed
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.admission.gate import Gate, MemoryLedger
from emberflow.operators.admission.model_limits import ModelLimits
from tests.support.virtual_time import run


class TooMany(Exception):
    status_code = 429

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("too many requests")
        self.retry_after = retry_after


@dataclass
class Service:
    """Accepts `rate` requests per second, with a small burst; rejects the rest."""

    rate: float = float("inf")
    call_s: float = 0.1
    says: float | None = 1.0
    begun: list[float] = field(default_factory=list[float])
    served: list[Any] = field(default_factory=list[Any])
    turned_away: list[float] = field(default_factory=list[float])
    in_flight: int = 0
    most: int = 0
    _level: float = 5.0
    _at: float = 0.0

    async def ask(self, question: Any = None) -> Any:
        now = asyncio.get_running_loop().time()
        self._level = min(5.0, self._level + (now - self._at) * self.rate) if now > self._at else self._level
        self._at = now
        if self._level < 1 and self.rate < float("inf"):
            self.turned_away.append(now)
            raise TooMany(self.says)
        self._level -= 1
        self.begun.append(now)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.call_s)
        finally:
            self.in_flight -= 1
        self.served.append(question)
        return question


def gates(count: int, **limits: Any) -> list[Gate]:
    """This many processes."""
    ledger = MemoryLedger()
    return [Gate("the connection 'c'", ModelLimits(**limits), ledger) for _ in range(count)]


async def all_of(service: Service, gates: list[Gate], count: int) -> None:
    await asyncio.gather(
        *(gates[number % len(gates)].call(lambda n=number: service.ask(n)) for number in range(count))
    )


def busiest(moments: list[float], seconds: float) -> int:
    moments = sorted(moments)
    return max(
        sum(start <= other < start + seconds for other in moments[i:]) for i, start in enumerate(moments)
    )


def test_without_limits_nothing_waits() -> None:
    service, (gate,) = Service(), gates(1)
    run(all_of(service, [gate], 500))
    assert (service.most, len(service.served)) == (500, 500)


def test_calls_in_flight_of_all_processes_stay_within_the_limit() -> None:
    service = Service()
    run(all_of(service, gates(3, max_concurrent=7), 300))
    assert service.most == 7, "the whole limit is used, and no more"
    assert sorted(service.served) == list(range(300))


def test_calls_start_in_order_of_arrival() -> None:
    service, (gate,) = Service(), gates(1, max_concurrent=2)
    run(all_of(service, [gate], 50))
    assert service.served == list(range(50))


def test_requests_per_minute_of_all_processes() -> None:
    service = Service()
    run(all_of(service, gates(3, requests_per_minute=600), 1_500))
    assert busiest(service.begun, 60) <= 600
    assert busiest(service.begun, 1) <= 14, "evenly, not all at the beginning of a minute"
    assert service.begun[-1] - service.begun[0] < 1_500 / 10 * 1.02
    assert sorted(service.served) == list(range(1_500))


def test_tokens_per_minute_are_those_that_were_used() -> None:
    service, (gate,) = Service(), gates(1, tokens_per_minute=60_000)

    async def work() -> float:
        begun = asyncio.get_running_loop().time()
        calls = [gate.call(service.ask, tokens=100, used=lambda answer: 500) for _ in range(400)]
        await asyncio.gather(*calls)
        return asyncio.get_running_loop().time() - begun

    took = run(work())
    assert took == pytest.approx(400 * 500 / 1_000, rel=0.05), "estimated at 100, counted as 500"


def test_a_process_that_starts_later_gets_its_share() -> None:
    service = Service(call_s=1.0)
    early, late = gates(2, max_concurrent=4)

    async def work() -> list[str]:
        order: list[str] = []

        async def one(gate: Gate, name: str) -> None:
            await gate.call(service.ask)
            order.append(name)

        first = [asyncio.create_task(one(early, "early")) for _ in range(40)]
        await asyncio.sleep(2.5)
        await asyncio.gather(*first, *(one(late, "late") for _ in range(4)))
        return order

    order = run(work())
    assert order[16:].index("late") < 8
    assert max(i for i, name in enumerate(order) if name == "late") < 28


def test_a_429_is_not_the_answer() -> None:
    service, (gate,) = Service(rate=10, call_s=0.01), gates(1)
    run(all_of(service, [gate], 300))
    assert sorted(service.served) == list(range(300))
    assert service.turned_away


def test_a_pause_requested_from_one_process_applies_to_all() -> None:
    service = Service()
    one, other = gates(2)
    asked: list[float] = []

    async def refused() -> None:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 1:
            raise TooMany(5.0)

    async def work() -> None:
        first = asyncio.create_task(one.call(refused))
        await asyncio.sleep(0.5)
        await other.call(service.ask)
        await first

    run(work())
    assert service.begun[0] >= asked[0] + 5
    assert asked[1] >= asked[0] + 5
    assert one.throttled_s == pytest.approx(5.0)


def test_the_rate_settles_below_what_the_service_accepts() -> None:
    service = Service(rate=50, call_s=0.01)
    run(all_of(service, gates(2), 6_000))
    assert sorted(service.served) == list(range(6_000))
    half = service.begun[3_000]
    assert busiest([moment for moment in service.begun if moment >= half], 10) <= 50 * 10 * 1.1
    late = [moment for moment in service.turned_away if moment >= half]
    assert len(late) <= 0.03 * 3_000, "rejected occasionally, when it tries for more"
    assert service.begun[-1] - half <= 3_000 / 50 * 2, "and most of what the service accepts is used"


def test_a_call_gives_up_after_so_many_429s() -> None:
    (gate,) = gates(1, throttle_retries=2)
    tries: list[int] = []

    async def refused() -> None:
        tries.append(1)
        raise TooMany(0.1)

    with pytest.raises(TooMany):
        run(gate.call(refused))
    assert (len(tries), gate.in_flight, gate.waiting) == (3, 0, 0)


def test_other_errors_are_not_repeated() -> None:
    (gate,) = gates(1, max_concurrent=1)

    async def work() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="no"):
                await gate.call(fails)

    async def fails() -> None:
        raise ValueError("no")

    run(work())
    assert (gate.in_flight, gate.throttled) == (0, 0)


def test_the_queue_is_bounded() -> None:
    (gate,) = gates(1, max_concurrent=1, max_waiting=2)
    service = Service()
    with pytest.raises(ResourceFailed) as caught:
        run(all_of(service, [gate], 4))
    text = str(caught.value)
    assert "2 calls of this process wait for the connection 'c', which is the maximum" in text
    assert "raise max_waiting" in text


def test_a_cancelled_call_leaves_no_trace() -> None:
    service, (gate,) = Service(call_s=1.0), gates(1, max_concurrent=2)

    async def work() -> None:
        tasks = [asyncio.create_task(gate.call(lambda n=n: service.ask(n))) for n in range(6)]
        await asyncio.sleep(0.5)
        for number in (0, 2, 4):
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work())
    assert sorted(service.served) == [1, 3, 5]
    assert (gate.in_flight, gate.waiting, service.most) == (0, 0, 2)


def test_what_a_group_shows() -> None:
    service, (gate,) = Service(call_s=1.0), gates(1, max_concurrent=2)
    group = MetricGroup("agent")
    gate.publish(group.get_sub_group("model", "c"))

    async def work() -> dict[str, Any]:
        task = asyncio.create_task(all_of(service, [gate], 6))
        await asyncio.sleep(0.5)
        seen = group.snapshot()
        await task
        return seen

    assert run(work()) == {
        "model.c.waiting": 4,
        "model.c.in_flight": 2,
        "model.c.limit": 2,
        "model.c.rate": None,
        "model.c.throttled": 0,
        "model.c.throttled_seconds": 0.0,
    }
    assert group.snapshot()["model.c.waiting"] == 0
