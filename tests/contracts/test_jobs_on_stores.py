"""A job whose durable calls are kept in a database or a bucket: a finished call is not made again (A14, A15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.agents import AgentsExecutionEnvironment
from emberflow.errors import ActionFailed
from emberflow.testing import LOCAL_SQLITE, SPARK, Host, literal_files, on_every_host, read_committed
from tests.contracts.parked_calls import FAILING, ParkedCalls
from tests.support.call_stores.places import WITH_SERVER, MakePlace
from tests.support.recovery.billing import Billing, billed
from tests.support.recovery.slow_calls import lines

INPUTS = [("a", number) for number in range(1, 11)]
OUTPUTS = [("a", number * 10, (number + 1_000) * 10) for _, number in INPUTS]


def run(host: Host, folder: Path, address: str) -> None:
    env = host.environment(checkpoint_dir=folder / "checkpoints", options={"call_store": address})
    env.enable_checkpointing(20)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    inputs = agents_env.from_datastream(env.from_collection(INPUTS), lambda value: value[0])
    inputs.apply(Billing(folder, "raise")).to_datastream().sink_to(literal_files(folder / "output")).uid(
        "files"
    )
    env.execute("billing")


def check(host: Host, folder: Path, address: str) -> None:
    with pytest.raises(ActionFailed, match="a crash between two calls"):
        run(host, folder, address)
    run(host, folder, address)

    assert read_committed(folder / "output") == OUTPUTS
    assert [item for item, _ in billed(folder)] == [
        item for _, number in INPUTS for item in (number, number + 1_000)
    ]
    assert not list((folder / "checkpoints").rglob("*.calls"))


@on_every_host(hosts=[LOCAL_SQLITE])
@pytest.mark.parametrize("kind", WITH_SERVER)
def test_a_finished_call_is_found_in_the_store(
    host: Host, kind: str, place_of: MakePlace, tmp_path: Path
) -> None:
    place = place_of(kind)
    check(host, tmp_path, place.address + place.settings)


@on_every_host(hosts=[SPARK])
@pytest.mark.parametrize("kind", ["postgres"])
def test_calls_that_outlast_a_micro_batch_are_found_in_the_store(
    host: Host, kind: str, place_of: MakePlace, tmp_path: Path
) -> None:
    place = place_of(kind)
    inputs = [
        (FAILING, 0.1),
        ("slow", 2.0),
        ("slower", 3.0),
        *((f"quick{number}", 0.02) for number in range(8)),
    ]

    def run() -> None:
        options = {"call_store": place.address + place.settings}
        env = host.environment(checkpoint_dir=tmp_path / "checkpoints", options=options)
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        stream = agents_env.from_datastream(env.from_collection(inputs), lambda value: value[0])
        outputs = stream.apply(ParkedCalls(tmp_path, len(inputs))).to_datastream()
        outputs.sink_to(literal_files(tmp_path / "output")).uid("files")
        env.execute("parked calls")

    with pytest.raises(ActionFailed, match="a crash"):
        run()
    assert (tmp_path / "checkpoints" / "spark" / "commits" / "0").exists(), "something was parked"
    run()

    assert sorted(read_committed(tmp_path / "output")) == sorted(
        (key, f"{key} answered") for key, _ in inputs
    )
    assert sorted(lines(tmp_path, "begun")) == sorted(key for key, _ in inputs)
    assert not list((tmp_path / "checkpoints").rglob("*.calls"))
