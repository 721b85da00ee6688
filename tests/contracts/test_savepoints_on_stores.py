"""A savepoint contains the durable calls of runs in flight, wherever the job stores them, and the job that starts from it
finds them, wherever it stores its own (A15, C5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.cli.main import main
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.framing import parse_part
from emberflow.durable.stores.part_files import PartFiles
from emberflow.engines.job.savepoint_calls import PLACE, CallsCopy, noted_place
from emberflow.errors import CheckpointUnusable, CorruptData
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.writer import SavepointWriter
from emberflow.streams import JobClient
from emberflow.testing import LOCAL, LOCAL_2, Host, TestSource, literal_files, read_committed
from tests.support.call_stores.places import MakePlace
from tests.support.call_stores.servers import PASSWORD
from tests.support.recovery.billing import bill, billed
from tests.support.waiting import until

INPUTS = [("a", 1), ("b", 2), ("c", 3)]
NEEDS_ADDRESS = ("postgres", "bucket")
"""Stores whose address contains a password in these tests."""


class TwoBills(Agent):
    """Between its two calls a run waits until a file exists."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)

    @action(InputEvent)
    async def charge(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        first = await ctx.durable_execute_async(bill, self._folder, number)
        (Path(self._folder) / f"answered-{key}").touch()
        while not (Path(self._folder) / "go").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        second = await ctx.durable_execute_async(bill, self._folder, number + 1_000)
        ctx.send_event(OutputEvent((key, first, second)))


def address_of(kind: str, place_of: MakePlace) -> str:
    """The address of a call store; the empty one means the checkpoint directory."""
    if kind == "directory":
        return ""
    place = place_of(kind)
    return place.address + place.settings


def start(
    host: Host, folder: Path, name: str, address: str, *, savepoint: Path | None = None, ends: bool = False
) -> JobClient:
    options = {"call_store": address} if address else {}
    env = host.environment(checkpoint_dir=folder / name, options=options).enable_checkpointing(20)
    if savepoint is not None:
        env.set_savepoint(savepoint)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.from_source(TestSource(INPUTS, bounded=ends), source_name="inputs").uid("inputs")
    runs = agents_env.from_datastream(stream, lambda value: value[0]).apply(TwoBills(folder)).uid("bills")
    runs.to_datastream().sink_to(literal_files(folder / "output")).uid("files")
    return env.execute_async("bills")


@pytest.mark.parametrize("how", ["stop", "offline"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(*pair, id="-to-".join(pair))
        for pair in [
            *permutations(("directory", "postgres"), 2),
            ("postgres", "files"),
            ("files", "bucket"),
            ("bucket", "directory"),
        ]
    ],
)
def test_answers_are_copied_with_the_savepoint(
    before: str, after: str, how: str, place_of: MakePlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = address_of(before, place_of)
    job = start(LOCAL, tmp_path, "first", address)
    until(lambda: len(list(tmp_path.glob("answered-*"))) == len(INPUTS))
    path = Path(job.savepoint(tmp_path / "stopped", stop=True))
    if how == "offline":
        path = tmp_path / "made"
        command = ["savepoint", "create", str(tmp_path / "first"), str(path)]
        if before in NEEDS_ADDRESS:
            assert main(command) != 0
            assert "give the job's option call_store in full: --call-store ADDRESS" in capsys.readouterr().err
            assert PASSWORD not in (tmp_path / "first" / PLACE).read_text()
            command += ["--call-store", address]
        assert main(command) == 0
    (tmp_path / "go").touch()
    start(
        LOCAL_2, tmp_path, "second", address_of(after, place_of), savepoint=path, ends=True
    ).get_job_execution_result().result()

    assert sorted(read_committed(tmp_path / "output")) == [
        (key, number * 10, (number + 1_000) * 10) for key, number in INPUTS
    ]
    asked = sorted(item for item, _ in billed(tmp_path))
    assert asked == sorted(item for _, number in INPUTS for item in (number, number + 1_000))


def test_a_job_that_moves_its_log_back_needs_no_address(tmp_path: Path) -> None:
    """The recorded place of the log is that of the last start."""
    for name in ("elsewhere", ""):
        address = str(tmp_path / name) if name else ""
        job = start(LOCAL, tmp_path, "first", address)
        until(lambda: len(list(tmp_path.glob("answered-*"))) == len(INPUTS))
        job.cancel()
        assert (tmp_path / "first" / PLACE).exists() == bool(name)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        pytest.param("", "call-store.json is corrupted", id="damaged"),
        pytest.param('{"format": 1}', "call-store.json is corrupted", id="incomplete"),
        pytest.param(
            '{"format": 2, "call_store": "s3://calls", "whole": true}',
            "a newer version of emberflow",
            id="newer",
        ),
    ],
)
def test_a_place_that_only_the_job_knows(left: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / PLACE).write_text(left)
    with pytest.raises((CorruptData, CheckpointUnusable), match=expected):
        noted_place(tmp_path)


