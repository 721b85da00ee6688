"""Guards on every host: the same attempts, fallbacks, errors, budgets and letters, with crashes in between."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

from emberflow.approvals.answering import give_answer, questions
from emberflow.dead_letters.redrive import letters, redrive
from emberflow.testing import SPARK_BATCH, STREAMING_HOSTS, Crash, Host, TestSource, on_every_host, per_key
from tests.support.guarded_agents import asking_two_models, guarded, waiting_for_people, with_letters

INPUTS = [(random.Random(13 * number).choice("abcd"), number) for number in range(48)]


@on_every_host(nightly=[SPARK_BATCH])
def test_guards_have_the_same_results_on_every_host_and_across_a_crash(host: Host, tmp_path: Path) -> None:
    source = TestSource([*INPUTS[:20], Crash(), *INPUTS[20:]])

    run = host.run_to_files(lambda env: with_letters(env, env.add_source(source)), tmp_path)

    outputs, reminders = guarded(INPUTS)
    assert run.starts == 2
    assert sorted(value for value in run.values if value[2] == "reminded") == sorted(reminders)
    found = [value for value in run.values if value[2] not in ("reminded", "letter")]
    assert per_key(found) == per_key([value for value in outputs if value[2] != "letter"])
    assert sorted(value for value in run.values if value[2] == "letter") == sorted(
        value for value in outputs if value[2] == "letter"
    )
    assert {value[2] for value in run.values} == {"done", "sorry", "repaired", "letter", "reminded"}


@on_every_host
def test_a_fallback_model_answers_if_the_first_one_fails_or_throttles(host: Host) -> None:
    found = host.run(lambda env: asking_two_models(env, env.from_collection([1, 2])))
    assert sorted(found) == [(1, "by the small one"), (2, "by the small one")]


@on_every_host(hosts=STREAMING_HOSTS)
def test_approvals_timers_and_redriven_letters_on_an_idle_job(host: Host, tmp_path: Path) -> None:
    """The input becomes idle; everything pending happens nevertheless."""
    repaired = tmp_path / "repaired"
    inputs = [("ask", ""), ("remind", ""), ("broken", str(repaired))]
    source = TestSource(inputs, bounded=False)
    env = host.environment(checkpoint_dir=tmp_path)
    env.enable_checkpointing(20)
    results = waiting_for_people(env, env.add_source(source)).execute_and_collect()
    assert not isinstance(results, list)
    guard = threading.Timer(host.timeout_s, results.close)
    guard.start()
    person = threading.Thread(target=help_along, args=(tmp_path, repaired, host.timeout_s), daemon=True)
    person.start()
    found: list[Any] = []
    try:
        with results:
            while len(found) < 3:
                found.append(next(results))
    finally:
        guard.cancel()
    assert sorted(found) == [("answered", "approve", "fine"), ("reminded", "1"), ("repaired", "2")]
    assert questions(tmp_path) == []
    assert [letter.redriven for letter in letters(tmp_path)] == [True]


def help_along(directory: Path, repaired: Path, patience_s: float) -> None:
    """A person at the command line."""
    answered = redriven = False
    deadline = time.monotonic() + patience_s
    while not (answered and redriven) and time.monotonic() < deadline:
        time.sleep(0.1)
        waiting = [] if answered else questions(directory)
        if waiting:
            give_answer(directory, waiting[0].id, "approve", note="fine")
            answered = True
        dead = [] if redriven else letters(directory)
        if dead:
            repaired.touch()
            redriven = len(redrive(dead)) == 1
