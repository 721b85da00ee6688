"""Keys with equal 32-bit hashes have separate runs, calls and questions."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from emberflow.approvals.answering import give_answer, questions
from emberflow.events.key_groups import stable_hash
from emberflow.testing import STREAMING_HOSTS, Host, TestSource, on_every_host
from tests.support.small_agents import TwinKeysAgent, applied

TWINS: list[tuple[Any, Any]] = [("plumless", "buckeroo"), (1, 2**32)]


@on_every_host(hosts=STREAMING_HOSTS)
def test_keys_with_equal_hashes_get_separate_answers(host: Host, tmp_path: Path) -> None:
    assert all(stable_hash(first) == stable_hash(second) for first, second in TWINS)
    firsts, seconds = zip(*TWINS, strict=True)
    # The second of a pair makes its calls when those of the first are in the log.
    source = TestSource([*((key, 0.0) for key in firsts), *((key, 0.5) for key in seconds)], bounded=False)
    env = host.environment(checkpoint_dir=tmp_path)
    env.enable_checkpointing(20)
    results = applied(env, env.add_source(source), TwinKeysAgent()).execute_and_collect()
    assert not isinstance(results, list)
    guard = threading.Timer(host.timeout_s, results.close)
    guard.start()
    answered: dict[str, str] = {}
    person = threading.Thread(target=approve_firsts, args=(tmp_path, answered, host.timeout_s), daemon=True)
    person.start()
    found: list[Any] = []
    try:
        with results:
            while len(found) < 4:
                found.append(next(results))
    finally:
        guard.cancel()

    expected = [(key, f"for {key!r}", "approve") for key in firsts]
    expected += [(key, f"for {key!r}", "reject") for key in seconds]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(answered) == 4


def approve_firsts(directory: Path, answered: dict[str, str], patience_s: float) -> None:
    """A person who approves requests of the first key of each pair, and nothing else."""
    approved = {repr(key) for key, _ in TWINS}
    deadline = time.monotonic() + patience_s
    while len(answered) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
        for item in questions(directory):
            if item.id not in answered:
                answered[item.id] = item.key
                give_answer(directory, item.id, "approve" if item.key in approved else "reject")
