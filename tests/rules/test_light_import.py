"""What a user imports first must not import heavy packages."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, name_of, parsed

SPARK = ("pyspark", "py4j", "pandas", "pyarrow", "numpy", "google.protobuf", "grpc")
VENDORS = ("openai", "anthropic", "ollama", "xllamacpp", "mcp", "httpx", "httpx2", "pydantic")
OPTIONAL = ("cel", "yaml", "jsonschema", "orjson", "psycopg")
HEAVY = SPARK + VENDORS + OPTIONAL
# Python's own, which nothing needs before a job runs.
NOT_YET = (
    "email",
    "http",
    "logging.config",
    "multiprocessing",
    "sqlite3",
    "unittest",
    "urllib.request",
    "xml",
)
# Nothing but the table of names is imported before a name is used.
ON_USE = (
    *("asyncio", "cloudpickle", "concurrent.futures", "dataclasses", "email", "inspect", "json", "socket"),
    *("ssl", "emberflow.agents.agent", "emberflow.errors", "emberflow.streams.environment"),
)
LAZY = ("emberflow", "emberflow.streams", "emberflow.agents")

CODE = "import sys; {statement}; print(*sorted(name for name in {unwanted!r} if name in sys.modules))"


def imported(statement: str, unwanted: tuple[str, ...]) -> list[str]:
    code = CODE.format(statement=statement, unwanted=unwanted)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("module", [*LAZY, "emberflow.cli.main"])
def test_import_is_light(module: str) -> None:
    assert imported(f"import {module}", HEAVY) == []


@pytest.mark.parametrize("module", LAZY)
def test_a_package_imports_its_names_when_they_are_used(module: str) -> None:
    assert imported(f"import {module}", ON_USE) == []


@pytest.mark.parametrize("module", LAZY)
def test_all_public_names_are_light(module: str) -> None:
    assert imported(f"from {module} import *", HEAVY + NOT_YET) == []


def test_a_program_with_an_agent_needs_no_streams_before_it_has_an_environment() -> None:
    statement = "from emberflow.agents import Agent, ChatMessage, Event, InputEvent, OutputEvent, RunnerContext, action"
    assert (
        imported(statement, (*HEAVY, *NOT_YET, "emberflow.streams.data_stream", "emberflow.plan.specs")) == []
    )


@pytest.mark.parametrize("module", LAZY)
def test_the_table_of_names_agrees_with_what_type_checkers_read(module: str) -> None:
    package = importlib.import_module(module)
    for name in package.__all__:
        found = getattr(package, name)
        declared = getattr(importlib.import_module(declared_homes(module)[name]), name)
        assert found is declared, f"{module}.{name}"
    assert set(package.__all__) <= set(dir(package))
    assert set(declared_homes(module)) == set(package.__all__)


def declared_homes(module: str) -> dict[str, str]:
    """The module of each name that `__init__.py` imports for type checkers."""
    path = PACKAGE.parent.joinpath(*module.split("."), "__init__.py")
    [block] = [node for node in parsed(path).body if isinstance(node, ast.If)]
    return {
        alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("module", LAZY)
def test_no_module_has_the_name_of_something_public(module: str) -> None:
    """Importing the module would hide the public name."""
    package = importlib.import_module(module)
    folder = PACKAGE.parent.joinpath(*module.split("."))
    files = [name_of(path).rpartition(".")[2] for path in [*folder.glob("*.py"), *folders(folder)]]
    assert set(files) & set(package.__all__) == set()


def folders(folder: Path) -> list[Path]:
    return [path / "__init__.py" for path in folder.iterdir() if (path / "__init__.py").exists()]


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    agents = importlib.import_module("emberflow.agents")
    with pytest.raises(AttributeError, match="no attribute 'InputEvnt'; did you mean 'InputEvent'"):
        _ = agents.InputEvnt
    with pytest.raises(ImportError, match="cannot import name 'InputEvnt'"):
        exec("from emberflow.agents import InputEvnt", {})
