"""Sizes, leftovers and exported names."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT, modules, name_of, parsed, short, text_files

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
WHOLE = {"src/emberflow/errors.py": "the exception tree is read as a whole"}
"""Longer files, and why they are not split."""

# Written in two parts, so that this file does not find itself.
LEFTOVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(?:ho" r"me|Us" r"ers|ro" r"ot|wo" r"rk)/[\w.]")
PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[0-9][\w.+!]*(?: ; [^/:]+)?")


def test_files_stay_readable() -> None:
    lengths = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {
        name: length for name, length in lengths.items() if length > LONGEST_FILE and name not in WHOLE
    } == {}


def test_functions_stay_readable() -> None:
    lengths = {
        f"{short(path)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


@pytest.mark.parametrize(
    ("what", "pattern"), [("an unfinished note", LEFTOVER), ("a path of one machine", MACHINE_PATH)]
)
def test_nothing_is_left_behind(what: str, pattern: re.Pattern[str]) -> None:
    found = [
        f"{short(path)}:{number} holds {what}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=short)
def test_pins_are_exact_and_name_no_index(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if not PIN.fullmatch(line)] == []


def declares_all(path: Path) -> bool:
    targets = [
        target
        for node in parsed(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def test_every_exported_name_exists_once() -> None:
    wrong: list[str] = []
    for path in filter(declares_all, modules()):
        module = importlib.import_module(name_of(path))
        names: list[str] = list(module.__all__)
        wrong += [
            f"{short(path)}: __all__ lists {name} twice" for name in set(names) if names.count(name) > 1
        ]
        wrong += [f"{short(path)}: there is no {name}" for name in names if not hasattr(module, name)]
    assert not wrong, "\n".join(wrong)
