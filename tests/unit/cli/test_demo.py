from __future__ import annotations

import sys
from types import ModuleType

import pytest

from emberflow.cli.main import main


@pytest.mark.parametrize(("answer", "code"), [(None, 0), (0, 0), (1, 1)])
def test_delegates_to_the_demo(answer: int | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def demo_main(argv: list[str]) -> int | None:
        seen.append(argv)
        return answer

    demo = ModuleType("emberflow.demo")
    demo.main = demo_main  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "emberflow.demo", demo)
    assert main(["demo", "--", "--fast"]) == code
    assert main(["demo", "--engine", "local", "--", "--fast"]) == code
    assert seen == [["--fast"], ["--engine", "local", "--fast"]]
