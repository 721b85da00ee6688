"""The tables of names of both packages: what they list can be imported, and what is missing names the way out."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from emberflow.compat.finder import available, installed
from emberflow.compat.flink_agents import missing as flink_agents_missing
from emberflow.compat.flink_agents import names as flink_agents_names
from emberflow.compat.flink_agents.package import FLINK_AGENTS
from emberflow.compat.pyflink import missing as pyflink_missing
from emberflow.compat.pyflink import names as pyflink_names
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.errors import FlinkAgentsOnly, PyFlinkOnly

TABLES: dict[str, tuple[Any, Any, Any, Any]] = {
    "pyflink": (PYFLINK, pyflink_names, pyflink_missing, PyFlinkOnly),
    "flink_agents": (FLINK_AGENTS, flink_agents_names, flink_agents_missing, FlinkAgentsOnly),
}


def cases(listed: str) -> list[tuple[str, str]]:
    """Each package with each entry of one of its tables."""
    found: list[tuple[str, str]] = []
    for package, (_, names, missing, _) in TABLES.items():
        tables = {"names": names.NAMES, "modules": missing.MODULES, "missing": missing.NAMES}
        found += [(package, entry) for entry in sorted(tables[listed])]
    return found


@pytest.mark.parametrize(("package", "module"), cases("names"))
def test_every_module_of_the_table_can_be_imported_with_a_star(package: str, module: str) -> None:
    hook, names, _, _ = TABLES[package]
    namespace: dict[str, Any] = {}
    with installed(hook):
        exec(f"from {module} import *", namespace)
        assert set(available(hook, module)) <= set(namespace)
        assert set(names.NAMES[module].split()) <= set(dir(importlib.import_module(module)))


@pytest.mark.parametrize(("package", "module"), cases("modules"))
def test_a_module_that_is_missing_fails_at_the_import_and_names_the_way_out(
    package: str, module: str
) -> None:
    hook, _, missing, kind = TABLES[package]
    with installed(hook):
        for name in (module, f"{module}.below"):
            with pytest.raises(kind, match=f"emberflow has no {module}") as failure:
                importlib.import_module(name)
            assert failure.value.way_out == missing.MODULES[module]
            assert isinstance(failure.value, ImportError)


@pytest.mark.parametrize(("package", "name"), cases("missing"))
def test_a_name_that_is_missing_fails_at_the_import_and_names_the_way_out(package: str, name: str) -> None:
    hook, names, missing, kind = TABLES[package]
    homes = [module for module, listed in names.NAMES.items() if name in listed.split()]
    assert homes, f"{name} is in no module of the table"
    with installed(hook):
        for home in homes:
            with pytest.raises(kind, match=f"emberflow has no {name}") as failure:
                exec(f"from {home} import {name}")
            assert failure.value.way_out == missing.NAMES[name]