def test_the_stored_format_of_a_place(tmp_path: Path) -> None:
    address = "postgresql://ann@db.example/calls"
    (tmp_path / PLACE).write_text(json.dumps({"format": 1, "call_store": address, "whole": True}))
    assert noted_place(tmp_path) == address


# the copy


def writer_at(path: Path) -> SavepointWriter:
    return SavepointWriter(path, job_name="j", job_id="j", engine="local", max_parallelism=1, epoch=0)


def copied(path: Path) -> list[bytes]:
    return [record for _, data in SavepointReader(path).call_files() for record in parse_part(data).records]


class Listing(PartFiles):
    """Something happens between its first listing and the reading of the listed files."""

    def __init__(self, directory: Path, happens: Callable[[], object]) -> None:
        super().__init__(directory, "reader")
        self._to_happen = [happens]

    def parts(self) -> list[Path]:
        found = super().parts()
        if self._to_happen:
            self._to_happen.pop()()
        return found


class Disturbed(FileCallStore):
    def __init__(self, directory: Path, happens: Callable[[], object]) -> None:
        super().__init__(directory)
        self._files = Listing(directory, happens)


def test_a_part_that_is_replaced_while_it_is_copied_is_not_lost(tmp_path: Path) -> None:
    job = FileCallStore(tmp_path / "calls")
    job.append([b"1", b"2"], sync=True)
    store = Disturbed(tmp_path / "calls", lambda: job.replace([b"2"]))
    with CallsCopy(store) as copy, writer_at(tmp_path / "savepoint") as writer:
        copy.read()
        copy.into(writer)
    job.close()

    assert copied(tmp_path / "savepoint") == [b"2"]


def test_a_part_that_is_taken_over_while_it_is_copied_is_not_lost(tmp_path: Path) -> None:
    ended, heir = FileCallStore(tmp_path / "calls"), FileCallStore(tmp_path / "calls")
    ended.append([b"1"], sync=True)
    ended.close()

    def take_over() -> None:
        heir.replace([b"1"])
        heir.remove(ended.owner)

    with CallsCopy(Disturbed(tmp_path / "calls", take_over)) as copy, writer_at(tmp_path / "s") as writer:
        copy.read()
        copy.into(writer)
    heir.close()

    assert copied(tmp_path / "s") == [b"1"]


Steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.lists(st.binary(max_size=8), max_size=4)),
        st.tuples(st.just("replace"), st.integers(0, 2), st.integers(0, 3)),
        st.just(("copy",)),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(steps=Steps)
def test_a_copy_has_everything_that_is_in_the_store(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However often it is started again, while processes append and drop records."""
    folder = tmp_path_factory.mktemp("copy")
    stores = [FileCallStore(folder / "calls") for _ in range(3)]
    kept: list[list[bytes]] = [[], [], []]
    with CallsCopy(FileCallStore(folder / "calls")) as copy:
        for number, step in enumerate([*steps, ("copy",)]):
            match step:
                case ("append", owner, records):
                    stores[owner].append(records, sync=False)
                    kept[owner] += records
                case ("replace", owner, dropped):
                    kept[owner] = kept[owner][dropped:]
                    stores[owner].replace(kept[owner])
                case _:
                    with writer_at(folder / str(number)) as writer:
                        copy.read()
                        copy.into(writer)
                    found = copied(folder / str(number))
                    assert {record for records in kept for record in records} <= set(found)
    for store in stores:
        store.close()
