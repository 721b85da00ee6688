"""docs/from-flink-agents.md: its list comes from the code. `python -m tests.docs.test_from_flink_agents` writes it."""

from __future__ import annotations

import re
from pathlib import Path

from emberflow.compat.finder import available
from emberflow.compat.flink_agents import missing, names
from emberflow.compat.flink_agents.package import FLINK_AGENTS

PAGE = Path(__file__).parents[2] / "docs" / "from-flink-agents.md"


def absent() -> str:
    rows = [f"| `{module}` | {way_out} |" for module, way_out in missing.MODULES.items()]
    rows += [f"| `{name}` | {way_out} |" for name, way_out in missing.NAMES.items()]
    for way_out in dict.fromkeys(missing.OPTIONS.values()):
        options = [
            f"`AgentConfigOptions.{name}`" for name, told in missing.OPTIONS.items() if told == way_out
        ]
        rows.append(f"| {', '.join(options)} | {way_out} |")
    return "\n".join(["| module or name | instead |", "|---|---|", *rows])


def generated(text: str) -> str:
    begin, end = "<!-- generated: missing -->", "<!-- end -->"
    before, after = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, maxsplit=1, flags=re.DOTALL)
    return f"{before}{begin}\n{absent()}\n{end}{after}"


def test_the_list_is_that_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert generated(text) == text, "run python -m tests.docs.test_from_flink_agents"


def test_every_name_is_there_or_has_a_way_out() -> None:
    listed = {name for text in names.NAMES.values() for name in text.split()}
    there = {name for module in names.NAMES for name in available(FLINK_AGENTS, module)}
    assert listed - there == set(missing.NAMES)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
