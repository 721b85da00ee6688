"""Descriptions of what agents need besides events: models, prompts, tools, stores.

A description is part of the plan; the resource itself is created on the worker, when an action first asks for it
(`operators/agents/resources/resource_cache.py`). Secrets never enter a plan: `Secret` says where the worker finds them.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from emberflow.errors import InvalidAgent, ResourceFailed, describe_cause, did_you_mean
from emberflow.plan import json_functions
from emberflow.plan.agents.resource_fields import fill_declared_fields
from emberflow.plan.agents.resource_shape import ResourceShape


class ResourceType(Enum):
    """The kinds of resources an agent may have."""

    CHAT_MODEL = "chat_model"
    CHAT_MODEL_CONNECTION = "chat_model_connection"
    TOOL = "tool"
    EMBEDDING_MODEL = "embedding_model"
    EMBEDDING_MODEL_CONNECTION = "embedding_model_connection"
    VECTOR_STORE = "vector_store"
    PROMPT = "prompt"
    MCP_SERVER = "mcp_server"
    SKILLS = "skills"
    AGENT = "agent"


def resource_type(name: str) -> ResourceType:
    """The type with this value or name."""
    for item in ResourceType:
        if name in (item.value, item.name):
            return item
    raise ResourceFailed(
        f"{name!r} is not a resource type{did_you_mean(name, [item.value for item in ResourceType])}",
        way_out=f"use one of {', '.join(item.value for item in ResourceType)}",
    )


MakeTool = Callable[[str, Any], Any]
"""name and function -> tool. Passed in with the plan: the class of tools belongs to the public API above this layer."""


def keep_function(name: str, function: Any) -> Any:
    """A `MakeTool` for plans whose tools are tools already."""
    return function


class ResourceContext(Protocol):
    """Gives a resource access to the resources it depends on."""

    def get_resource(self, name: str, type: ResourceType) -> Any: ...


_NOT_FIELDS = frozenset({"resource_context", "secret_origins"})


class Resource(ResourceShape):
    """Base of resources. Created on the worker with the descriptor's arguments, then `open()`, at the end `close()`.

    A subclass without an `__init__` may declare its arguments as annotated fields: `host: str`, `retries: int = 3`.
    It has the methods of a pydantic model (`model_dump`, `model_validate`, `model_copy`, …), in which secrets are masked.
    """

    resource_context: ResourceContext
    """Set before `open()`."""

    secret_origins: Mapping[str, str] = MappingProxyType({})
    """Where the arguments that were given as a `Secret` come from, for messages; set before `open()`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_declared_fields(cls, _NOT_FIELDS)

    @classmethod
    def needed_resources(cls) -> dict[str, ResourceType]:
        """The arguments that may be names of other resources without which it cannot work: an agent that lacks one is refused
        when it is applied."""
        return {}

    def open(self) -> None:
        """Connect here, not in `__init__`."""

    def close(self) -> None:
        """Called once, when the job ends in this process."""


