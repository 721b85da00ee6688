"""The agent examples: run as a reader would run them, and their agents separately."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from emberflow.agents import ResourceDescriptor, ResourceType
from emberflow.testing import ScriptedChatModel, assert_golden, run_agent, spark_missing
from tests.support.markdown import fences

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "agents"
GOLDEN = Path(__file__).parent / "golden"
MISSING = spark_missing()


def run(name: str, engine: str, *options: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "emberflow.cli.main", "run", f"examples/agents/{name}", "--engine", engine, "--quiet", *options],
        capture_output=True, text=True, check=False, timeout=500, cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """An example as a module; registered under its name during the test, as pickling requires."""
    name = f"example_{request.param}"
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{request.param}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def by(key: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"key": item[key], "value": item} for item in items]


def json_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


def test_the_readme_runs_every_example() -> None:
    commands = [
        shlex.split(line, comments=True)
        for fence in fences(EXAMPLES / "README.md")
        for line in fence.text.splitlines()
    ]
    ran = {command[2] for command in commands if command[1] == "run"}
    files = [*EXAMPLES.glob("*.py"), *EXAMPLES.rglob("*.yaml")]
    assert ran == {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.parametrize("example", ["review_triage"], indirect=True)
def test_reviews_are_triaged(example: ModuleType) -> None:
    done = run_agent(example.ReviewTriage(), by("product", json_lines("reviews.jsonl")))
    assert_golden(
        {key: list(map(example.line, found)) for key, found in done.by_key.items()},
        GOLDEN / "review_triage.json",
    )
    assert len(done.sent(example.Answered)) == 40
    assert {event.team for event in done.sent(example.Escalation)} == {"shipping", "support"}


@pytest.mark.parametrize("example", ["expenses"], indirect=True)
def test_expenses_are_added_up_by_a_skill_and_booked(example: ModuleType) -> None:
    done = run_agent(example.Expenses(), example.INPUTS)
    assert done.by_key == {
        "ann": ["booked 30.50 on account ann-2030 (receipts needed for: none)"],
        "bob": ["booked 271.20 on account bob-2030 (receipts needed for: 240)"],
    }


@pytest.mark.parametrize("example", ["review_triage"], indirect=True)
def test_the_product_is_part_of_the_question(example: ModuleType) -> None:
    calls = ScriptedChatModel.calls_of("triage")
    calls.clear()
    model = ResourceDescriptor(clazz=ScriptedChatModel, replies=example.SCRIPT, name="triage")
    review = {"id": 1, "product": "lamp", "text": "Good."}
    run_agent(
        example.ReviewTriage(),
        by("product", [review]),
        resources={("service", ResourceType.CHAT_MODEL_CONNECTION): model},
    )
    assert [str(message)[:36] for message in calls[0].messages] == [
        "system: You judge reviews of a lamp.",
        "user: Good.",
    ]


@pytest.mark.parametrize(
    "engine",
    [
        "local",
        pytest.param(
            "spark",
            marks=[
                pytest.mark.spark,
                # By day, `make demo` and the snippets of the documentation run agents as programs on Spark.
                pytest.mark.nightly,
                pytest.mark.skipif(bool(MISSING), reason=f"A31 on Spark: {MISSING}"),
            ],
        ),
    ],
)
def test_review_triage_as_a_program(engine: str) -> None:
    stored = json.loads((GOLDEN / "review_triage.json").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {key: [] for key in stored}
    for line in run("review_triage.py", engine):
        found[re.split(" +#", line)[0].split("> ")[-1]].append(line.split("> ")[-1])
    assert found == stored


def test_agents_in_yaml_call_each_other() -> None:
    options = ["--input", "examples/agents/team/questions.jsonl", "--agent", "coordinator"]
    (line,) = run("team/team.yaml", "local", *options)
    assert json.loads(line)["output"] == "The answer: 4,806 m and 1,345 m."


ENGINES = [
    "local",
    pytest.param(
        "spark",
        marks=[pytest.mark.spark, pytest.mark.skipif(bool(MISSING), reason=f"A21 on Spark: {MISSING}")],
    ),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_agent_in_yaml_runs_without_a_program(engine: str, tmp_path: Path) -> None:
    folder, output = "examples/agents/support", tmp_path / "answers.jsonl"
    options = ["--input", f"{folder}/questions.jsonl", "--key", "customer", "--output", str(output)]
    assert run("support/support.yaml", engine, *options) == []

    found: dict[str, list[str]] = {"ann": [], "bob": []}
    for line in output.read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        found[answer["key"]].append(answer["output"])
    assert found == {
        "ann": ["Dear customer: It arrives tomorrow.", "Dear customer: Thank you."],
        "bob": [
            "Dear customer: We are sorry.",
            "Dear customer: We are sorry.",
            "to a person, angry 2 times: and the new one is late",
        ],
    }


@pytest.mark.parametrize("example", ["incidents"], indirect=True)
def test_an_incident_is_kept_until_two_quiet_minutes(example: ModuleType) -> None:
    errors = [0, 3, 0, 4, 2, 1, 0, 9]
    minutes = [
        {"service": "search", "minute": minute, "errors": count, "messages": ["shard 3: disk full"] * count}
        for minute, count in enumerate(errors)
    ]
    done = run_agent(example.IncidentKeeper(), by("service", minutes))
    assert [(change["change"], change["at"], change["errors"]) for change in done.outputs] == [
        ("OPEN", 1, 3),
        ("MORE", 3, 7),
        ("DONE", 5, 7),
        ("OPEN", 7, 9),
    ]


def test_incidents_as_a_program() -> None:
    found = run("incidents.py", "local")
    assert [line for line in found if "payments" in line] == [
        "10:02  OPEN  payments  The card provider does not answer.",
        "10:03  MORE  payments  10 errors since 10:02",
        "10:04  MORE  payments  13 errors since 10:02",
        "10:06  DONE  payments  13 errors since 10:02",
    ]
    assert [line for line in found if "payments" not in line] == [
        "10:05  OPEN  search    Shard 3 ran out of disk space.",
        "10:06  MORE  search    8 errors since 10:05",
        "10:08  DONE  search    8 errors since 10:05",
    ]


def test_chained_as_a_program() -> None:
    found = [re.split("  +", line) for line in run("chained.py", "local")]
    assert len(found) == 8
    assert [line[1:] for line in found if line[0] == "ann"] == [
        ["billing", "My invoice from March is wrong.", "Sorry! We look at the bill today."],
        ["account", "Where can I change my password?", "You find it under Settings, Account."],
        ["billing", "The invoice is still wrong.", "-> a person calls back"],
    ]
    assert sorted(line[0] for line in found if "a person" in line[-1]) == ["ann", "bob"]


def test_flaky_as_a_program() -> None:
    lines = run("flaky.py", "local")
    # Keys do not wait for each other, so only the order of each is known.
    assert [line for line in lines if "'bob'" in line] == [
        "('bob', 'an answer about a question that needs two attempts (attempt 2)')",
        "('bob', 'an answer about opening hours (attempt 1)')",
        "('bob', 'sorry: the key has spent 120 tokens within 3,600,000 ms; its budget is 100')",
    ]
    assert sorted(line for line in lines if "'bob'" not in line) == [
        """('ann', "dead letter: no idea about 'an odd question'")""",
        "('ann', 'an answer about opening hours (attempt 1)')",
        "('cem', 'are you still waiting?')",
        "('cem', 'sorry: the service is away')",
    ]


def test_approvals_as_a_program() -> None:
    assert sorted(run("approvals.py", "local")) == [
        "ann: 12 € paid (small)",
        "ann: 30 € paid (small)",
        "bob: 480 € not paid (expired)",
        "bob: 5 € paid (small)",
        "cem: 950 € not paid (expired)",
    ]
