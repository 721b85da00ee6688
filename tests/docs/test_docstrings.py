"""What `help()` shows for public names: every one has a docstring, entry points have examples, and those run."""

from __future__ import annotations

import builtins
import contextlib
import io
import re
from pathlib import Path

import pytest

from emberflow import agents, errors, streams, testing
from tests.docs.docstrings import Example, examples, public

ENTRY_POINTS = (
    "StreamExecutionEnvironment",
    "DataStream",
    "DataStream.map",
    "DataStream.flat_map",
    "DataStream.key_by",
    "DataStream.process",
    "DataStream.execute_and_collect",
    "KeyedStream.process",
    "KeyedStream.reduce",
    "KeyedStream.window",
    "AsyncDataStream.unordered_wait",
    "ValueStateDescriptor",
    "OutputTag",
    "Types",
    "Agent",
    "AgentsExecutionEnvironment",
    "ConfigOption",
)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples_run(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERFLOW_QUIET", "1")
    monkeypatch.chdir(tmp_path)
    assert "assert " in example.text, "an example shows its result"
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(example.text, "example.py", "exec"), {"__name__": "__main__"})


def test_entry_points_have_examples() -> None:
    assert set(ENTRY_POINTS) <= {example.name for example in examples()}


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name, text in public().items() if not text] == []


def test_names_in_docstrings_exist() -> None:
    """Errors, classes and enums that a docstring names in backquotes."""
    known = {name for module in (agents, builtins, errors, streams, testing) for name in vars(module)}
    unknown = [
        f"{place} names {name}"
        for place, text in public().items()
        for name in re.findall(r"`([A-Z][a-z]+[A-Za-z]+)`", text)
        if name not in known
    ]
    assert unknown == []


def test_every_error_has_a_docstring() -> None:
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    classes = [item for item in classes if issubclass(item, errors.EmberflowError)]
    assert len(classes) > 30
    assert [item.__name__ for item in classes if not item.__doc__] == []
