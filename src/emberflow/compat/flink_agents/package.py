"""Flink Agents, as the import hook knows it."""

from __future__ import annotations

from emberflow.compat.flink_agents import missing, names
from emberflow.compat.foreign_package import ForeignPackage
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.errors import FlinkAgentsOnly

FLINK_AGENTS = ForeignPackage(
    root="flink_agents",
    product="Flink Agents",
    names=names.NAMES,
    home=names.AGENTS,
    homes=names.HOMES,
    values=names.VALUES,
    missing_modules=missing.MODULES,
    missing_names=missing.NAMES,
    error=FlinkAgentsOnly,
    install_module="emberflow.compat.flink_agents.install",
    page="docs/from-flink-agents.md",
    # Flink Agents' own programs, and copies of them.
    own_modules=("flink_agents.examples", "flink_agents.e2e_tests"),
    together_with=(PYFLINK,),
)
