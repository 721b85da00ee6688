"""State with the program's own classes is processed by commands that do not know them, in a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CLASSES = """
import enum
from collections import namedtuple
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int

@dataclass
class Order:
    name: str
    points: list

class Colour(enum.Enum):
    RED = 1

Pair = namedtuple("Pair", "a b")

class Bag(dict):
    class Inner(list):
        pass

VALUES = {
    "order": Order("ann", [Point(1, 2), Point(3, 4)]),
    "colour": Colour.RED,
    "pair": Pair(1, Point(0, 0)),
    "bag": Bag(a=1),
    "inner": Bag.Inner([1, 2]),
}
"""

WRITE = """
import sys
from own.shapes import VALUES
from emberflow.savepoints.writer import SavepointWriter
with SavepointWriter(sys.argv[1], job_name="j", job_id="i", engine="local", max_parallelism=64, epoch=1) as writer:
    step = writer.step("step", "agent")
    step.entry("ann", VALUES)
    step.entry("bob", {"count": 1})
"""

COMPARE = """
import sys
from own.shapes import VALUES
from emberflow.savepoints import Savepoint
step = Savepoint.read(sys.argv[1]).step("step")
assert step.get("ann") == {**VALUES, "count": 5}, step.get("ann")
assert type(step.get("ann")["inner"]) is type(VALUES["inner"])
"""

EDIT = """
import sys
from emberflow.savepoints import Savepoint
from emberflow.savepoints.stand_ins import allow_unknown_classes
allow_unknown_classes()
savepoint = Savepoint.read(sys.argv[1])
step = savepoint.step("step")
step.update("ann", count=5)
assert "Order" in repr(step.get("ann")["order"])
savepoint.write(sys.argv[2])
"""


def python(code: str, *arguments: Path, knows: Path | None = None) -> str:
    paths = [*([str(knows)] if knows else []), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths!r}\n{code}", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_savepoint_is_changed_without_its_classes(tmp_path: Path) -> None:
    (tmp_path / "code" / "own").mkdir(parents=True)
    (tmp_path / "code" / "own" / "shapes.py").write_text(CLASSES)
    python(WRITE, tmp_path / "s", knows=tmp_path / "code")
    python(EDIT, tmp_path / "s", tmp_path / "changed")
    python(COMPARE, tmp_path / "changed", knows=tmp_path / "code")


KEYED = """
import sys
from own.shapes import Point
from emberflow.streams import CollectSink, StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=sys.argv[1])
stream = env.from_collection([(Point(1, 2), 1)]).uid("pairs")
stream.key_by(lambda pair: pair[0]).sum(1).uid("sums").sink_to(CollectSink(lambda batch: None)).uid("out")
env.execute()
"""

CREATE = """
import sys
from emberflow.cli.main import main
sys.exit(0 if main(["savepoint", "create", sys.argv[1], sys.argv[2]]) else 1)
"""


def test_keys_of_an_unknown_class_are_rejected_by_name(tmp_path: Path) -> None:
    """Only the class can determine their key group."""
    (tmp_path / "code" / "own").mkdir(parents=True)
    (tmp_path / "code" / "own" / "shapes.py").write_text(CLASSES)
    python(KEYED, tmp_path / "c", knows=tmp_path / "code")
    python(CREATE, tmp_path / "c", tmp_path / "s")
    assert not (tmp_path / "s").exists()
