"""What names and records can do: they reach no file outside of the job's directories, and run no code."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.connectors.files.commit_ledger import CommitLedger
from emberflow.dead_letters.letter_files import letters_folder
from emberflow.engines.job.limit_ledger import FileLedger, FileLedgers
from emberflow.engines.local.checkpointing.checkpoints import FILES_FOLDER, FileCheckpoints, read_checkpoint
from emberflow.errors import EmberflowError
from emberflow.events.fence import FOLDER, Fence
from emberflow.observability.event_file import safe_name
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.streams import (
    Encoder,
    FileSink,
    FileSource,
    StreamExecutionEnvironment,
    StreamFormat,
    WatermarkStrategy,
)

NAMES = [
    "..",
    ".",
    "",
    "../../outside",
    "/etc/outside",
    "a/../../outside",
    "a\\..\\outside",
    "line\nfeed",
    "nul\0byte",
    "\x1b[31m",
    "\u202eright",
    "-rf",
    "x" * 5_000,
    "漢" * 500,
    "\ud800half",
    "~root",
    "$(touch outside)",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_become_files_of_their_own_directory(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ledger, _ = FileLedgers(home / "limits").of(name, ModelLimits())
    assert isinstance(ledger, FileLedger)
    ledger.change(lambda state: None)
    ledger.close()
    folders = {
        home / "events": home / "events" / safe_name(name),
        home / "dead-letters": Path(letters_folder(str(home), name)),
        home / ".emberflow": CommitLedger(str(home), "job", name).staging.parent,
    }
    for parent, folder in folders.items():
        folder.mkdir(parents=True)
        assert folder.resolve().parent == parent
        assert folder.name.isascii()
        assert folder.name.isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert len(list((home / "limits").iterdir())) == 1


class Refusing(Agent):
    @action(InputEvent)
    def act(self, event: InputEvent, ctx: RunnerContext) -> None:
        if event.input.get("fail"):
            raise ValueError("refused")
        ctx.send_event(OutputEvent(event.input))


@pytest.mark.parametrize("key", ["../../outside", "/etc/outside", "\0", "\ud800", "\x1b[2J", ""], ids=ascii)
def test_keys_and_values_stay_inside(key: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=home / "checkpoint"
    )
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    config = agents_env.get_config()
    config.set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    config.set(AgentConfigOptions.BASE_LOG_DIR, str(home / "events"))
    stream = env.from_collection([{"key": key, "fail": True}, {"key": key}])
    agents_env.from_datastream(stream, lambda value: value["key"]).apply(Refusing()).to_datastream().print()
    env.execute()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert sorted(path.name for path in home.iterdir()) == ["checkpoint", "events"]
    assert list(home.glob("checkpoint/dead-letters/Refusing/letters/*.jsonl"))


@pytest.mark.parametrize("bucket", ["../outside", "/etc/outside", "a/../../outside", ".emberflow/x", "nul\0"])
def test_a_record_cannot_choose_a_bucket_outside_the_base_path(bucket: str, tmp_path: Path) -> None:
    sink = (
        FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
        .with_bucket_assigner(lambda value: value)
        .build()
    )
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([bucket]).sink_to(sink)
    with pytest.raises(EmberflowError, match="bucket"):
        env.execute()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class Bomb:
    """What a pickle in data would do."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._mark),)


def run(env: StreamExecutionEnvironment, stream: Any) -> None:
    stream.key_by(lambda value: value).reduce(lambda first, second: first).print()
    try:
        env.execute()
    except EmberflowError:
        pass  # For example, a line that is not JSON.


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_records_are_never_unpickled(protocol: int, tmp_path: Path) -> None:
    """Neither the contents of files, nor values that look like what the job itself stores."""
    mark = tmp_path / "ran"
    bomb = pickle.dumps(Bomb(mark), protocol)
    path = tmp_path / "data"
    path.write_bytes(bomb.replace(b"\n", b" ") + b"\n")
    for format in (StreamFormat.text_line_format("latin-1"), StreamFormat.json_lines(), StreamFormat.csv()):
        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        source = FileSource.for_record_stream_format(format, str(path)).build()
        run(env, env.from_source(source, WatermarkStrategy.no_watermarks(), "files").map(str))
    # All first bytes that a stored value can have.
    values = [bomb, *(bytes([first]) + bomb for first in range(256))]
    for backend in ("memory", "sqlite"):
        for _ in range(2):
            env = StreamExecutionEnvironment.get_execution_environment(
                engine="local", checkpoint_dir=tmp_path / backend
            )
            env.set_option("state_backend", backend)
            run(env, env.from_collection(values))
    assert not mark.exists()
    pickle.loads(bomb)
    assert mark.exists(), "the payload would run if it were unpickled"


def test_anyone_who_can_write_to_the_checkpoint_directory_can_run_code(tmp_path: Path) -> None:
    """The reason for the modes and the warning: state is pickled, and a checksum does not authenticate its author."""
    directory, mark = tmp_path / "checkpoint", tmp_path / "ran"

    def start() -> None:
        env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=directory)
        run(env, env.from_collection([1]))

    start()
    newest = max((directory / FILES_FOLDER).glob("chk-*.ckpt"))
    checkpoint, _ = read_checkpoint(newest)
    store = FileCheckpoints(directory)
    store.own(Fence(str(directory), max(int(path.stem) for path in (directory / FOLDER).glob("*.json"))))
    store.save(replace(checkpoint, epoch=checkpoint.epoch + 1, sources={"planted": Bomb(mark)}), {})
    assert not mark.exists()
    start()
    assert mark.exists()
