"""The resource sections of a YAML file: what they declare, and the names by which resources refer to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.prompt_text import Prompt
from emberflow.agents.tools.function_tool import FunctionTool, Tool, as_tool
from emberflow.agents.yaml.aliases import class_path
from emberflow.agents.yaml.arguments import argument
from emberflow.agents.yaml.checked_arguments import PlacedSettings, check_arguments, placed_settings
from emberflow.agents.yaml.named_functions import function_named
from emberflow.agents.yaml.nodes import Node, Place, wrong
from emberflow.agents.yaml.skill_sections import skills_of
from emberflow.errors import InvalidAgent
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

DESCRIPTOR_SECTIONS = {
    "chat_model_connections": ResourceType.CHAT_MODEL_CONNECTION,
    "chat_model_setups": ResourceType.CHAT_MODEL,
    "embedding_model_connections": ResourceType.EMBEDDING_MODEL_CONNECTION,
    "embedding_model_setups": ResourceType.EMBEDDING_MODEL,
    "vector_stores": ResourceType.VECTOR_STORE,
    "mcp_servers": ResourceType.MCP_SERVER,
}
_OWN_KEYS = ("name", "clazz", "type")

_REFERENCES: dict[str, dict[str, ResourceType]] = {
    "chat_model_setups": {
        "connection": ResourceType.CHAT_MODEL_CONNECTION,
        "prompt": ResourceType.PROMPT,
        "tools": ResourceType.TOOL,
        "fallback": ResourceType.CHAT_MODEL,
    },
    "embedding_model_setups": {"connection": ResourceType.EMBEDDING_MODEL_CONNECTION},
    "vector_stores": {"embedding_model": ResourceType.EMBEDDING_MODEL},
}
"""Arguments whose values are names of other resources."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name of a resource, used at some place of a file."""

    kind: ResourceType
    name: str
    place: Place
    owner: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource of a file."""

    kind: ResourceType
    name: str
    place: Place
    value: Any
    references: tuple[Reference, ...] = ()
    settings: PlacedSettings | None = None
    """Those of a chat model."""


def resources_of(node: Node) -> Iterator[Declared]:
    """The resources of a file or of an agent; raises InvalidAgent, also for a name that a section declares twice."""
    seen: dict[tuple[str, str], Place] = {}
    for section, make in _MAKERS.items():
        for entry in node.items(section):
            name, place = entry.text("name"), entry.place
            first = seen.setdefault((section, name), place)
            if first is not place:
                raise wrong(place, f"{section} has two entries named {name!r}", cause=f"the first: {first}")
            owner = f"{section}, {name!r}"
            refuse_java(entry, owner)
            yield make(entry, section, owner)


def refuse_java(entry: Node, owner: str) -> None:
    if entry.text("type") == "java":
        raise wrong(
            entry.value["type"].place,
            f"{owner}: Java implementations are not supported",
            way_out="name a Python implementation, and leave out 'type'",
        )


def descriptor_of(entry: Node, kind: ResourceType, owner: str) -> ResourceDescriptor:
    """The class that an entry names, with the entry's other keys as its arguments."""
    path = class_path(entry.value["clazz"], kind, owner)
    given = {name: argument(value) for name, value in entry.value.items() if name not in _OWN_KEYS}
    try:
        made = ResourceDescriptor(path, arguments=given)
    except InvalidAgent as error:
        named = [place for name, place in entry.keys.items() if repr(name) in error.message]
        raise wrong(
            named[0] if named else entry.place,
            f"{owner}: {error.message}",
            cause=error.cause,
            way_out="refer to an environment variable: api_key: ${API_KEY}" if named else error.way_out,
        ) from None
    check_arguments(entry, made, kind, owner)
    return made


def references_of(entry: Node, section: str, owner: str) -> tuple[Reference, ...]:
    """The resources that an entry of a section needs."""
    found: list[Reference] = []
    for name, kind in _REFERENCES.get(section, {}).items():
        value = entry.get(name)
        if value is None:
            continue
        nodes = entry.items(name) if value.kind == "array" else [value]
        found += [Reference(kind, node.value, node.place, owner) for node in nodes if node.kind == "string"]
    return tuple(found)


def prompt_of(entry: Node) -> Prompt:
    """The template of an entry with `text` or `messages`."""
    if "text" in entry.value:
        return Prompt.from_text(entry.text("text"))
    messages = entry.items("messages")
    return Prompt.from_messages(
        [ChatMessage(role=item.text("role") or "user", content=item.text("content")) for item in messages]
    )


def _descriptor(entry: Node, section: str, owner: str) -> Declared:
    kind = DESCRIPTOR_SECTIONS[section]
    made = descriptor_of(entry, kind, owner)
    settings = placed_settings(entry, made, owner) if kind is ResourceType.CHAT_MODEL else None
    references = references_of(entry, section, owner)
    return Declared(kind, entry.text("name"), entry.place, made, references, settings)


def _prompt(entry: Node, section: str, owner: str) -> Declared:
    return Declared(ResourceType.PROMPT, entry.text("name"), entry.place, prompt_of(entry))


def _tool(entry: Node, section: str, owner: str) -> Declared:
    name = entry.text("name")
    types = entry.get("parameter_types")
    if types is not None:
        raise wrong(
            types.place,
            f"{owner}: 'parameter_types' describes Java functions",
            way_out="leave it out: the annotations of a Python function are its parameter types",
        )
    function = function_named(entry.get("function"), owner, entry.place)
    injected = entry.get("injected_args")
    try:
        made = as_tool(name, function)
        if injected is not None:
            made = _with_injected(made, injected, owner)
    except InvalidAgent as error:
        raise wrong(
            entry.place, f"{owner}: {error.message}", cause=error.cause, way_out=error.way_out
        ) from None
    return Declared(ResourceType.TOOL, name, entry.place, made)


def _with_injected(tool: Tool, injected: Node, owner: str) -> Tool:
    if not isinstance(tool, FunctionTool):
        raise wrong(injected.place, f"{owner}: arguments are injected into functions only")
    sources: dict[str, Any] = {
        name: {} if item is None else {key: value for key, value in item.items() if value is not None}
        for name, item in injected.plain().items()
    }
    return FunctionTool(tool.func, name=tool.name, injected_args=sources)


def _skills(entry: Node, section: str, owner: str) -> Declared:
    return Declared(ResourceType.SKILLS, entry.text("name"), entry.place, skills_of(entry, owner))


_MAKERS: dict[str, Callable[[Node, str, str], Declared]] = {
    "prompts": _prompt,
    "tools": _tool,
    "skills": _skills,
    **dict.fromkeys(DESCRIPTOR_SECTIONS, _descriptor),
}
