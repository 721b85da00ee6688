"""Tags of side outputs: `yield tag, value` sends the value to `stream.get_side_output(tag)`."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument


class OutputTag:
    """Two tags with one id are the same tag."""

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not tag_id:
            raise InvalidArgument("an OutputTag needs a name that is not empty")
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
