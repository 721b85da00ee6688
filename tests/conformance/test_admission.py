"""Limits of models, respected by all workers of a job together, against a real service on loopback (A30)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from emberflow.agents import AgentExecutionOptions, AgentsExecutionEnvironment
from emberflow.streams import CollectSink, DataStream, StreamExecutionEnvironment
from emberflow.testing import LOCAL_2, SPARK, Host, on_every_host
from tests.conformance.rate_limited_service import Asker, RateLimitedService, Request
from tests.support.small_agents import applied


def questions(env: StreamExecutionEnvironment, count: int, agent: Asker) -> DataStream:
    return applied(env, env.from_collection([(number,) for number in range(count)]), agent)


def answers(count: int) -> list[str]:
    return sorted(f"Q{number}" for number in range(count))


def busiest(requests: Sequence[Request], seconds: float) -> int:
    """The maximum number of requests in any period of this length."""
    moments = sorted(item.begun_s for item in requests)
    return max(sum(start <= other < start + seconds for other in moments) for start in moments)


@on_every_host(hosts=[LOCAL_2, SPARK])
def test_all_workers_together_stay_within_requests_per_minute(host: Host) -> None:
    rate, count = 20, 100
    with RateLimitedService() as service:
        agent = Asker(service.port, requests_per_minute=rate * 60)
        assert sorted(host.run(lambda env: questions(env, count, agent))) == answers(count)
    assert len(service.taken) == count
    assert busiest(service.taken, 2.0) <= 2 * rate * 1.1 + 10, "a burst of a quarter second in each worker"
    begun = [item.begun_s for item in service.taken]
    assert count / (max(begun) - min(begun)) <= rate * 1.1
    if host.engine == "spark":
        assert len({item.process for item in service.taken}) == 2, "both workers made calls"


@pytest.mark.slow
@on_every_host(hosts=[LOCAL_2, SPARK], nightly=[SPARK])
def test_a_service_that_says_too_many_is_called_less_often(host: Host) -> None:
    rate, count = 40, 240
    # A small bucket: requests that a service has saved up while it was idle may be made as well.
    with RateLimitedService(rate, burst=10) as service:
        agent = Asker(service.port)
        assert sorted(host.run(lambda env: questions(env, count, agent))) == answers(count)
    assert sorted(item.question for item in service.taken) == sorted(f"q{n}" for n in range(count))
    assert service.turned_away, "the limit was not known in advance"
    later = repeated(service.requests)
    assert busiest(later, 2.0) <= 2 * rate * 1.1 + 10
    assert sum(not item.taken for item in later) <= 0.15 * count


def repeated(requests: Sequence[Request]) -> list[Request]:
    """All but the first request of each question: those may have been made before anything was known about the limit, on a
    busy machine also long after the first 429."""
    known, found = set[str](), list[Request]()
    for item in sorted(requests, key=lambda item: item.begun_s):
        if item.question in known:
            found.append(item)
        known.add(item.question)
    return found


@on_every_host(hosts=[LOCAL_2])
def test_calls_in_flight_of_all_tasks_stay_within_max_concurrent(host: Host) -> None:
    with RateLimitedService(call_s=0.02) as service:
        agent = Asker(service.port, max_concurrent=3)
        assert sorted(host.run(lambda env: questions(env, 60, agent))) == answers(60)
    assert service.most_in_flight == 3


@on_every_host(hosts=[SPARK])
def test_a_source_slows_down_while_agents_are_at_their_limit(host: Host) -> None:
    """Calls take longer than a micro-batch waits, so runs are parked; inputs beyond the limit stay in the source."""
    most, count, found = 5, 40, list[str]()
    with RateLimitedService(call_s=1.0) as service:
        env = host.environment(options={"deadline_ms": 200})
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentExecutionOptions.MAX_IN_FLIGHT, most)
        numbers = env.from_collection([(number,) for number in range(count)])
        stream = agents_env.from_datastream(numbers, lambda value: value[0]).apply(Asker(service.port))
        stream.to_datastream().sink_to(CollectSink(lambda batch: found.extend(batch.values)))
        metrics = env.execute("full").metrics
    assert sorted(found) == answers(count)
    assert len(service.taken) == count, "no call is made twice"
    assert service.most_in_flight <= most * host.parallelism
    assert metrics.source_back_pressured_ms > 1_000, (
        "four rounds of a second each, all but the last held back"
    )
    assert 0 < metrics.back_pressured_ratio <= 1
