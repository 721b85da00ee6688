"""Every Python block of the documentation runs, and prints what the block after it shows."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from emberflow.testing import shared_session, spark_missing
from tests.support.markdown import Chain, chains, documents, fences, name_of


def cases(engine: str) -> list[Any]:
    wanted = {"local": ("alone", "both", "skip"), "spark": ("both", "spark")}[engine]
    return [
        pytest.param(
            chain,
            id=f"{name_of(path)}:{chain[0].line}",
            marks=[pytest.mark.skip(reason=chain[0].reason)] if chain[0].directive == "skip" else [],
        )
        for path in documents()
        for chain in chains(path)
        if chain[0].directive in wanted
    ]


def run(chain: Chain) -> None:
    # Like a separate program: its definitions are sent to workers by value.
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for fence in chain:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(fence.text, "program.py", "exec"), namespace)
        if fence.output is not None:
            assert printed.getvalue() == fence.output, f"the block at line {fence.line} prints something else"
        else:
            assert printed.getvalue() == "", (
                f"the block at line {fence.line} prints, but no ```text block follows"
            )


@pytest.mark.parametrize("chain", cases("local"))
def test_on_local(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERFLOW_ENGINE", "local")
    monkeypatch.setenv("EMBERFLOW_QUIET", "1")
    monkeypatch.chdir(tmp_path)
    run(chain)


@pytest.mark.spark
@pytest.mark.skipif(bool(spark_missing()), reason=f"B1 on Spark: {spark_missing()}")
@pytest.mark.parametrize("chain", cases("spark"))
def test_on_spark(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared_session()
    monkeypatch.setenv("EMBERFLOW_ENGINE", "spark")
    monkeypatch.setenv("EMBERFLOW_QUIET", "1")
    monkeypatch.chdir(tmp_path)
    run(chain)


def test_skipped_blocks_say_why() -> None:
    silent = [
        f"{name_of(path)}:{fence.line}"
        for path in documents()
        for fence in fences(path)
        if fence.directive == "skip" and not fence.reason
    ]
    assert silent == []
