"""Annotated fields of resources: filled from descriptors and checked."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field, PrivateAttr

from emberflow.agents import BaseChatModelSetup, Resource, Tool, ToolMetadata, ToolType
from emberflow.errors import InvalidArgument


class Size(Enum):
    SMALL = "small"


class Limits(BaseModel):
    most: int


class Setup(BaseChatModelSetup):
    KIND: ClassVar[str] = "own"
    host: str
    retries: int = 3
    tags: list[str] = []  # noqa: RUF012
    mode: Literal["a", "b"] | None = None


class More(Setup):
    size: Size = Size.SMALL
    limits: Limits | None = None


class Store(Resource):
    path: str
    most: int = Field(default=5)


class Own(Resource):
    client: Any

    def __init__(self, address: str) -> None:
        self.address = address


def test_fields_are_filled_and_the_rest_is_for_the_class_above() -> None:
    made = Setup(connection="c", model="m", host="h", temperature=0.5)
    assert (made.host, made.retries, made.tags, made.mode) == ("h", 3, [], None)
    assert made.model_kwargs == {"model": "m", "temperature": 0.5}
    assert Setup(connection="c", host="h").tags is not made.tags
    more = More(connection="c", host="h", retries=1, size="small", mode="b")
    assert (more.retries, more.size, more.mode) == (1, Size.SMALL, "b")
    store = Store(path="p")  # pyright: ignore[reportCallIssue]
    assert (store.path, store.most) == ("p", 5)
    assert Own("a").address == "a"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Setup(connection="c"), "Setup needs an argument 'host'"),
        (lambda: Setup(connection="c", host=5), "the argument 'host' of Setup is 5"),
        (lambda: Setup(connection="c", host="h", retries="3"), "it must be int"),
        (lambda: Setup(connection="c", host="h", retries=True), "it must be int"),
        (lambda: Setup(connection="c", host="h", mode="c"), "mode"),
        (lambda: More(connection="c", host="h", size="large"), "it must be Size"),
    ],
)
def test_arguments_that_do_not_fit(make: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        make()


class Again(BaseChatModelSetup):
    """Declares a parameter of its base again, as Flink Agents' setups do."""

    temperature: float = 0.5
    model: str = "small"
    _client: Any = PrivateAttr(default=None)


def test_a_parameter_of_the_base_may_be_declared_again() -> None:
    made = Again(connection="service", temperature=0.1)
    assert (made.model, made.temperature, made.connection, made._client) == ("small", 0.1, "service", None)
    assert Again(connection="service", model="large").model == "large"


METADATA = ToolMetadata(name="shout", description="Shouts.", args_schema={})


class Shout(Tool):
    """Is given its description."""

    volume: int = 11

    @classmethod
    def tool_type(cls) -> ToolType:
        return ToolType.FUNCTION

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return f"{kwargs['text'].upper()} {self.volume}"


class Described(Shout):
    """Has it."""

    metadata = METADATA


class Computed(Shout):
    """Computes it."""

    @property
    def metadata(self) -> ToolMetadata:  # pyright: ignore[reportIncompatibleVariableOverride]
        return METADATA


def test_a_tool_is_given_its_description_or_has_it() -> None:
    kind: Any = Shout
    made = kind(metadata=METADATA, volume=3)
    assert (made.name, made.call(text="a")) == ("shout", "A 3")
    assert [each().name for each in (Described, Computed)] == ["shout", "shout"]
