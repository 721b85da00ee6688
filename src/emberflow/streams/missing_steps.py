"""Says what to call first when a step is not offered by the stream that it was called on.

Base of the classes of `streams` from which steps are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

_OF_JOINS = frozenset({"where", "equal_to", "window", "apply"})


class ExplainsMissingSteps:
    """Raises an AttributeError with the way out for a step that another kind of stream has."""

    continues_with: ClassVar[str] = ""
    """What leads from here to a stream, or to the next part of a join."""

    # Type checkers must still report attributes that do not exist.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            first = None if name.startswith("_") else self._what_to_call_before(name)
            if first is not None:
                raise AttributeError(f"{kind!r} object has no {name}(); call {first} before it")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)

    def _what_to_call_before(self, name: str) -> str | None:
        """The call whose result has the step; None if there is none."""
        from emberflow.streams.data_stream import DataStream
        from emberflow.streams.keyed_stream import KeyedStream
        from emberflow.streams.windowed_stream import WindowedStream

        if isinstance(self, DataStream):
            if hasattr(KeyedStream, name):
                return "key_by()"
            return "key_by() and window(), or window_all()," if hasattr(WindowedStream, name) else None
        offered_later = hasattr(DataStream, name) or name in _OF_JOINS
        return self.continues_with or None if offered_later else None
