"""Every example runs on the local engine and prints what a reader expects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "streams"


def run(name: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, "EMBERFLOW_ENGINE": "local", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_example_is_tested() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == [
        "enrich_async.py",
        "sensor_windows.py",
        "word_count.py",
    ]


def test_word_count() -> None:
    printed = run("word_count.py")
    assert printed[:3] == ["     8  the", "     4  to", "     2  and"]
    assert len(printed) == 10


def test_word_count_of_given_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("two Two\n", encoding="utf-8")
    assert run("word_count.py", str(tmp_path)) == ["     3  two", "     1  one"]


def test_sensor_windows() -> None:
    assert sorted(run("sensor_windows.py")) == [
        "minute 0  cellar  12.25 °C",
        "minute 0  roof    21.50 °C",
        "minute 1  cellar  12.40 °C",
        "minute 1  roof    25.00 °C",
        "minute 2  cellar  12.60 °C",
        "minute 2  roof    27.00 °C",
        "too late  roof    22.50 °C of second 42",
        "too late  roof    23.00 °C of second 58",
    ]


def test_enrich_async() -> None:
    *printed, took = run("enrich_async.py")
    assert printed == [
        "order 0: coffee   9.50",
        "order 1: tea      6.00",
        "order 2: mug      12.00",
        "order 3: samovar  no such product",
        "… 40 orders for 275.00, calls of 4 s in all",
    ]
    assert took.startswith("took ")
