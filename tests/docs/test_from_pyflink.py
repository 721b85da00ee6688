"""docs/from-pyflink.md: its lists come from the code. `python -m tests.docs.test_from_pyflink` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from emberflow.compat.finder import available
from emberflow.compat.pyflink import missing, names
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.streams.settings.flink_options import HONOURED, WITHOUT_EFFECT

PAGE = Path(__file__).parents[2] / "docs" / "from-pyflink.md"
SETTER = {"": "env.", "checkpoints": "get_checkpoint_config().", "config": "get_config()."}


def honoured() -> str:
    rows = ["| option | value | as |", "|---|---|---|"]
    for key, option in HONOURED.items():
        shown = f"`{key}`" + "".join(f"<br>`{name}`" for name in option.older_names)
        values = ", ".join(f"`{choice}`" for choice in option.choices) or option.kind.value
        rows.append(f"| {shown} | {values} | {effect(key, option.sets)} |")
    return "\n".join(rows)


def effect(key: str, sets: str) -> str:
    if sets == "restart":
        return "`RestartStrategies`"
    target, _, setter = sets.rpartition(".")
    return (
        f"`{key.rpartition('.')[2]}` of the job"
        if setter.startswith("_")
        else f"`{SETTER[target]}{setter}()`"
    )


def without_effect() -> str:
    reasons: dict[str, list[str]] = {}
    for key, reason in WITHOUT_EFFECT.items():
        reasons.setdefault(reason, []).append(f"`{key}{'' if key[-1].isalnum() else '*'}`")
    rows = [f"| {', '.join(keys)} | {reason} |" for reason, keys in reasons.items()]
    return "\n".join(["| option | why |", "|---|---|", *rows])


def absent() -> str:
    rows = [f"| `{module}` | {way_out} |" for module, way_out in missing.MODULES.items()]
    rows += [f"| `{name}` | {way_out} |" for name, way_out in missing.NAMES.items()]
    return "\n".join(["| module or name | instead |", "|---|---|", *rows])


def generated(text: str) -> str:
    for title, make in {"honoured": honoured, "without effect": without_effect, "missing": absent}.items():
        begin, end = f"<!-- generated: {title} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        assert pattern.search(text), title
        before, after = pattern.split(text, maxsplit=1)
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def test_the_lists_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert generated(text) == text, "run python -m tests.docs.test_from_pyflink"


def test_every_name_is_there_or_has_a_way_out() -> None:
    listed = {name for text in names.NAMES.values() for name in text.split()}
    there = {name for module in names.NAMES for name in available(PYFLINK, module)}
    assert listed - there == set(missing.NAMES)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
