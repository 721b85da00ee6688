"""Functions in a plan that is stored as JSON: by name if they can be imported, otherwise pickled by value."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable
from typing import Any

import cloudpickle

from emberflow.errors import InvalidAgent, describe_cause
from emberflow.events.codecs import unpickle


def name_of(function: Any) -> str:
    """`module.qualified_name`, for display."""
    named: Any = getattr(function, "__func__", function)
    owner: Any = named if hasattr(named, "__qualname__") else named.__class__
    return f"{owner.__module__}.{owner.__qualname__}"


def to_json(function: Callable[..., Any]) -> dict[str, str]:
    """Raises InvalidAgent if the function, or something it refers to, cannot be pickled."""
    module, qualname = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if module and module != "__main__" and "<" not in qualname and _find(module, qualname) is function:
        return {"module": module, "qualname": qualname}
    try:
        data = base64.b64encode(cloudpickle.dumps(function)).decode()
    except Exception as error:
        raise InvalidAgent(
            f"the function {name_of(function)} cannot be sent to workers",
            cause=describe_cause(error),
            way_out="keep connections, locks and open files out of it and out of its agent; use a resource",
        ) from error
    return {"name": name_of(function), "cloudpickle": data}


def from_json(data: dict[str, str]) -> Callable[..., Any]:
    """Raises InvalidAgent if the function no longer exists. Unpickles: load only plans that you trust."""
    if "cloudpickle" in data:
        try:
            return unpickle(base64.b64decode(data["cloudpickle"]))
        except Exception as error:
            raise InvalidAgent(
                f"the function {data.get('name')!r} inside the plan cannot be read",
                cause=describe_cause(error),
            ) from error
    found = _find(data["module"], data["qualname"])
    if found is None:
        raise InvalidAgent(
            f"the plan names the function {data['module']}.{data['qualname']}, which does not exist",
            way_out="create the plan again from the agent, or install the version of the code it was created with",
        )
    return found


def _find(module: str, qualname: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in qualname.split("."):
            found = found.__dict__[part] if isinstance(found, type) else getattr(found, part)
            if isinstance(found, staticmethod):
                found = found.__func__
    except (ImportError, AttributeError, KeyError):
        return None
    return found
