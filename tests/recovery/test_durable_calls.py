"""A finished call is not made again, whatever happens afterwards (A14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.agents import AgentsExecutionEnvironment
from emberflow.errors import ActionFailed
from emberflow.testing import (
    LOCAL,
    LOCAL_SQLITE,
    SPARK,
    Host,
    literal_files,
    on_every_host,
    read_committed,
)
from tests.support.recovery.billing import Billing, PlainBilling, billed

INPUTS = [("a", number) for number in range(1, 11)]
OUTPUTS = [("a", number * 10, (number + 1_000) * 10) for _, number in INPUTS]


def run(host: Host, agent: Billing, folder: Path) -> None:
    env = host.environment(checkpoint_dir=folder / "checkpoints")
    env.enable_checkpointing(20)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    outputs = agents_env.from_datastream(env.from_collection(INPUTS), lambda value: value[0]).apply(agent)
    outputs.to_datastream().sink_to(literal_files(folder / "output")).uid("files")
    env.execute("billing")


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE, SPARK])
@pytest.mark.parametrize("kind", [Billing, PlainBilling], ids=["waiting", "plain"])
def test_a_finished_call_is_not_made_again(host: Host, kind: type[Billing], tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match="a crash between two calls"):
        run(host, kind(tmp_path, "raise"), tmp_path)
    assert (5, billed(tmp_path)[-1][1]) == billed(tmp_path)[-1]

    run(host, kind(tmp_path, "raise"), tmp_path)

    assert read_committed(tmp_path / "output") == OUTPUTS
    calls = billed(tmp_path)
    assert [item for item, _ in calls] == [item for _, number in INPUTS for item in (number, number + 1_000)]
    assert len({key for _, key in calls}) == len(calls)


@on_every_host(hosts=[SPARK])
def test_a_killed_worker_does_not_repeat_paid_calls(host: Host, tmp_path: Path) -> None:
    run(host, Billing(tmp_path, "kill"), tmp_path)

    assert (tmp_path / "died").exists()
    assert read_committed(tmp_path / "output") == OUTPUTS
    assert sorted(item for item, _ in billed(tmp_path)) == sorted(
        item for _, number in INPUTS for item in (number, number + 1_000)
    )
