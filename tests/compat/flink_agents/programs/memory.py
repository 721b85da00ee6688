"""Memory of a run and of a key, references to it, and events with classes of their own."""

from typing import ClassVar

from flink_agents.api.agents.agent import Agent
from flink_agents.api.core_options import (
    AgentExecutionOptions,
    ShortTermMemoryTtlUpdate,
    ShortTermMemoryTtlVisibility,
)
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.memory_object import MemoryObject
from flink_agents.api.memory_reference import MemoryRef
from flink_agents.api.runner_context import RunnerContext
from pydantic import BaseModel
from pyflink.datastream import KeySelector, StreamExecutionEnvironment


class Visit(BaseModel):
    """A page that somebody looked at."""

    user: str
    page: str


class ByUser(KeySelector):
    def get_key(self, value):
        return value.user


class Counted(Event):
    EVENT_TYPE: ClassVar[str] = "counted"

    def __init__(self, where: MemoryRef, total: int) -> None:
        super().__init__(type=Counted.EVENT_TYPE, attributes={"where": where, "total": total})

    @classmethod
    def from_event(cls, event: Event) -> "Counted":
        assert "where" in event.attributes
        made = cls(where=event.attributes["where"], total=event.attributes["total"])
        return made.reconstruct_from(event)

    @property
    def where(self) -> MemoryRef:
        found = self.get_attr("where")
        return MemoryRef.model_validate(found) if isinstance(found, dict) else found

    @property
    def total(self) -> int:
        return self.get_attr("total")


class Counter(Agent):
    @action(EventType.InputEvent)
    @staticmethod
    def count(event: Event, ctx: RunnerContext) -> None:
        visit = Visit.model_validate(InputEvent.from_event(event).input)
        memory: MemoryObject = ctx.short_term_memory
        total = (memory.get("visits.total") or 0) + 1
        memory.set("visits.total", total)
        pages = memory.get("visits.pages") or []
        memory.set("visits.pages", [*pages, visit.page])
        user = memory.get("user") if memory.is_exist("user") else memory.new_object("user")
        user.set("name", visit.user)
        where = ctx.sensory_memory.set("seen", visit.model_dump(mode="json"))
        ctx.send_event(Counted(where=where, total=total))

    @action(Counted.EVENT_TYPE, "type == 'never'")
    @staticmethod
    def report(event: Event, ctx: RunnerContext) -> None:
        counted = Counted.from_event(event)
        seen = Visit.model_validate(ctx.sensory_memory.get(counted.where))
        assert counted.where.resolve(ctx)["page"] == seen.page
        visits = ctx.short_term_memory.get("visits")
        ctx.send_event(
            OutputEvent(
                output=f"{ctx.short_term_memory.get('user.name')} {counted.total} {seen.page} "
                f"{visits.get_field_names()} {visits.get('pages')}"
            )
        )


env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env=env)
config = agents_env.get_config()
config.set(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS, 3_600_000)
config.set(
    AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_UPDATE_TYPE, ShortTermMemoryTtlUpdate.ON_READ_AND_WRITE
)
config.set(
    AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_VISIBILITY,
    ShortTermMemoryTtlVisibility.NEVER_RETURN_EXPIRED,
)
visits = env.from_collection(
    [Visit(user="ann", page="home"), Visit(user="ben", page="home"), Visit(user="ann", page="cart")]
)
agents_env.from_datastream(input=visits, key_selector=ByUser()).apply(Counter()).to_datastream().print()
agents_env.execute("memory")
