"""Tags of side outputs: `yield tag, value` sends the value to `stream.get_side_output(tag)`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.events.types.type_information import RowTypeInfo, TypeInformation

T = TypeVar("T")


class OutputTag(Generic[T]):
    """Names a side output; two tags with the same id are the same tag.

    A function yields `(tag, value)`, and `stream.get_side_output(tag)` of its step is a `DataStream[T]`. The type is
    given as `OutputTag[str]("rejected")` or as `type_info`, where a list stands for a row. An empty id raises
    `InvalidArgument`.

    ```python
    from collections.abc import Iterator

    from emberflow.streams import OutputTag, ProcessFunction, SideOutput, StreamExecutionEnvironment

    REJECTED = OutputTag("rejected", str)


    class Parse(ProcessFunction[str, int]):
        def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[int | SideOutput]:
            yield int(value) if value.isdigit() else (REJECTED, value)


    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    parsed = env.from_collection(["1", "x"]).process(Parse())
    assert parsed.get_side_output(REJECTED).execute_and_collect(limit=1) == ["x"]
    ```
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(
        self,
        tag_id: str,
        type_info: TypeInformation[T] | type[T] | list[TypeInformation[Any]] | None = None,
    ) -> None:
        if not tag_id:
            raise InvalidArgument("an OutputTag needs a non-empty name")
        self.tag_id = tag_id
        self.type_info: Any = (
            RowTypeInfo(tuple(type_info)) if type_info and isinstance(type_info, list) else type_info
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"


SideOutput = tuple[OutputTag[Any], Any]
"""What a function yields for a side output: `(tag, value)`."""
