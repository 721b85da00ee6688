"""An agent that uses everything available to actions: expressions, predicates, settings of an action, resources, secrets."""

from __future__ import annotations

from typing import Any

from emberflow.agents import (
    Agent,
    Event,
    InputEvent,
    OutputEvent,
    Resource,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
    action,
    chat_model_connection,
    chat_model_setup,
    tool,
)

SECRET_VALUE = "s3cr3t-value"


class Priced(Event):
    name: str
    price: int


class Connection(Resource):
    def __init__(self, api_key: str) -> None:
        self.signed = api_key == SECRET_VALUE


class Model(Resource):
    """Depends on another resource."""

    def __init__(self, connection: str, words: list[str]) -> None:
        self._name = connection
        self._words = words

    def open(self) -> None:
        self._connection: Connection = self.resource_context.get_resource(
            self._name, ResourceType.CHAT_MODEL_CONNECTION
        )

    def ask(self, price: int) -> str:
        return f"{self._words[price % 2]}{'!' if self._connection.signed else '?'}"


def is_free(event: Event) -> bool:
    return event.type == "Priced" and event.get_attr("price") == 0


class Workshop(Agent):
    def __init__(self, secret_file: str) -> None:
        super().__init__()
        self._secret_file = secret_file

    @chat_model_connection
    def connection(self) -> ResourceDescriptor:
        return ResourceDescriptor(Connection, api_key=Secret(file=self._secret_file))

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(Model, connection="connection", words=["even", "odd"])

    @tool
    @staticmethod
    def double(number: int) -> int:
        """Twice the number."""
        return number * 2

    @action(InputEvent)
    @staticmethod
    def price(event: InputEvent, ctx: RunnerContext) -> None:
        name, price = event.input
        ctx.send_event(Priced(name=name, price=price))

    @action("type == 'Priced' && price > 10")
    @staticmethod
    def dear(event: Priced, ctx: RunnerContext) -> None:
        word = ctx.get_resource("model", ResourceType.CHAT_MODEL).ask(event.price)
        ctx.send_event(OutputEvent((event.name, "dear", event.price, word)))

    @action(is_free)
    @staticmethod
    def free(event: Priced, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.name, "free", 0, "")))


def add(event: Priced, ctx: RunnerContext) -> None:
    twice = ctx.get_resource("double", ResourceType.TOOL)(event.price)
    ctx.send_event(OutputEvent((event.name, ctx.action_config["label"], twice, "")))


def workshop(secret_file: str) -> Agent:
    return Workshop(secret_file).add_action(
        "add", ["type == 'Priced' && price in [1, 2]"], add, label="small"
    )


INPUTS: list[tuple[str, int]] = [("a", 20), ("b", 0), ("a", 1), ("a", 11), ("b", 5), ("b", 2)]
OUTPUTS: list[tuple[Any, ...]] = [
    ("a", "dear", 20, "even!"),
    ("b", "free", 0, ""),
    ("a", "small", 2, ""),
    ("a", "dear", 11, "odd!"),
    ("b", "small", 4, ""),
]
