"""What the local engine's stores do when stored data is damaged, old, or of a class that no longer exists."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import types
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.job.offline_savepoint import create_savepoint
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.errors import ClassMissing, CorruptData
from emberflow.events import codecs
from emberflow.events.codecs import encode
from emberflow.events.key_groups import stable_hash
from emberflow.operators.group_layout import GroupLayout
from emberflow.streams import KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from emberflow.testing import LOCAL, LOCAL_SQLITE, Host

BOTH = (LOCAL, LOCAL_SQLITE)


def build(env: Any) -> Any:
    return env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda item: item[0]).sum(1)


@pytest.mark.parametrize("host", BOTH, ids=str)
@pytest.mark.parametrize("what", ["deleted", "emptied", "older"])
def test_a_store_that_lost_its_newest_checkpoint_does_not_use_an_older_one(
    host: Host, what: str, tmp_path: Path
) -> None:
    job, before = tmp_path / "job", tmp_path / "before"
    host.run(build, checkpoint_dir=job)
    shutil.copytree(job, before)
    host.run(build, checkpoint_dir=job)
    for path in [*(job / "local").glob("*"), *job.glob("state.db*")]:
        if what == "emptied":
            path.write_bytes(b"")
        else:
            path.unlink()
    if what == "older":
        for path in [*before.glob("local/*"), *before.glob("state.db*")]:
            shutil.copy(path, job / path.relative_to(before))
    for _ in range(2):
        with pytest.raises(CorruptData) as caught:
            host.run(build, checkpoint_dir=job)
        assert str(job / "state.db") in caught.value.message or str(job / "local") in caught.value.message


def filled(directory: Path) -> Path:
    LOCAL_SQLITE.run(
        lambda env: (
            env.from_collection([(str(number), 1) for number in range(300)])
            .key_by(lambda item: item[0])
            .sum(1)
        ),
        checkpoint_dir=directory,
    )
    return directory / "state.db"


def test_no_flipped_byte_of_a_database_goes_unnoticed(tmp_path: Path) -> None:
    path = filled(tmp_path)
    whole = path.read_bytes()
    unnoticed: list[int] = []
    with closing(sqlite3.connect(path)) as db:
        expected = list(db.execute("select * from entries"))
    for at in range(0, len(whole), 97):
        copy = tmp_path / str(at)
        copy.mkdir()
        (copy / "state.db").write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            with closing(SqliteCheckpoints(copy)) as store:
                store.load()
        except CorruptData:
            continue
        unnoticed.append(at)
        with closing(sqlite3.connect(copy / "state.db")) as db:
            assert list(db.execute("select * from entries")) == expected, f"byte {at}"
    assert len(unnoticed) < len(range(0, len(whole), 97)), "free space and unused fields only"


@pytest.mark.parametrize(
    "statement",
    [
        "delete from entries where hash = (select min(hash) from entries)",
        "update entries set hash = hash + 1 where hash = (select max(hash) from entries)",
        "update entries set data = zeroblob(length(data)) where hash = (select max(hash) from entries)",
        "delete from sums",
        "update checkpoint set data = zeroblob(9)",
    ],
)
def test_rows_that_do_not_add_up_are_an_error(statement: str, tmp_path: Path) -> None:
    path = filled(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(CorruptData, match=rf"{path} is corrupted"):
        filled(tmp_path)


def test_a_database_of_the_previous_version_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("create table checkpoint(id integer primary key, data blob)")
        db.execute(
            "create table entries(uid text, hash integer, data blob, primary key(uid, hash)) without rowid"
        )
        db.execute("create table pages(number integer primary key, data blob)")
        db.execute("insert into checkpoint values(1, ?)", (encode(Checkpoint(epoch=7)),))
        db.execute("insert into entries values('sum', ?, ?)", (stable_hash("k"), encode({"k": {"x": 5}})))
        db.execute("insert into pages values(3, ?)", (b"page",))
    db.close()
    for _ in range(2):
        store = SqliteCheckpoints(tmp_path)
        found, loader, pages = store.load(), store.loader("sum"), store.pages()
        assert found is not None
        assert loader is not None
        assert pages is not None
        assert found.epoch == 7
        assert loader.load("k") == {"x": 5}
        assert pages.get_page(3) == b"page"
        store.close()


# a class that no longer exists


class Keeps(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("kept"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        module = sys.modules.get("moved_away")
        if module is not None:
            self._state.update([module.Thing()])
        yield value


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that inspect savepoints accept unknown classes for the rest of their process; tests share one."""
    monkeypatch.setattr(codecs, "_missing_classes", None)


