"""Who may import whom; the table of docs and code review, as a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, imports, modules, short

BASE = {"events", "errors", "rendering"}
BELOW_ENGINES = {"operators", "plan", "connectors", "event_time", "state", "observability"} | BASE
PUBLIC = {"streams", "agents", "testing", "integrations", "engines"} | BELOW_ENGINES

# A folder may import itself and what is listed here; a folder that is not listed has no place in the house yet.
MAY_IMPORT: dict[str, set[str]] = {
    "rendering": set(),
    "errors": {"rendering"},
    "events": {"errors", "rendering"},
    "event_time": BASE,
    # Time to live is measured with the injected clock.
    "state": {"event_time"} | BASE,
    "observability": BASE,
    "connectors": BASE,
    "plan": {"connectors", "event_time", "state"} | BASE,
    "operators": {"plan", "event_time", "state", "observability"} | BASE,
    # The contexts that user functions are handed are the operators' own.
    "streams": {"operators", "plan", "connectors", "event_time", "state"} | BASE,
    # As for streams: the context that actions are handed is the operator's own.
    "agents": {"streams", "operators", "plan", "connectors", "dead_letters", "state", "observability"} | BASE,
    # What a job remembers, apart from any engine.
    "savepoints": {"operators", "plan", "state"} | BASE,
    "durable": {"operators", "plan", "state"} | BASE,
    "approvals": {"operators", "plan", "state"} | BASE,
    # Letters are written by a file sink and read by a source.
    "dead_letters": {"connectors"} | BASE,
    "engines": BELOW_ENGINES | {"savepoints", "durable", "approvals"},
    "integrations": {"agents"} | BASE,
    "compat": PUBLIC - {"testing"},
    "service": {"engines", "plan", "observability"} | BASE,
    "testing": PUBLIC,
    "demo": PUBLIC | {"emberflow"},
    "cli": {
        "service",
        "engines",
        "savepoints",
        "approvals",
        "dead_letters",
        "plan",
        "observability",
        "demo",
        "errors",
        "rendering",
    },
    # The facade: emberflow/__init__.py.
    "emberflow": PUBLIC - {"testing", "engines", "integrations"},
}

ENGINES_APART = {"local": "spark", "spark": "local"}


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "emberflow"


def layer_of_file(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    if inside.name == "__init__.py" and len(inside.parts) == 1:
        return "emberflow"
    return inside.with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules(), ids=short)
def test_a_file_imports_only_the_layers_below_it(path: Path) -> None:
    layer = layer_of_file(path)
    assert layer in MAY_IMPORT, f"{short(path)}: add the folder '{layer}' to the table in {__file__}"
    allowed = MAY_IMPORT[layer] | {layer}
    wrong = [
        f"{short(path)}:{line} imports {module}; {layer} may import {sorted(MAY_IMPORT[layer])}"
        for module, line in imports(path)
        if module.split(".")[0] == "emberflow" and layer_of(module) not in allowed
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("engine", sorted(ENGINES_APART))
def test_engines_do_not_know_each_other(engine: str) -> None:
    other = f"emberflow.engines.{ENGINES_APART[engine]}"
    wrong = [
        f"{short(path)}:{line} imports {module}"
        for path in sorted((PACKAGE / "engines" / engine).rglob("*.py"))
        for module, line in imports(path)
        if module == other or module.startswith(other + ".")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("room", "others"),
    [("driver", ("worker",)), ("worker", ("driver", "session")), ("wire", ("driver", "worker", "session"))],
)
def test_what_runs_in_a_spark_worker_is_apart_from_the_driver(room: str, others: tuple[str, ...]) -> None:
    spark = PACKAGE / "engines" / "spark"
    forbidden = tuple(f"emberflow.engines.spark.{other}." for other in others)
    files = sorted((spark / room).rglob("*.py"))
    assert files
    wrong = [
        f"{short(path)}:{line} imports {module}"
        for path in files
        for module, line in imports(path)
        if f"{module}.".startswith(forbidden)
    ]
    assert not wrong, "\n".join(wrong)


def may_import_pyspark(path: Path) -> bool:
    inside = path.relative_to(PACKAGE)
    if inside.parts[:2] == ("engines", "spark"):
        return True
    return inside.parts[0] == "connectors" and any("spark" in part for part in inside.parts[1:])


def test_only_spark_files_import_pyspark() -> None:
    wrong = [
        f"{short(path)}:{line} imports {module}"
        for path in modules()
        if not may_import_pyspark(path)
        for module, line in imports(path)
        if module.split(".")[0] in {"pyspark", "py4j"}
    ]
    assert not wrong, "\n".join(wrong)
