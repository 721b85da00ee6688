"""What the documentation refers to exists: links, files, functions, tests, commands, error codes."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest

from emberflow import errors
from emberflow.cli.main import COMMANDS, main
from tests.support.markdown import ROOT, anchors, documents, fences, links, name_of

PACKAGE = ROOT / "src" / "emberflow"
PLACE = re.compile(r"`([\w/]+\.py):([A-Za-z_][\w.]*)`")
SOURCE_FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")
ROW = re.compile(r"^\| ([ABC]\d+) \|(.+)\|$", re.MULTILINE)
ROWS = [f"A{n}" for n in range(1, 35)] + [f"B{n}" for n in range(1, 22)] + [f"C{n}" for n in range(1, 14)]
# Rows that were added later.
ROWS += ["A35", "A36", "A37", "A38", "A39", "A42"]
STATUSES = ("done", "partial", "later")

each_document = pytest.mark.parametrize("path", documents(), ids=name_of)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Functions, classes, methods and module-level names, dotted."""

    def walk(body: list[ast.stmt], prefix: str) -> list[str]:
        found: list[str] = []
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found += [prefix + node.name, *walk(node.body, f"{prefix}{node.name}.")]
            elif isinstance(node, ast.Assign):
                found += [prefix + target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.append(prefix + node.target.id)
        return found

    return frozenset(walk(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def file_of(name: str) -> Path | None:
    """A path below the repository or below the package."""
    return next((root / name for root in (PACKAGE, ROOT) if (root / name).is_file()), None)


@each_document
def test_link_targets_exist(path: Path) -> None:
    wrong: list[str] = []
    for link in links(path):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


@each_document
def test_places_in_the_code_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wrong: list[str] = []
    for name, place in PLACE.findall(text):
        file = file_of(name)
        if file is None or place not in names_in(file):
            wrong.append(f"{name}:{place}")
    wrong += [name for name in SOURCE_FILE.findall(text) if "/" in name and file_of(name) is None]
    assert wrong == []


def test_the_journey_names_many_places() -> None:
    """A guard for the test above: if the pattern no longer matched, it would show nothing."""
    assert len(PLACE.findall((ROOT / "docs" / "data-flow.md").read_text(encoding="utf-8"))) > 60


@each_document
def test_named_tests_exist(path: Path) -> None:
    wrong: list[str] = []
    for name, place in TEST.findall(path.read_text(encoding="utf-8")):
        file = file_of(name)
        wanted = place.removeprefix("::").replace("::", ".")
        if file is None or (wanted and wanted not in names_in(file)):
            wrong.append(name + place)
    assert wrong == []


def test_every_feature_has_its_row() -> None:
    rows = dict(ROW.findall((ROOT / "docs" / "features.md").read_text(encoding="utf-8")))
    assert sorted(rows) == sorted(ROWS)
    for row, cells in rows.items():
        feature, status, engines, tests = [cell.strip() for cell in cells.split("|")]
        assert status in STATUSES, row
        assert ("Missing: " in feature) is (status == "partial"), f"{row}: what is missing makes it partial"
        claimed = status != "later"
        assert bool(TEST.search(tests)) is claimed, (
            f"{row} is {status}: a claim needs a test, and only a claim has one"
        )
        assert bool(engines) is claimed, row


def test_the_guide_lists_every_error() -> None:
    table = dict(re.findall(r"^\| (EF\d{4}) \| `(\w+)` \|", _read("docs/guide.md"), re.MULTILINE))
    known = {
        item.code: name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.EmberflowError)
    }
    assert table == known


def test_make_targets_and_extras_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", _read("Makefile"), re.MULTILINE))
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    extras = set(project["optional-dependencies"])
    for path in documents():
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets, path
        for names in re.findall(r"emberflow\[([\w,]+)\]", text):
            assert set(names.split(",")) <= extras, path


def test_command_lines_are_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """Options of `emberflow …` lines are those of its parser; nothing is run."""
    lines = [
        shlex.split(line, comments=True)[1:]
        for path in documents()
        for fence in fences(path)
        if fence.language in ("bash", "sh")
        for line in fence.text.splitlines()
        if line.startswith("emberflow ")
    ]
    assert lines
    known = {command.__name__.rsplit(".", 1)[1] for command in COMMANDS}
    for arguments in lines:
        own = arguments[: arguments.index("--")] if "--" in arguments else arguments
        assert own[0] in known, arguments
        with pytest.raises(SystemExit) as left:
            # --help ends the parser after it has accepted the command, before it would run.
            main([own[0], "--help"])
        assert left.value.code == 0
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        assert {item for item in own if item.startswith("--")} <= options, arguments


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")
