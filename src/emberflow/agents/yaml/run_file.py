"""Runs or explains the agents of a YAML file without a Python program: `emberflow run agent.yaml`, `emberflow explain agent.yaml`.

Inputs are lines of JSON; every output becomes a line `{"key": …, "output": …}` when it is committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO, cast

from emberflow.agents.builder import AgentBuilder, json_default
from emberflow.agents.environment import AgentsExecutionEnvironment
from emberflow.agents.yaml.registry import AgentRegistry
from emberflow.connectors.client_sinks import CollectSink
from emberflow.connectors.iterable_source import IterableSource
from emberflow.errors import InvalidArgument, SourceFailed, describe_cause, did_you_mean, shorten
from emberflow.events.batch import Batch
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.options import all_options
from emberflow.plan.agents.resources import ResourceType

Pair = tuple[Any, Any]
"""Key and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRun:
    """One run of an agent of a YAML file."""

    file: str
    inputs: str
    """A file of JSON lines; `-` is the standard input."""
    output: str | None = None
    """A file; None is the standard output."""
    agent: str | None = None
    key: str | None = None
    """The field whose value is the key of an input; without it every line is an input of its own, with its number as key."""
    options: Mapping[str, str]


def run_agents_file(
    wanted: FileRun, environment: type[AgentsExecutionEnvironment] = AgentsExecutionEnvironment
) -> int:
    """Runs the agent over the inputs; returns the number of outputs."""
    env = environment.get_execution_environment()
    config = env.get_config()
    for name, value in wanted.options.items():
        if name in all_options():
            config.set(name, value)
        else:
            config.set_str(name, value)
    env.load_yaml(wanted.file)
    name = _chosen(wanted.agent, list(env.agents), wanted.file)
    source = IterableSource(_Lines.of(wanted.inputs, wanted.key))
    pairs = env.env.add_source(source, "inputs").uid("inputs")
    keyed = pairs.key_by(_key_of)
    with _opened(wanted.output, append=env.env.checkpoint_dir is not None) as file:
        written = _Output(file)
        builder = AgentBuilder(env, keyed, takes_pairs=True).apply(name)
        builder._pairs.sink_to(CollectSink(written)).name("outputs")
        env.execute(name)
    return written.count


def explain_agents_file(file: str, form: str, agent: str | None = None) -> str:
    """The plans of the file's agents, or of one of them, as `text`, `mermaid` or `json`."""
    registry = AgentRegistry()
    shared: dict[ResourceType, dict[str, Any]] = {}
    for declared in registry.load(file, {}):
        shared.setdefault(declared.kind, {})[declared.name] = declared.value
    names = list(registry.agents) if agent is None else [_chosen(agent, list(registry.agents), file)]
    if not names:
        raise _no_agents(file)
    plans = [AgentPlan.from_agent(registry.agent_named(name, shared), None, shared) for name in names]
    if form == "json" and agent is None:
        return json.dumps([json.loads(plan.to_json()) for plan in plans], indent=2)
    return "\n\n".join(plan.explain(form).rstrip("\n") for plan in plans)


def _chosen(wanted: str | None, names: list[str], file: str) -> str:
    if not names:
        raise _no_agents(file)
    if wanted is None and len(names) == 1:
        return names[0]
    listed = ", ".join(names)
    if wanted is None:
        raise InvalidArgument(
            f"{file} declares {len(names)} agents",
            cause=f"they are: {listed}",
            way_out="choose one: --agent NAME",
        )
    if wanted not in names:
        raise InvalidArgument(
            f"{file} has no agent named {wanted!r}{did_you_mean(wanted, names)}", cause=f"it has: {listed}"
        )
    return wanted


def _no_agents(file: str) -> InvalidArgument:
    return InvalidArgument(f"{file} declares no agents", way_out="declare one under agents: or react_agents:")


class _Lines:
    """The inputs with their keys; called again for every restart."""

    def __init__(self, file: str, text: str | None, field: str | None) -> None:
        self._file = file
        self._text = text
        """The content of the standard input, which can be read only once."""
        self._field = field

    @staticmethod
    def of(file: str, field: str | None) -> _Lines:
        if file == "-":
            return _Lines("the standard input", sys.stdin.read(), field)
        if not os.path.isfile(file):
            raise InvalidArgument(f"there is no input file {file!r}", way_out="name a file of JSON lines")
        return _Lines(os.path.abspath(file), None, field)

    def __call__(self) -> Iterator[Pair]:
        if self._text is not None:
            yield from self._pairs(self._text.splitlines())
            return
        try:
            with open(self._file, encoding="utf-8-sig") as lines:
                yield from self._pairs(lines)
        except (OSError, UnicodeError) as error:
            raise SourceFailed(f"{self._file} cannot be read", cause=describe_cause(error)) from error

    def _pairs(self, lines: Any) -> Iterator[Pair]:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"line {number} of {self._file}"
            try:
                value: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SourceFailed(
                    f"{where} is not valid JSON: {shorten(line.strip(), 60)}",
                    cause=describe_cause(error),
                    way_out='write one JSON value per line; text is quoted: "hello"',
                ) from error
            yield (number if self._field is None else self._key(value, where)), value

    def _key(self, value: object, where: str) -> Any:
        field = self._field
        fields = cast("dict[Any, Any]", value) if isinstance(value, dict) else {}
        if field not in fields:
            raise SourceFailed(
                f"{where} has no field {field!r}{did_you_mean(field, fields)}",
                cause=f"it is {shorten(cast('object', value), 60)}",
                way_out="--key names a field that every input has",
            )
        found: object = fields[field]
        if isinstance(found, dict | list):
            raise SourceFailed(f"{where}: the key {field!r} is neither a string nor a number")
        return found


class _Output:
    """Writes committed outputs."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.count = 0

    def __call__(self, batch: Batch) -> None:
        for key, output in batch.values:
            line = json.dumps({"key": key, "output": output}, ensure_ascii=False, default=json_default)
            self._file.write(f"{line}\n")
            self.count += 1
        self._file.flush()


@contextlib.contextmanager
def _opened(path: str | None, *, append: bool) -> Generator[TextIO]:
    """With a checkpoint directory a second run continues, so that its output is appended."""
    if path is None:
        yield sys.stdout
        return
    try:
        file = open(path, "a" if append else "w", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written", cause=describe_cause(error)) from error
    with file:
        yield file


def _key_of(pair: Pair) -> Any:
    return pair[0]