class SerializableResource(Resource):
    """A resource that is serialized into the plan, such as a prompt."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is found when a resource is created: an environment variable or a file."""

    name: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.name) == bool(self.file):
            raise InvalidAgent(
                "a secret is either the name of an environment variable or a file",
                way_out="Secret('OPENAI_API_KEY') or Secret(file='/run/secrets/openai')",
            )

    @property
    def origin(self) -> str:
        """Where the value comes from, for messages."""
        return f"the file {self.file!r}" if self.file else f"the variable {self.name}"

    def resolve(self) -> str:
        """The secret's value; called on the worker only. Raises ResourceFailed."""
        if self.file:
            try:
                return Path(self.file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ResourceFailed(
                    f"the secret file {self.file!r} cannot be read", cause=describe_cause(error)
                ) from error
        value = os.environ.get(self.name)
        if value is None:
            raise ResourceFailed(
                f"the environment variable {self.name!r}, which contains a secret, is not set on this worker",
                way_out=f"set it where the job runs, e.g. spark.executorEnv.{self.name} on a cluster",
            )
        return value


_SECRET_NAME = re.compile(
    r"(^|_)(api_?key|access_?key|private_?key|secret|secret_?key|password|passwd|pwd|passphrase|token|access_?token"
    r"|credential|authorization|bearer)s?$",
    re.I,
)


# Tokens that are pieces of text or positions in a list.
_HARMLESS = re.compile(
    r"(^|_)(max|min|stop|start|eos|bos|pad|unk|sep|mask|cls|special|page|next|continuation)_tokens?$"
)


def is_secret_name(name: str) -> bool:
    """Whether an argument of this name is a secret."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return bool(_SECRET_NAME.search(spelled)) and not _HARMLESS.search(spelled)


def written_secrets(arguments: dict[Any, Any]) -> Iterator[str]:
    """Names of arguments, also inside dictionaries, that contain a secret as a string."""
    for name, value in arguments.items():
        if isinstance(value, dict):
            yield from written_secrets(value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, str) and value and isinstance(name, str) and is_secret_name(name):
            yield name


class ResourceDescriptor:
    """A class and the arguments to create it with: `ResourceDescriptor(clazz=MyModel, temperature=0.1)`."""

    __slots__ = ("_clazz", "arguments", "target_clazz", "target_module")

    def __init__(
        self,
        clazz: str | type[Any] | None = None,
        *,
        target_module: str | None = None,
        target_clazz: str | None = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._clazz: type[Any] | None = None
        if isinstance(clazz, str):
            target_module, _, target_clazz = clazz.rpartition(".")
        elif clazz is not None:
            self._clazz = clazz
            target_module, target_clazz = clazz.__module__, clazz.__qualname__
        if not target_module or not target_clazz:
            raise InvalidAgent(
                f"a resource descriptor needs a class, got clazz={clazz!r}",
                way_out="ResourceDescriptor(clazz=MyModel, ...) or clazz='package.module.MyModel'",
            )
        self.target_module = target_module
        self.target_clazz = target_clazz
        self.arguments: dict[str, Any] = {**(arguments or {}), **kwargs}
        for name in written_secrets(self.arguments):
            raise InvalidAgent(
                f"the argument {name!r} of {target_clazz} is a secret written into the program",
                way_out=f"use Secret('{name.upper()}') instead: it is read from the environment of the worker",
            )

    def with_arguments(self, arguments: dict[str, Any]) -> ResourceDescriptor:
        """The same class with other arguments."""
        if self._clazz is not None:
            return ResourceDescriptor(clazz=self._clazz, arguments=arguments)
        return ResourceDescriptor(
            target_module=self.target_module, target_clazz=self.target_clazz, arguments=arguments
        )

    @staticmethod
    def from_json(clazz: dict[str, str], arguments: dict[str, Any]) -> ResourceDescriptor:
        """Does not import a class given by name: only the worker needs to have it."""
        if "module" in clazz:
            return ResourceDescriptor(
                target_module=clazz["module"], target_clazz=clazz["qualname"], arguments=arguments
            )
        made: Any = json_functions.from_json(clazz)
        return ResourceDescriptor(clazz=made, arguments=arguments)

    def class_to_json(self) -> dict[str, str]:
        """The class as stored in a plan."""
        if self._clazz is None:
            return {"module": self.target_module, "qualname": self.target_clazz}
        return json_functions.to_json(self._clazz)

    @property
    def clazz(self) -> type[Any]:
        """The class, imported on first access; raises `ResourceFailed` if that fails."""
        if self._clazz is None:
            try:
                found: Any = importlib.import_module(self.target_module)
                for part in self.target_clazz.split("."):
                    found = getattr(found, part)
            except (ImportError, AttributeError) as error:
                raise ResourceFailed(
                    f"the resource class {self.target_module}.{self.target_clazz} cannot be imported",
                    cause=describe_cause(error),
                    way_out="install its package where the job runs, or pass the class itself: clazz=MyModel",
                ) from error
            self._clazz = found
        return self._clazz  # pyright: ignore[reportReturnType]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResourceDescriptor):
            return NotImplemented
        return (self.target_module, self.target_clazz, self.arguments) == (
            other.target_module,
            other.target_clazz,
            other.arguments,
        )

    def __hash__(self) -> int:
        return hash((self.target_module, self.target_clazz, tuple(sorted(self.arguments))))

    def __repr__(self) -> str:
        return f"ResourceDescriptor({self.target_module}.{self.target_clazz}, {self.arguments!r})"
