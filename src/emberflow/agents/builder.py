"""From an agent's input to its output: what `from_list`, `from_datastream` and `from_dataframe` return."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self

from emberflow.agents.agent import Agent
from emberflow.connectors.client_sinks import CollectSink
from emberflow.errors import InvalidArgument, shorten
from emberflow.plan.agent_plan import AgentPlan
from emberflow.plan.specs import AgentSpec
from emberflow.streams.data_stream import DataStream
from emberflow.streams.keyed_stream import KeyedStream

if TYPE_CHECKING:
    from emberflow.agents.environment import AgentsExecutionEnvironment


class AgentBuilder:
    """`.apply(agent)`, then one or more outputs."""

    def __init__(
        self, agents_env: AgentsExecutionEnvironment, stream: KeyedStream, *, takes_pairs: bool = False
    ) -> None:
        self._agents_env = agents_env
        self._stream = stream
        self._takes_pairs = takes_pairs
        self._output: DataStream | None = None

    def apply(self, agent: Agent) -> Self:
        """Compiles the agent with the environment's settings and resources; raises what is wrong with it."""
        if self._output is not None:
            raise InvalidArgument(
                "an agent was applied already",
                way_out="chain agents over a stream: from_datastream(first.to_datastream(), key).apply(second)",
            )
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = f"; did you mean {agent.__name__}()?" if isinstance(agent, type) else ""
            raise InvalidArgument(f"{shorten(agent)} is not an agent{hint}")
        plan = AgentPlan.from_agent(agent, self._agents_env.get_config(), self._agents_env.resources)
        spec = AgentSpec(plan=plan, plan_id=uuid.uuid4().hex, pairs=self._takes_pairs)
        self._output = self._stream.add_step(spec, plan.name)
        return self

    def to_datastream(self) -> DataStream:
        """The agent's outputs as a stream."""
        if self._output is None:
            raise InvalidArgument("no agent was applied", way_out="call .apply(agent) before")
        return self._output

    def to_list(self) -> list[Any]:
        """A list that is filled when the environment executes: `{key: output}` for inputs of `from_list`, else
        outputs."""
        outputs: list[Any] = []
        self.to_datastream().sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
        return outputs

    def to_dataframe(self, schema: Any) -> Any:
        """A DataFrame of the outputs, batch or streaming as the input; see `DataStream.to_dataframe`."""
        return self.to_datastream().to_dataframe(schema)
