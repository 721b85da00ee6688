"""How tools are called: plain functions on a thread, and users' tools in whichever form their `call` has."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from emberflow.errors import ToolFailed
from emberflow.operators.agents.calls.host_threads import host_threads

_log = logging.getLogger("emberflow.agents")


async def call_function(function: Callable[..., Any], /, **arguments: Any) -> Any:
    """Awaits a coroutine function; runs any other on a thread, so that it does not block the event loop."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    context = copy_context()

    def bound() -> Any:
        return context.run(_for_a_future, functools.partial(function, **arguments))

    run = host_threads()
    # A wrapped coroutine function is recognized by its result.
    result = await (asyncio.to_thread(bound) if run is None else run(bound))
    return await result if inspect.isawaitable(result) else result


def _for_a_future(function: Callable[[], Any]) -> Any:
    """A future cannot hold a StopIteration: whoever awaits it would wait forever."""
    try:
        return function()
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"the function raised {type(error).__name__}") from error


async def ready_tools(tools: Sequence[Any]) -> list[Any]:
    """The tools whose descriptions are known, after those of MCP servers have been asked for. One whose server cannot be
    reached is left out: a chat that does not need it must not fail. Raises UnknownResource for a name that no server knows."""
    waiting = [tool.prepare() for tool in tools if hasattr(tool, "prepare")]
    if not waiting:
        return list(tools)
    answers = iter(await asyncio.gather(*waiting, return_exceptions=True))
    found: list[Any] = []
    for tool in tools:
        answer = next(answers) if hasattr(tool, "prepare") else None
        if isinstance(answer, ToolFailed):
            _log.warning("a chat model is called without the tool %r: %s", tool.name, answer.message)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append(tool)
    return found


def takes_object(call: Callable[..., Any]) -> bool:
    """Whether a tool's `call` takes the arguments as one dictionary, rather than each by its name."""
    parameters = list(inspect.signature(call).parameters.values())
    if not parameters:
        return False
    first = parameters[0]
    return first.kind is first.POSITIONAL_ONLY or first.name == "arguments"


def uniform_call(call: Callable[..., Any], written: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function that takes a dictionary, keyword arguments, or both, for any form of `Tool.call`; arguments by
    position are passed on. `written` is the method as its class defines it; `call` may be a wrapper around it."""
    with_object = takes_object(written)
    if with_object and inspect.iscoroutinefunction(call) and _takes_keywords(written):
        return call

    async def call_it(arguments: Any = None, /, *more: Any, **given: Any) -> Any:
        if more or not isinstance(arguments, dict | None):
            return await call_function(functools.partial(call, arguments, *more), **given)
        every: dict[str, Any] = {**(arguments or {}), **given}
        if with_object:
            return await call_function(functools.partial(call, every))
        return await call_function(call, **every)

    return call_it


def _takes_keywords(call: Callable[..., Any]) -> bool:
    return any(item.kind is item.VAR_KEYWORD for item in inspect.signature(call).parameters.values())
