"""What is stored about calls and errors contains no secrets; the answer of a call is stored unchanged."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
    action,
)
from emberflow.approvals.answering import questions
from emberflow.errors import StepFailed
from emberflow.operators.agents.calls import stored_errors
from emberflow.operators.agents.calls.durable_calls import ActionCalls, CallRecord
from emberflow.streams import StreamExecutionEnvironment

KEY = "sk-of-the-resource-314159"
GIVEN = "sk-of-a-call-271828"
ANSWER = "the-answer-of-the-service"


class Service:
    """A resource that was created with a secret, and repeats it where it should not."""

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key


async def refuse(url: str, api_key: str, *, note: str) -> str:
    raise PermissionError(f"{url} refused {note} with api_key={api_key!r}")


async def answer(text: str, *, password: str) -> str:
    return ANSWER


class Careless(Agent):
    def __init__(self) -> None:
        super().__init__()
        described = ResourceDescriptor(clazz=Service, api_key=Secret("SERVICE_KEY"))
        self.add_resource("service", ResourceType.TOOL, described)

    @action(InputEvent)
    async def act(self, event: InputEvent, ctx: RunnerContext) -> None:
        service: Any = ctx.get_resource("service", ResourceType.TOOL)
        if event.input == "broken":
            raise ValueError(f"the key {service.api_key} is refused, and so is password={GIVEN}")
        try:
            await ctx.durable_execute_async(refuse, "http://service", GIVEN, note=service.api_key)
        except PermissionError:
            await ctx.durable_execute_async(answer, "text", password=GIVEN)
        await ctx.ask_human("Nobody answers")
        ctx.send_event(OutputEvent(event.input))


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_nothing_that_a_job_stores_contains_a_secret(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SERVICE_KEY", KEY)
    checkpoint = tmp_path / "checkpoint"
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=checkpoint)
    env.set_option("state_backend", backend)
    env.enable_checkpointing(20)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    config = agents_env.get_config()
    config.set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    config.set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "events"))
    stream = env.from_collection(["broken", "fine"])
    agents_env.from_datastream(stream, lambda value: value).apply(Careless()).to_datastream().print()
    job = env.execute_async()
    try:
        deadline = time.monotonic() + 120
        while not (questions(checkpoint) and list(checkpoint.glob("dead-letters/*/letters/*.jsonl"))):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        job.savepoint(str(tmp_path / "savepoint"))
        stored = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    finally:
        job.cancel()
    for secret in (KEY, GIVEN):
        assert [path for path, data in stored.items() if secret.encode() in data] == []
        assert secret not in caplog.text
    # The search looks in the right places: what is not secret is found.
    for folder in (checkpoint / "calls", tmp_path / "savepoint" / "calls"):
        data = b"".join(data for path, data in stored.items() if path.is_relative_to(folder))
        assert ANSWER.encode() in data
        assert b"refuse('http://service', ***, note='***')" in data
        assert b"http://service refused *** with api_key='***'" in data
        assert b"answer('text', password=***)" in data
    (letters,) = checkpoint.glob("dead-letters/*/letters/*.jsonl")
    assert b"the key *** is refused, and so is password=***" in stored[letters]


class Nothing:
    def find(self, call_id: str) -> CallRecord | None:
        return None


def shown(function: Any, *args: Any, **kwargs: Any) -> str:
    calls = ActionCalls(Nothing(), "p/", restarts=False, secrets={KEY})  # pyright: ignore[reportArgumentType]
    return calls.next(function, args, kwargs).shown.partition("(")[2]


def test_arguments_are_masked_by_name_at_every_depth() -> None:
    from functools import partial

    assert shown(refuse, "u", "k", note=1) == "'u', ***, note=1)"
    assert shown(partial(refuse, "u"), "k", note=1) == "***, note=1)"
    assert shown(Service("x").__init__, "k") == "***)"
    assert shown(refuse, "u", {"x": KEY}, "more", note=[{"password": "p"}]) == (
        "'u', ***, 'more', note=[{'password': '***'}])"
    )
    assert shown(print, KEY, sep=KEY) == "'***', sep='***')"


class WithRequest(Exception):
    """Like errors of clients: the request with its headers is attached."""

    def __init__(self, message: str, request: object) -> None:
        super().__init__(message, request)
        self.request = request


class Request:
    def __init__(self) -> None:
        self.headers = {"x": KEY}


def stored(error: Exception) -> BaseException:
    kept = stored_errors.stored(error, secrets={KEY})
    assert KEY.encode() not in pickle.dumps(kept)
    return stored_errors.revived(kept)


def test_an_exception_keeps_its_type_and_everything_except_secrets() -> None:
    plain = ValueError("wrong", 3, {"a": [1]})
    assert (type(stored(plain)), stored(plain).args) == (ValueError, plain.args)
    made = stored(KeyError(f"no {KEY}", {"token": "t", "n": 1}))
    assert (type(made), made.args) == (KeyError, ("no ***", {"token": "***", "n": 1}))
    noted = ValueError("wrong")
    noted.add_note(f"with {KEY}")
    assert stored(noted).__notes__ == ["with ***"]
    assert noted.__notes__ == [f"with {KEY}"], "the raised exception is not changed"
    step = stored(StepFailed(f"step {KEY}", cause=f"ValueError: {KEY}", way_out="fix it"))
    assert isinstance(step, StepFailed)
    assert (step.message, step.cause, step.way_out) == ("step ***", "ValueError: ***", "fix it")
    nested = stored(ExceptionGroup("all", [ValueError(KEY)]))
    assert KEY not in str(nested)
    hidden = stored(WithRequest(f"refused {KEY}", Request()))
    assert "refused ***" in str(hidden)
