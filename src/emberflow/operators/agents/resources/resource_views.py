"""Views of resources: proxies for a shared resource that implement one of its methods themselves."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from emberflow.operators.admission.gate import Gate
from emberflow.operators.agents.resources.token_estimates import estimated_tokens
from emberflow.operators.time_limit import held_limit

_OWN = ("view_of", "view_method", "view_answer")


class ResourceView:
    """Everything except one method is the resource's own, including its class: `isinstance` sees no difference."""

    __slots__ = _OWN

    def __init__(self, of: Any, method: str, answer: Any) -> None:
        for name, value in zip(_OWN, (of, method, answer), strict=True):
            object.__setattr__(self, name, value)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.view_of.__class__

    def __getattr__(self, name: str) -> Any:
        return self.view_answer if name == self.view_method else getattr(self.view_of, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.view_of, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.view_of, name)

    def __dir__(self) -> Any:
        return dir(self.view_of)

    def __repr__(self) -> str:
        return repr(self.view_of)

    def __eq__(self, other: object) -> bool:
        return self.view_of == unwrapped(other)

    def __hash__(self) -> int:
        return hash(self.view_of)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The resource itself is pickled; a view belongs to one action, or to one process.
        return self.view_of.__reduce_ex__(protocol)


class FunctionToolView(ResourceView):
    """A function used as a tool: can be called like the function, or as a tool."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.view_of.func(*args, **kwargs)


def unwrapped(found: Any) -> Any:
    """The resource behind its views."""
    while isinstance(found, ResourceView):
        found = found.view_of
    return found


def admitted(found: Any, method: str, gate: Gate) -> Any:
    """The resource, with a method whose calls wait at the gate. A blocking method cannot wait there: it gets an attribute
    `admit`, for a caller that awaits it on a thread."""
    if not callable(getattr(found, method, None)):
        return found
    call: Any = getattr(found, method)
    guesses = TokenGuess()

    async def admit(make: Callable[[], Awaitable[Any]], asked_with: Any) -> Any:
        if gate.limits.tokens_per_minute is None:
            return await gate.call(make)
        asked = estimated_tokens(asked_with)
        return await gate.call(make, tokens=asked + guesses.answer, used=guesses.reader(asked))

    async def through_the_gate(*args: Any, **kwargs: Any) -> Any:
        # Of a tool. A model that a tool calls is part of what the tool may take.
        limit = held_limit() if method == "call" else None

        async def make() -> Any:
            if limit is not None:
                limit.go_on()
            return await call(*args, **kwargs)

        try:
            return await admit(make, (args, kwargs))
        finally:
            if limit is not None:
                limit.go_on()

    def at_once(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    vars(at_once)["admit"] = admit
    is_async = inspect.iscoroutinefunction(call)
    return ResourceView(found, method, through_the_gate if is_async else at_once)


class TokenGuess:
    """Estimates the number of tokens in a model's answers from its recent ones."""

    def __init__(self) -> None:
        self.answer = 0.0

    def reader(self, asked: float) -> Callable[[Any], float]:
        """The tokens of a call: as reported in its answer, else estimated from the length of its text."""

        def read(answer: Any) -> float:
            usage: Any = getattr(answer, "usage", None)
            used = asked + estimated_tokens(answer) if usage is None else float(usage.total_tokens)
            self.answer += (max(0.0, used - asked) - self.answer) * 0.2
            return used

        return read
