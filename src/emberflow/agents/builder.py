"""Connects an agent's input to its output: what `from_list`, `from_datastream` and `from_dataframe` return."""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from typing import TYPE_CHECKING, Any, Self

from emberflow.agents.agent import Agent
from emberflow.agents.built_in.public_api import PublicApi
from emberflow.connectors.client_sinks import CollectSink
from emberflow.dead_letters.letter_files import RedriveSource, letter_sink, letters_folder
from emberflow.errors import InvalidArgument, shorten
from emberflow.observability.listeners import listener_calls
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.guards import DEAD_LETTERS
from emberflow.plan.agents.options import AgentConfigOptions, AgentExecutionOptions, ErrorHandling
from emberflow.plan.graphs.stream_graph import ASIDE
from emberflow.plan.specs import AgentSpec
from emberflow.streams import WatermarkStrategy
from emberflow.streams.data_stream import DataStream, DataStreamSink
from emberflow.streams.keyed_stream import KeyedStream
from emberflow.streams.program.building import add_keyed_step, is_bounded, leave_out, specs_of, together_with

if TYPE_CHECKING:
    from emberflow.agents.environment import AgentsExecutionEnvironment
    from emberflow.streams.tables import Schema, Table


_IDLE_MS = 1_000


class AgentBuilder:
    """Call `.apply(agent)`, then one or more of the output methods."""

    def __init__(
        self,
        agents_env: AgentsExecutionEnvironment,
        stream: KeyedStream[Any, Any],
        *,
        takes_pairs: bool = False,
        key_column: tuple[str, str] = ("key", "string"),
    ) -> None:
        self._agents_env = agents_env
        self._stream = stream
        self._takes_pairs = takes_pairs
        self._key_column = key_column
        self._output: DataStream[Any] | None = None
        self._has_letters = False
        self._letters_sink: DataStreamSink | None = None
        """Writes the dead letters to files, unless the program consumes them."""

    def apply(self, agent: Agent | str) -> Self:
        """Compiles the agent, or the one that `load_yaml` loaded under this name, with the environment's settings and
        resources; raises `InvalidAgent`."""
        if self._output is not None:
            raise InvalidArgument(
                "an agent was applied already",
                way_out="chain agents over a stream: from_datastream(first.to_datastream(), key).apply(second)",
            )
        if isinstance(agent, str):
            agent = self._agents_env.agent_named(agent)
        if not isinstance(agent, Agent):
            hint = f"; did you mean {agent.__name__}()?" if isinstance(agent, type) else ""
            raise InvalidArgument(f"{shorten(agent)} is not an agent{hint}")
        listener_calls(self._agents_env.get_config().get(AgentConfigOptions.EVENT_LISTENERS) or [])
        plan = AgentPlan.from_agent(agent, self._agents_env.get_config().copy(), self._agents_env.resources)
        spec = AgentSpec(plan=plan, plan_id=uuid.uuid4().hex, takes_pairs=self._takes_pairs, api=PublicApi())
        self._has_letters = plan.config.get(AgentExecutionOptions.ON_ERROR) is ErrorHandling.DEAD_LETTER
        directory = self._stream.get_execution_environment().checkpoint_dir
        if not self._has_letters or directory is None:
            self._output = add_keyed_step(self._stream, spec, plan.name)
            return self
        folder = letters_folder(directory, self._name_for_files(plan.name))
        bounded = is_bounded(self._stream)
        self._output = add_keyed_step(with_redriven(self._stream, folder, bounded=bounded), spec, plan.name)
        letters = self._output.get_side_output(DEAD_LETTERS)
        sink = letter_sink(folder, takes_pairs=self._takes_pairs, bounded=bounded)
        self._letters_sink = letters.sink_to(sink).name("dead letters")
        return self

    def uid(self, uid: str) -> Self:
        """The id under which the agent's state is found again after the program was changed."""
        self._pairs.uid(uid)
        return self

    def to_datastream(self, output_type: Any = None) -> DataStream[Any]:
        """The agent's outputs as a stream, converted to a type if one is given."""
        return self._pairs.map(_output_of, output_type).name("outputs")

    def to_table(self, schema: Schema, output_type: Any = None) -> Table:
        """The agent's outputs as a table: rows, tuples, dictionaries or objects with the schema's columns as fields."""
        return self._agents_env.t_env.from_data_stream(self.to_datastream(output_type), schema)

    def dead_letters(self) -> DataStream[Any]:
        """Inputs that failed, with the option `on-error` = `dead-letter`: dictionaries with id, key, input, timestamp,
        agent, action, error_type, error, attempts, failed_ms. Once the program consumes them, no files are written."""
        found = self._pairs
        if not self._has_letters:
            raise InvalidArgument(
                "the agent has no dead letters: its option 'on-error' is not 'dead-letter'",
                way_out="get_config().set(AgentExecutionOptions.ON_ERROR, 'dead-letter') before apply()",
            )
        if self._letters_sink is not None:
            leave_out(self._letters_sink)
        return found.get_side_output(DEAD_LETTERS).map(_same).name("dead letters")

    def to_list(self) -> list[Any]:
        """A list that is filled when the environment executes: `{key: output}` for inputs of `from_list`, else
        outputs."""
        outputs: list[Any] = []
        stream = self._pairs.map(_as_dict).name("outputs") if self._takes_pairs else self.to_datastream()
        stream.sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
        return outputs

    def to_dataframe(self, schema: Any = None) -> Any:
        """A DataFrame of the outputs, batch or streaming like the input. Without a schema it has two columns: the key,
        and `output`, a string (other values as JSON)."""
        if schema is not None:
            return self.to_datastream().to_dataframe(schema)
        name, kind = self._key_column
        return self._pairs.map(AsRow(name, kind == "string")).to_dataframe(f"{name} {kind}, output string")

    def _name_for_files(self, agent: str) -> str:
        """The agent's name; numbered from the second agent with that name on."""
        specs = specs_of(self._stream.get_execution_environment())
        others = sum(isinstance(spec, AgentSpec) and spec.plan.name == agent for spec in specs)
        # With a character that adds a digest to the folder's name: another agent may be called "a-2".
        return f"{agent}#{others + 1}" if others else agent

    @property
    def _pairs(self) -> DataStream[Any]:
        if self._output is None:
            raise InvalidArgument("no agent was applied", way_out="call .apply(agent) before")
        return self._output


