"""Which package may import which; the table of docs and code review, as a test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, imports, modules, name_of, parsed, short

MODULES = {name_of(path) for path in modules()}

BASE = {"events", "errors", "rendering", "lazy_names"}
BELOW_ENGINES = {
    "operators", "plan", "windowing", "connectors", "event_time", "state", "observability"
} | BASE  # fmt: skip
PUBLIC = {"streams", "agents", "testing", "integrations", "engines"} | BELOW_ENGINES

# A folder may import itself and what is listed here; a folder that is not listed is not part of the layout yet.
MAY_IMPORT: dict[str, set[str]] = {
    "rendering": set(),
    "errors": {"rendering"},
    "lazy_names": {"errors"},
    "events": {"errors", "rendering"},
    "event_time": BASE,
    # Time to live is measured with the injected clock.
    "state": {"event_time"} | BASE,
    # Triggers and count windows declare the state they need.
    "windowing": {"event_time", "state"} | BASE,
    "observability": BASE,
    "connectors": BASE,
    "plan": {"connectors", "event_time", "state", "windowing"} | BASE,
    "operators": {"plan", "event_time", "state", "windowing", "observability"} | BASE,
    # The contexts that user functions receive are the operators' own.
    "streams": {"operators", "plan", "connectors", "event_time", "state", "windowing"} | BASE,
    # As for streams: the context that actions receive is the operator's own.
    "agents": {"streams", "operators", "plan", "connectors", "dead_letters", "state", "observability"} | BASE,
    # What a job stores, independent of any engine.
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
    # `agents`: a YAML file with agents is run without a program.
    "cli": {
        "agents",
        "service",
        "engines",
        "savepoints",
        "approvals",
        "dead_letters",
        "plan",
        "observability",
        "compat",
        "demo",
        "errors",
        "rendering",
    },
    # python -m emberflow
    "__main__": {"cli"},
    # The facade: emberflow/__init__.py.
    "emberflow": PUBLIC - {"testing", "engines", "integrations"},
}

ENGINES_APART = {"local": "spark", "spark": "local"}

# Files that import a module by its name, or name one of ours in a string, and why. No other file does: such imports are
# visible neither to these rules nor to a type checker.
BY_NAME = {
    "__init__.py": "public names are imported when they are first used",
    "lazy_names.py": "public names are imported when they are first used",
    "agents/name_homes.py": "the table of public names",
    "streams/name_homes.py": "the table of public names",
    "agents/yaml/named_functions.py": "functions of users, named in YAML files",
    "compat/finder.py": "names of other libraries are looked up when they are first used",
    "compat/flink_agents/names.py": "the table of Flink Agents' names",
    "compat/flink_agents/package.py": "the module that workers import",
    "compat/pyflink/names.py": "the table of PyFlink's names",
    "agents/models/model_shortcuts.py": "classes of vendors, named in descriptors",
    "compat/pyflink/package.py": "the module that workers import",
    "events/stored_types.py": "the registry of stored types",
    "streams/program/engine_choice.py": "the engine is loaded by name",
    "engines/job/offline_savepoint.py": "the engine is loaded by name",
    "engines/spark/wire/bootstrap.py": "a worker has our code only after it was unpacked",
    "engines/spark/wire/shims.py": "a worker has our code only after it was unpacked",
    "engines/spark/wire/initial_state.py": "a worker has our code only after it was unpacked",
    "engines/spark/driver/translate.py": "a worker has our code only after it was unpacked",
    "engines/spark/session/session.py": "private to pyspark, and may be missing",
    "connectors/files/parquet_format.py": "optional dependency: pyarrow",
    "observability/plain_line.py": "optional dependency: orjson",
    "plan/cel/expression.py": "optional dependency: cel",
    "testing/on_every_host.py": "optional dependency: pytest",
    "testing/spark_session.py": "optional dependency: pyspark",
    "operators/agents/calls/stored_errors.py": "classes of users, named in stored errors",
    "plan/agents/resources.py": "classes of users, named in descriptors",
    "plan/json_functions.py": "functions of users, named in plans",
    "savepoints/stand_ins.py": "classes of users, named in savepoints",
}

# What engines may know about agents: the contracts that they implement.
CONTRACTS = {"emberflow.operators.agents.calls.durable_calls"}


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
def test_engines_do_not_import_each_other(engine: str) -> None:
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
def test_worker_code_is_separate_from_driver_code(room: str, others: tuple[str, ...]) -> None:
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


def logger_names(path: Path) -> set[int]:
    """The lines of calls of getLogger: loggers are named like packages."""
    return {
        node.lineno
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "getLogger"
    }


def named_in_strings(path: Path) -> list[str]:
    """Imports by name, and strings that name a module of ours."""
    loggers = logger_names(path)
    found: list[str] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ("import_module", "__import__"):
                found.append(f"{short(path)}:{node.lineno} calls {name}()")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("emberflow.")
            and node.value.rstrip(".") in MODULES
            and node.lineno not in loggers
        ):
            found.append(f"{short(path)}:{node.lineno} names {node.value}")
    return found


def test_modules_are_imported_by_name_where_the_table_says_so() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): named_in_strings(path) for path in modules()}
    wrong = [line for name, lines in found.items() if name not in BY_NAME for line in lines]
    assert not wrong, "\n".join(wrong)
    stale = [name for name in BY_NAME if not found.get(name)]
    assert not stale, f"no longer needed in the table: {stale}"


def test_engines_do_not_know_agents() -> None:
    """What an engine must know about a step is in the traits of its spec."""
    wrong: list[str] = []
    for path in sorted((PACKAGE / "engines").rglob("*.py")):
        wrong += [
            f"{short(path)}:{line} imports {module}"
            for module, line in imports(path)
            if module.startswith(("emberflow.operators.agents", "emberflow.plan.agents"))
            and module not in CONTRACTS
        ]
        for node in ast.walk(parsed(path)):
            name = getattr(node, "id", "") or getattr(node, "attr", "") or getattr(node, "name", "")
            if name == "AgentSpec":
                wrong.append(f"{short(path)} uses AgentSpec")
            if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("spec.kind"):
                wrong.append(f"{short(path)}:{node.lineno} compares the kind of a step")
    assert not wrong, "\n".join(wrong)
