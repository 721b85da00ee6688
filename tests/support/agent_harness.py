"""An agent operator whose calls continue when the test says so."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorHandling,
)
from emberflow.operators.agents.agent_operator import AgentOperator
from emberflow.operators.agents.agent_run import RunState
from emberflow.testing import ManualClock, OperatorHarness


class Turn:
    """Awaited: the action stops here until the test continues it."""

    def __await__(self) -> Generator[None]:
        yield


class Call:
    def __init__(self, call: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self._call = call
        self._done = done
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def step(self) -> bool:
        """Runs to the next `Turn`; True if the call has ended."""
        if self._coroutine is None:
            self._coroutine = self._call()
        assert self._coroutine is not None
        try:
            self._coroutine.send(None)
        except StopIteration as end:
            self._done(end.value, None)
        except BaseException as error:
            self._done(None, error)
        else:
            return False
        return True

    def drop(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()


class CallsByHand:
    """A call service without a loop."""

    def __init__(self) -> None:
        self.open: list[Call] = []

    def start(
        self,
        limiter: str,
        capacity: int,
        call: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self.open.append(Call(call, done))

    def wait_for(self, call: Callable[[], Any]) -> Any:
        return asyncio.run(call())

    async def in_thread(self, function: Callable[[], Any], threads: int) -> Any:
        return function()

    def step(self, number: int = 0) -> None:
        """The call leaves `open` before it ends: its end may start the next."""
        call = self.open.pop(number)
        if not call.step():
            self.open.insert(number, call)

    def finish(self, number: int = 0) -> None:
        call = self.open.pop(number)
        while not call.step():
            pass

    def finish_all(self) -> None:
        while self.open:
            self.finish()


class AgentHarness(OperatorHarness):
    """An agent over (key, …) tuples."""

    def __init__(
        self,
        agent: Agent,
        *,
        skip: bool = False,
        restore: bytes | None = None,
        clock: ManualClock | None = None,
        channels: int = 1,
        options: dict[Any, Any] | None = None,
    ) -> None:
        def build(stream: Any) -> Any:
            agents_env = AgentsExecutionEnvironment.get_execution_environment(
                stream.get_execution_environment()
            )
            if skip:
                agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP)
            for option, value in (options or {}).items():
                agents_env.get_config().set(option, value)
            return agents_env.from_datastream(stream, lambda value: value[0]).apply(agent).to_datastream()

        self.calls = CallsByHand()
        super().__init__(build, calls=self.calls, restore=restore, clock=clock, channels=channels)

    @property
    def head(self) -> AgentOperator:
        assert isinstance(self.stage.head, AgentOperator)
        return self.stage.head

    def save(self) -> bytes:
        """What an engine stores while calls are in flight; the operator is as before afterwards."""
        assert self.scope is not None
        before = copy.deepcopy(self.scope.entries)
        self.head.before_save()
        data = self.snapshot()
        self.head.after_save()
        assert self.scope.entries == before
        assert self.scope.parked.keys() == self.scope.work.parked.keys()
        return data

    def park(self) -> bytes:
        """What an engine stores when it detaches the calls in flight. The operator cannot be used afterwards."""
        self.head.before_save()
        data = self.snapshot()
        self.head.detach()
        return data

    def resume(self) -> None:
        self.head.resume()

    @property
    def waits_to_resume(self) -> bool:
        """Whether the scope has runs that are stored or run elsewhere."""
        work = self.scope.work if self.scope is not None else None
        return work is not None and (
            bool(work.parked) or any(run.state is RunState.DORMANT for run in work.runs.values())
        )

    @property
    def unfinished(self) -> bool:
        return bool(self.calls.open) or self.waits_to_resume

    def entries(self) -> dict[Any, Any]:
        assert self.scope is not None
        return self.scope.entries