def with_redriven(stream: KeyedStream[Any, Any], folder: str, *, bounded: bool) -> KeyedStream[Any, Any]:
    """The stream together with redriven dead letters."""
    name = f"{ASIDE}redriven-{os.path.basename(folder)}"
    env = stream.get_execution_environment()
    source = env.add_source(RedriveSource(folder, bounded=bounded), "redriven letters").uid(name)
    # It is idle most of the time, and must not hold back event time.
    strategy = WatermarkStrategy.no_watermarks().with_idleness(_IDLE_MS).with_timestamp_assigner(_its_own)
    return together_with(stream, source.assign_timestamps_and_watermarks(strategy).uid(f"{name}-timestamps"))


def _its_own(value: Any, timestamp: int) -> int:
    return timestamp


def _same(value: Any) -> Any:
    return value


def _output_of(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _as_dict(pair: tuple[Any, Any]) -> dict[Any, Any]:
    return {pair[0]: pair[1]}


class AsRow:
    """A (key, output) pair as a row of two columns."""

    def __init__(self, key_column: str, key_as_text: bool) -> None:
        self._key_column = key_column
        self._key_as_text = key_as_text

    def __call__(self, pair: tuple[Any, Any]) -> dict[str, Any]:
        key, output = pair
        return {
            self._key_column: str(key) if self._key_as_text and key is not None else key,
            "output": output if isinstance(output, str) else json.dumps(output, default=json_default),
        }


def json_default(value: Any) -> Any:
    """For values that json cannot serialize itself."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else str(value)
