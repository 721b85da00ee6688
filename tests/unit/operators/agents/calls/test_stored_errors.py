"""What a durable call raises, on the first run and when it is answered from the log."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import pytest

from emberflow.agents import Agent, ErrorEvent, InputEvent, OutputEvent, Retry, RunnerContext
from emberflow.errors import BudgetExceeded, InvalidArgument, RecordedError, describe_cause, names_of
from emberflow.events.codecs import decode, encode
from emberflow.operators.agents.calls.durable_calls import RAISED, ActionCalls, CallRecord
from emberflow.operators.agents.calls.stored_errors import LONGEST_MESSAGE, is_error_of, revived, stored
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.memory_log import MemoryLog


class StatusError(Exception):
    """Requires keyword arguments, like the errors of many clients."""

    def __init__(self, message: str, *, request: Any, response: Any) -> None:
        super().__init__(message)
        self.request = request
        self.response = response


class NotFound(StatusError):
    pass


class TwoArguments(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Slips(Exception):
    """Restored by pickle as something else."""

    def __reduce__(self) -> Any:
        return str, ("slipped",)


class Explodes(Exception):
    def __reduce__(self) -> Any:
        return explode, ()


class Needs(Exception):
    """Its message comes from an attribute that cannot be stored."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        return f"locked: {self.lock.locked()}"


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


class OwnGroup(ExceptionGroup[Exception]):
    pass


def explode() -> Any:
    raise OSError("boom")


def back(error: BaseException) -> Any:
    """Through the log, as another process reads it."""
    return revived(decode(encode(stored(error))))


def test_exceptions_are_restored_faithfully() -> None:
    for error in (
        ValueError("x", 1),
        KeyError("k"),
        OSError(2, "no such file", "/x"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        BudgetExceeded("spent", cause="c", way_out="w"),
        NotFound("404", request={"url": "/a"}, response=404),
        TwoArguments(7, "seven"),
        Slips("s"),
        Explodes("e", 2),
        Unreadable("u"),
    ):
        found = back(error)
        assert type(found) is type(error)
        assert found.args == error.args
        assert describe_cause(found) == describe_cause(error)
    found = back(NotFound("404", request={"url": "/a"}, response=404))
    assert (found.request, found.response) == ({"url": "/a"}, 404)
    assert back(TwoArguments(7, "seven")).code == 7


def test_an_attribute_that_cannot_be_stored_is_dropped() -> None:
    found = back(NotFound("404", request=threading.Lock(), response={"status": 404}))
    assert type(found) is NotFound
    assert str(found) == "404"
    assert found.response == {"status": 404}
    assert not hasattr(found, "request")


def test_an_exception_that_cannot_be_recreated_is_replaced() -> None:
    found = back(Needs())
    assert type(found) is RecordedError
    assert found.type_name == "Needs"
    assert found.message == "locked: False"
    assert names_of(found) == names_of(Needs())
    assert is_error_of(found, (Needs,))
    assert is_error_of(found, (Exception,))
    assert not is_error_of(found, (ValueError, InvalidArgument, RecordedError))
    assert describe_cause(found) == "Needs: locked: False"
    assert back(found).names == found.names


def test_a_class_that_no_longer_exists() -> None:
    module = types.ModuleType("gone_module")
    exec(
        "class Gone(LookupError):\n    def __init__(self, *, n):\n        super().__init__(n)",
        module.__dict__,
    )
    sys.modules["gone_module"] = module
    kind: Any = module.Gone
    data = [encode(stored(kind(n=1))), encode(stored(KeyError("k")))]
    assert type(revived(decode(data[0]))) is kind
    del sys.modules["gone_module"]
    found = revived(decode(data[0]))
    assert type(found) is RecordedError
    assert found.names[:2] == ("gone_module.Gone", "builtins.LookupError")
    assert found.message == "1"
    assert is_error_of(found, (LookupError,))
    assert is_error_of(found, (kind,))
    assert isinstance(revived(decode(data[1])), KeyError)


def test_a_class_defined_inside_a_function() -> None:
    class Local(ValueError):
        def __init__(self, *, n: int) -> None:
            super().__init__(n)

    found = back(Local(n=1))
    assert is_error_of(found, (Local,))
    assert is_error_of(found, (ValueError,))
    assert not is_error_of(found, (KeyError,))
    assert describe_cause(found).endswith("Local: 1")


def test_causes_contexts_and_notes_are_kept() -> None:
    try:
        try:
            raise NotFound("404", request=1, response=2)
        except NotFound as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        error.add_note("a note")
        found = back(error)
    assert found.__notes__ == ["a note"]
    assert type(found.__cause__) is NotFound
    assert found.__cause__.request == 1
    assert found.__suppress_context__
    # An exception may be part of its own chain.
    one, other = ValueError(1), ValueError(2)
    one.__cause__, other.__cause__ = other, one
    assert back(one).__cause__.args == (2,)


def test_groups_are_restored_with_their_members() -> None:
    group = ExceptionGroup("several", [NotFound("404", request=1, response=2), Needs(), KeyError("k")])
    found = back(group)
    assert type(found) is ExceptionGroup
    assert [type(item) for item in found.exceptions] == [NotFound, RecordedError, KeyError]
    assert found.message == "several"
    with pytest.raises(OwnGroup):
        raise back(OwnGroup("own", [ValueError(1)]))


def test_a_large_exception_keeps_its_class_and_the_beginning_of_its_message() -> None:
    found = back(NotFound("x" * 50_000_000, request="y" * 50_000_000, response=1))
    assert type(found) is NotFound
    assert len(str(found)) == LONGEST_MESSAGE
    assert len(encode(stored(ValueError("x" * 50_000_000)))) < 100_000


def failing(error: BaseException) -> Any:
    def call() -> Any:
        raise error

    return call


@pytest.mark.parametrize(
    "error",
    [NotFound("404", request=threading.Lock(), response=1), Needs(), Slips("s")],
    ids=["b", "c", "slips"],
)
def test_a_replay_raises_what_the_call_raised(error: Exception) -> None:
    log = MemoryLog()

    def run() -> BaseException:
        calls = ActionCalls(log, "u/k-1/1/", restarts=False)
        call = calls.next(max, (1,), {})
        with pytest.raises(Exception) as raised:  # noqa: PT011 - looked at below
            calls.run_now(call, failing(error), None)
        return raised.value

    first, again, third = run(), run(), run()
    assert first is error
    assert again is not third
    assert describe_cause(again) == describe_cause(third) == describe_cause(first)
    assert is_error_of(again, (type(error),))


def test_a_record_of_the_first_version_is_raised() -> None:
    log = MemoryLog()
    log.write_now(CallRecord("u/k-1/1/1", "builtins.max", "0" * 16, "max(1)", RAISED, KeyError("old")))
    calls = ActionCalls(log, "u/k-1/1/", restarts=False)
    with pytest.raises(KeyError, match="old"):
        calls.run_now(calls.next(max, (1,), {}), failing(ValueError()), None)


def harness(act: Any, log: MemoryLog, restore: bytes | None = None, **guards: Any) -> AgentHarness:
    async def tell(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.error_type, event.message, event.attempts)))

    agent = Agent("a").add_action("act", [InputEvent], act, **guards).add_action("tell", [ErrorEvent], tell)
    made = AgentHarness(agent, restore=restore)
    made.head.runtime.log = log
    return made


