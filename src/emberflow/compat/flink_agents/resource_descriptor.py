"""`ResourceDescriptor` as Flink Agents' programs use it: paths of Flink Agents' classes, and secrets written into the program."""

from __future__ import annotations

import os
import warnings
from typing import Any

from emberflow.agents import ResourceDescriptor as _ResourceDescriptor
from emberflow.agents import Secret
from emberflow.compat.flink_agents import missing, names
from emberflow.errors import FlinkAgentsOnly, did_you_mean
from emberflow.plan.agents.resources import is_secret_name, written_secrets


class ResourceDescriptor(_ResourceDescriptor):
    """A class, usually by the path it has in Flink Agents, and the arguments to create it with.

    A secret that is written into the program is accepted with a warning. It does not enter the plan: it is kept in an
    environment variable of this process, where workers on the same machine find it.
    """

    __slots__ = ()

    def __init__(
        self,
        clazz: str | type[Any] | None = None,
        *,
        target_module: str | None = None,
        target_clazz: str | None = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Raises `InvalidAgent`, and `FlinkAgentsOnly` for a class of Flink Agents without a counterpart."""
        if isinstance(clazz, str):
            clazz = path_here(clazz)
        elif target_module and target_clazz:
            target_module, _, target_clazz = path_here(f"{target_module}.{target_clazz}").rpartition(".")
        shown = getattr(clazz, "__name__", str(clazz or target_clazz).rpartition(".")[2])
        given = {**(arguments or {}), **kwargs}
        for name in written_secrets(given):
            warnings.warn(
                f"the argument {name!r} of {shown} is a secret written into the program; give it a reference: "
                f"emberflow.agents.Secret({name.upper()!r}) is read from the environment of the worker",
                UserWarning,
                stacklevel=2,
            )
        super().__init__(
            clazz,
            target_module=target_module,
            target_clazz=target_clazz,
            arguments=_without_secrets(given, shown),
        )


def path_here(path: str) -> str:
    """The path in emberflow of a class that is named by its path in Flink Agents; any other path unchanged.

    Raises `FlinkAgentsOnly`, with the way out, for one that emberflow does not have.
    """
    module, _, name = path.rpartition(".")
    if module.startswith("org.apache.flink."):
        raise FlinkAgentsOnly(f"emberflow has no {path}", way_out=missing.JAVA)
    for gone, way_out in missing.MODULES.items():
        if module == gone or module.startswith(gone + "."):
            raise FlinkAgentsOnly(f"emberflow has no {name} ({module})", way_out=way_out)
    if module not in names.NAMES:
        return path
    listed = names.NAMES[module].split()
    if name not in listed:
        raise FlinkAgentsOnly(
            f"{module} has no class {name!r}{did_you_mean(name, listed)}",
            way_out="see docs/from-flink-agents.md",
        )
    home, _, own_name = names.HOMES.get(name, names.AGENTS).partition(":")
    return f"{home}.{own_name or name}"


def get_resource_class(module_path: str, class_name: str) -> type[Any]:
    """The class with this name in a module; raises `ResourceFailed` if it cannot be imported."""
    return ResourceDescriptor(target_module=module_path, target_clazz=class_name).clazz


def _without_secrets(arguments: dict[str, Any], owner: str) -> dict[str, Any]:
    """The arguments with references to environment variables in place of secrets, also inside dictionaries."""
    kept: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, dict):
            inner: Any = value  # pyright: ignore[reportUnknownVariableType]
            kept[name] = _without_secrets(inner, owner)
        elif isinstance(value, str) and value and is_secret_name(str(name)):
            kept[name] = _put_away(name, value, owner)
        else:
            kept[name] = value
    return kept


def _put_away(name: str, value: str, owner: str) -> Secret:
    spelled = "".join(letter if letter.isalnum() else "_" for letter in f"{owner}_{name}").upper()
    variable, number = f"EMBERFLOW_{spelled}", 1
    while os.environ.get(variable, value) != value:
        number += 1
        variable = f"EMBERFLOW_{spelled}_{number}"
    os.environ[variable] = value
    return Secret(variable)