@pytest.fixture
def thing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("moved_away")
    module.Thing = type("Thing", (), {"__module__": "moved_away"})  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "moved_away", module)


def keeping(env: Any, uid: str = "keeper") -> Any:
    return env.from_collection(["a"]).uid("in").key_by(str).process(Keeps()).uid(uid)


@pytest.mark.parametrize("host", BOTH, ids=str)
@pytest.mark.usefixtures("thing")
def test_a_missing_class_is_named_with_step_and_key(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.run(keeping, checkpoint_dir=tmp_path / "job")
    monkeypatch.delitem(sys.modules, "moved_away")

    def read() -> None:
        if host is LOCAL:
            host.run(keeping, checkpoint_dir=tmp_path / "job")
        with closing(SqliteCheckpoints(tmp_path / "job")) as store:
            # Rows are read when their key occurs.
            assert store.load() is not None
            store.loader("keeper").load("a")

    with pytest.raises(ClassMissing) as caught:
        read()
    text = str(caught.value)
    assert (
        "step 'keeper': the state 'kept' of key 'a' needs moved_away.Thing, which cannot be imported" in text
    )
    assert "restore moved_away.Thing" in text
    assert "allow_non_restored_state" in text


@pytest.mark.usefixtures("thing")
def test_the_state_of_a_missing_class_can_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LOCAL.run(keeping, checkpoint_dir=tmp_path / "job")
    monkeypatch.delitem(sys.modules, "moved_away")
    from emberflow.savepoints.stand_ins import allow_unknown_classes

    monkeypatch.setattr(codecs, "_missing_classes", None)
    allow_unknown_classes()
    create_savepoint(str(tmp_path / "job"), str(tmp_path / "savepoint"))
    monkeypatch.setattr(codecs, "_missing_classes", None)
    sys.modules.pop("moved_away", None)

    def start(env: Any) -> Any:
        env.set_savepoint(str(tmp_path / "savepoint"), allow_non_restored_state=True)
        return keeping(env, "another")

    assert LOCAL.run(start, checkpoint_dir=tmp_path / "new") == []


@pytest.mark.usefixtures("thing")
def test_a_missing_class_in_the_state_of_a_key_group(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = sys.modules["moved_away"].Thing()
    hot = encode((2, None, False, None, {"k": {"x": 1, "y": {"in": [thing]}}}, [], 256))
    monkeypatch.delitem(sys.modules, "moved_away")
    with pytest.raises(ClassMissing, match=r"step 'score': the state 'y' of key 'k' needs moved_away\.Thing"):
        GroupLayout(hot, {}, "score")  # pyright: ignore[reportArgumentType]
    with pytest.raises(CorruptData, match="the state of step 'score' cannot be decoded"):
        GroupLayout(hot[:-9], {}, "score")  # pyright: ignore[reportArgumentType]


class Rejected(Exception):
    """Is pickled with the message as its only argument."""

    def __init__(self, order: int, reason: str) -> None:
        super().__init__(f"order {order}: {reason}")


class Refusals(KeyedProcessFunction[int, int, int]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: int, ctx: Any) -> None:
        self.last.update(Rejected(value, "sold out"))


def test_a_value_that_cannot_be_read_back_is_not_mistaken_for_a_damaged_file(tmp_path: Path) -> None:
    def refusing(env: Any) -> Any:
        return env.from_collection([1]).key_by(lambda value: value).process(Refusals()).name("refuse")

    LOCAL.run(refusing, checkpoint_dir=tmp_path)
    with pytest.raises(CorruptData, match=r"'reason'(.|\n)*if the cause is raised by a class of yours"):
        LOCAL.run(refusing, checkpoint_dir=tmp_path)