@pytest.mark.parametrize("parked", [False, True], ids=["in flight", "from the log"])
@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize("kind", [Needs, Slips])
def test_error_events_are_the_same_whichever_process_ends_the_action(
    kind: type[Exception], attempts: int, parked: bool
) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await Turn()
        raise kind()

    log = MemoryLog()
    guards = {"retry": Retry(attempts=2, backoff_ms=0, on=(kind,))} if attempts == 2 else {}
    made = harness(act, log, **guards)  # pyright: ignore[reportArgumentType]
    made.send([("k", 1)])
    if parked:
        data = made.park()
        made.calls.finish_all()
        made.close()
        made = harness(act, log, data, **guards)
        made.resume()
        # Until the epoch is committed: a batch that is repeated must find it again.
        assert any("act" in record.function for record in log.records.values())
    made.calls.finish_all()
    assert made.values == [(kind.__name__, str(kind()), attempts)]
    made.close()


def test_retry_matches_what_a_recorded_call_raised() -> None:
    """The process was lost between the record of the failed call and the end of the attempt."""
    calls: list[int] = []

    def service() -> str:
        calls.append(1)
        return "fine"

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ctx.durable_execute_async(service), ctx.attempt)))

    log = MemoryLog()
    made = harness(act, log, retry=Retry(attempts=2, backoff_ms=0, on=(Needs,)))
    made.send([("k", 1)])
    call_id = f"{made.head.step.uid}/{made.head.runtime.key_digest('k')}-1/1/1"
    name = f"{service.__module__}.{service.__qualname__}"
    log.write_now(CallRecord(call_id, name, "", "service()", RAISED, stored(Needs())))
    made.calls.finish_all()
    assert made.values == [("fine", 2)]
    assert calls == [1]
    made.close()
