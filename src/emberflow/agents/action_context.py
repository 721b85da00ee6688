"""`RunnerContext` as programs see it.

It is the operators' own class. Type checkers see one thing more: that a chat without an output type answers with a
`ChatMessage`, a class of this package, which the operators below it cannot name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberflow.operators.agents.runner_context import RunnerContext as _RunnerContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from typing import Any, TypeVar, overload

    from emberflow.agents.models.chat_message import ChatMessage

    T = TypeVar("T")

    class RunnerContext(_RunnerContext):
        @overload
        def chat(
            self,
            model: str,
            messages: Any,
            prompt_args: Mapping[str, Any] | None = None,
            *,
            output: None = None,
            max_steps: int | None = None,
            **settings: Any,
        ) -> Awaitable[ChatMessage]: ...
        @overload
        def chat(
            self,
            model: str,
            messages: Any,
            prompt_args: Mapping[str, Any] | None = None,
            *,
            output: type[T],
            max_steps: int | None = None,
            **settings: Any,
        ) -> Awaitable[T]: ...
        @overload
        def chat(
            self,
            model: str,
            messages: Any,
            prompt_args: Mapping[str, Any] | None = None,
            *,
            output: object,
            max_steps: int | None = None,
            **settings: Any,
        ) -> Awaitable[Any]: ...
        def chat(
            self,
            model: str,
            messages: Any,
            prompt_args: Mapping[str, Any] | None = None,
            *,
            output: Any = None,
            max_steps: int | None = None,
            **settings: Any,
        ) -> Awaitable[Any]: ...

else:
    RunnerContext = _RunnerContext
