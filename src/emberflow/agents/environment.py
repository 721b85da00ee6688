"""`AgentsExecutionEnvironment`: reads inputs, applies agents, writes outputs. Only the environment selects the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from emberflow.agents.agent import Agent, add_resource
from emberflow.agents.builder import AgentBuilder
from emberflow.agents.listed_inputs import ListedInputs
from emberflow.agents.yaml.registry import AgentRegistry
from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.options import AgentConfigOptions
from emberflow.plan.agents.resources import ResourceType
from emberflow.plan.job_contract import Engine
from emberflow.streams.data_stream import DataStream
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.streams.functions.function import KeySelector
from emberflow.streams.keyed_stream import KeyedStream
from emberflow.streams.program.tracebacks import user_frames_only
from emberflow.streams.results import JobClient, JobExecutionResult

if TYPE_CHECKING:
    from emberflow.events.types.row import Row
    from emberflow.streams.tables import StreamTableEnvironment, Table

T = TypeVar("T")


class AgentsExecutionEnvironment:
    """The entry point of a program with agents. Wraps a `StreamExecutionEnvironment`: agents are steps of a stream program.

    ```python
    from emberflow.agents import (
        Agent,
        AgentsExecutionEnvironment,
        InputEvent,
        OutputEvent,
        RunnerContext,
        action,
    )


    class Shout(Agent):
        @action(InputEvent)
        @staticmethod
        def shout(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(event.input.upper()))


    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    outputs = env.from_list([{"key": "ann", "value": "hello"}]).apply(Shout()).to_list()
    env.execute("shout")
    assert outputs == [{"ann": "HELLO"}]
    ```
    """

    def __init__(self, env: StreamExecutionEnvironment, t_env: StreamTableEnvironment | None = None) -> None:
        self._t_env = t_env
        self.env = env
        """The stream environment, for sources, settings and steps other than agents."""
        self._config = Configuration()
        self._resources: dict[ResourceType, dict[str, Any]] = {}
        self._registry = AgentRegistry()

    @classmethod
    def get_execution_environment(
        cls,
        env: StreamExecutionEnvironment | None = None,
        t_env: StreamTableEnvironment | None = None,
        *,
        engine: str | Engine | None = None,
        spark: Any = None,
        master: str | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        parallelism: int | None = None,
    ) -> Self:
        """Wraps a given stream environment, or a new one created with the other arguments. `t_env` is the table environment
        around the stream environment, for `from_table` and `to_table`.

        The other arguments are those of `StreamExecutionEnvironment.get_execution_environment`. Raises `InvalidArgument` if
        both are given.
        """
        if env is None and t_env is not None:
            env = t_env.get_execution_environment()
        if env is None:
            env = StreamExecutionEnvironment.get_execution_environment(
                engine=engine,
                spark=spark,
                master=master,
                checkpoint_dir=checkpoint_dir,
                parallelism=parallelism,
            )
        elif any(value is not None for value in (engine, spark, master, checkpoint_dir, parallelism)):
            raise InvalidArgument(
                "a stream environment was given, so the engine and its settings are already chosen",
                way_out="give them to StreamExecutionEnvironment.get_execution_environment() instead",
            )
        elif not isinstance(env, StreamExecutionEnvironment):
            raise InvalidArgument(
                f"{shorten(env)} is not a StreamExecutionEnvironment",
                way_out="AgentsExecutionEnvironment.get_execution_environment(engine='local') creates one",
            )
        if t_env is not None and t_env.get_execution_environment() is not env:
            raise InvalidArgument(
                "the table environment belongs to another stream environment",
                way_out="make it with StreamTableEnvironment.create(env)",
            )
        return cls(env, t_env)

    @property
    def t_env(self) -> StreamTableEnvironment:
        """The environment of tables that are inputs and outputs of agents."""
        from emberflow.streams.tables import StreamTableEnvironment

        if self._t_env is None:
            self._t_env = StreamTableEnvironment.create(self.env)
        return self._t_env

    def get_config(self, path: str | None = None) -> Configuration:
        """Settings of all agents applied from now on; `path` is a JSON file with initial keys and values."""
        if path is not None:
            self._config.load(path)
        return self._config

    def set_option(self, name: str, value: Any) -> Self:
        """As `StreamExecutionEnvironment.set_option`: an option of the engine, such as `call_store`. Those of agents belong to
        `get_config()`. Raises `InvalidArgument` for an unknown name."""
        self.env.set_option(name, value)
        return self

    def add_resource(self, name: str, resource_type: ResourceType, instance: Any) -> Self:
        """Adds a resource for all agents; an agent's own resource of the same name takes precedence."""
        add_resource(self._resources, name, resource_type, instance, "the environment")
        return self

    @property
    def resources(self) -> dict[ResourceType, dict[str, Any]]:
        """The resources added with `add_resource`, by type and name."""
        return self._resources

    # agents by name

    def load_yaml(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Self:
        """Adds the agents that YAML files declare, to be applied by name, and their shared resources.

        May be called several times; names are unique over all files. Raises `InvalidAgent` with file, line and column,
        and `PackageMissing` without the extra `yaml`.
        """
        for declared in self._registry.load(paths, self._resources):
            self.add_resource(declared.name, declared.kind, declared.value)
        return self

    @property
    def agents(self) -> dict[str, Agent]:
        """The agents loaded with `load_yaml`, by name."""
        return self._registry.agents

    def agent_named(self, name: str) -> Agent:
        """An agent loaded with `load_yaml`; raises `InvalidArgument`, which suggests the closest name."""
        return self._registry.agent_named(name, self._resources)

    # input

    def from_list(self, inputs: Iterable[Any]) -> AgentBuilder:
        """Inputs `{"key": …, "value": …}` (or `k` and `v`); an input without a key gets a unique one.

        A list is read when the program is executed: what is appended to it before that is processed as well. Raises
        `InvalidArgument` for items of another form.
        """
        stream = self.env.add_source(ListedInputs(inputs), "collection").key_by(_first)
        return AgentBuilder(self, stream, takes_pairs=True)

    def from_datastream(
        self, input: DataStream[T], key_selector: KeySelector[T, Any] | Callable[[T], Any] | str | None = None
    ) -> AgentBuilder:
        """The records of a stream of this environment.

        The key is a function of the record, or the name of a field if records are dictionaries; a keyed stream needs none.
        Raises `InvalidArgument` for a stream without keys, or one of another environment.
        """
        if input.get_execution_environment() is not self.env:
            raise InvalidArgument(
                "the stream belongs to another environment",
                way_out="make the agents' environment around the stream's: get_execution_environment(env)",
            )
        if key_selector is not None:
            selector: Any = Column(key_selector) if isinstance(key_selector, str) else key_selector
            return AgentBuilder(self, input.key_by(selector))
        keyed: Any = input
        if not isinstance(input, KeyedStream):
            raise InvalidArgument(
                "an agent works per key, and the stream has no keys",
                way_out="from_datastream(stream, key_selector), or call key_by() before",
            )
        return AgentBuilder(self, keyed)

    def from_table(
        self, input: Table, key_selector: KeySelector[Row, Any] | Callable[[Row], Any] | str
    ) -> AgentBuilder:
        """The rows of a table of this environment's `t_env`, as `Row`s; the key is a function of the row, or a column."""
        if isinstance(key_selector, str):
            input.get_schema().place(key_selector, "the table")
        return self.from_datastream(self.t_env.to_data_stream(input), key_selector)

    def from_dataframe(self, dataframe: Any, key_selector: str | Callable[[Any], Any]) -> AgentBuilder:
        """The rows of a table as dictionaries; the key is a column or a function of the row.

        Raises `InvalidArgument`, which suggests the closest name, for a column that the table does not have.
        """
        stream = self.env.from_dataframe(dataframe)
        if not isinstance(key_selector, str):
            return AgentBuilder(self, stream.key_by(key_selector))
        columns = [str(name) for name in getattr(dataframe, "columns", [])]
        if columns and key_selector not in columns:
            raise InvalidArgument(
                f"the table has no column {key_selector!r}{did_you_mean(key_selector, columns)}",
                cause=f"its columns: {', '.join(columns)}",
            )
        kinds: dict[str, str] = (
            dict(getattr(dataframe, "dtypes", ())) if hasattr(dataframe, "sparkSession") else {}
        )
        column = (key_selector, kinds.get(key_selector, "string"))
        return AgentBuilder(self, stream.key_by(Column(key_selector)), key_column=column)

    # running

    @user_frames_only
    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs all agents, and streams that end in a sink, and waits for them to finish; raises the job's failure. Outputs that
        no sink takes are discarded."""
        return self.env.execute(job_name or self._job_name)

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """The same in the background."""
        return self.env.execute_async(job_name or self._job_name)

    @property
    def _job_name(self) -> str:
        return self._config.get(AgentConfigOptions.JOB_IDENTIFIER) or "emberflow agents"


class Column:
    """A key selector by column name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, row: Any) -> Any:
        return row[self._name]


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]
