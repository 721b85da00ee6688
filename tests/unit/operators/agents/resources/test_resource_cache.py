"""Resources of an agent: created on first use, once per process, closed in reverse order, whatever happens."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentPlan,
    AgentsExecutionEnvironment,
    ChatModel,
    InputEvent,
    OutputEvent,
    Resource,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
)
from emberflow.errors import (
    ActionFailed,
    InvalidAgent,
    InvalidArgument,
    ResourceFailed,
    StepFailed,
    UnknownResource,
)
from emberflow.operators.agents.resources import resource_cache
from emberflow.operators.agents.resources.resource_cache import ResourceCache
from emberflow.streams import MapFunction
from emberflow.testing import run_agent

CONNECTION, MODEL = ResourceType.CHAT_MODEL_CONNECTION, ResourceType.CHAT_MODEL

history: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    history.clear()


class Connection(Resource):
    def __init__(self, address: str = "", api_key: str = "") -> None:
        self.api_key = api_key
        history.append("made connection")

    def open(self) -> None:
        history.append("opened connection")

    def close(self) -> None:
        history.append("closed connection")


class Model(Resource):
    def __init__(self, connection: str) -> None:
        self._connection = connection
        history.append("made model")

    def open(self) -> None:
        self.connection = self.resource_context.get_resource(self._connection, CONNECTION)
        history.append("opened model")

    def close(self) -> None:
        history.append("closed model")


def with_model(function: Any = None) -> Agent:
    return (
        Agent("shop")
        .add_action("act", [InputEvent], function or asks)
        .add_resource("connection", CONNECTION, ResourceDescriptor(clazz=Connection))
        .add_resource("model", MODEL, ResourceDescriptor(clazz=Model, connection="connection"))
    )


def asks(event: InputEvent, ctx: RunnerContext) -> None:
    model = ctx.get_resource("model", MODEL)
    history.append("asked")
    ctx.send_event(OutputEvent(id(model)))
    if event.input == "bad":
        raise ValueError("bad input")


LIFE = [
    "made model",
    "made connection",
    "opened connection",
    "opened model",
    *["asked"] * 20,
]
CLOSED = ["closed model", "closed connection"]


def run(agent: Agent, inputs: list[Any], parallelism: int) -> list[Any]:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=parallelism)
    results = (
        agents_env.from_list([{"key": key, "value": value} for key, value in enumerate(inputs)])
        .apply(agent)
        .to_list()
    )
    agents_env.execute()
    return [next(iter(result.values())) for result in results]


def test_resources_are_created_lazily_once_and_closed_in_reverse_order() -> None:
    outputs = run(with_model(), [0] * 20, parallelism=2)
    assert len(set(outputs)) == 1, "both subtasks share one"
    assert history == [*LIFE, *CLOSED]


def test_unused_resources_are_not_created() -> None:
    run(with_model(lambda event, ctx: None), [0] * 3, parallelism=2)
    assert history == []


def test_a_resource_is_closed_before_what_it_depends_on() -> None:
    cache = ResourceCache(AgentPlan.from_agent(with_model()))
    cache.get_resource("model", MODEL)
    cache.close()
    assert history == [*LIFE[:4], *CLOSED]


def test_resources_are_closed_when_the_job_fails() -> None:
    with pytest.raises(ActionFailed):
        run(with_model(), [0, "bad"], parallelism=2)
    assert history[-2:] == CLOSED


def test_two_uses_of_an_agent_have_separate_resources() -> None:
    plan = AgentPlan.from_agent(with_model())
    first, again = resource_cache.acquire("one", plan), resource_cache.acquire("one", plan)
    other = resource_cache.acquire("two", plan)
    assert first is again
    assert other is not first
    first.get_resource("model", MODEL)
    resource_cache.release("one")
    assert "closed model" not in history, "one subtask still uses it"
    resource_cache.release("one")
    assert history[-2:] == CLOSED
    resource_cache.release("two")
    resource_cache.release("two")  # once too often does no harm


def test_threads_that_ask_at_once_get_the_same_resource() -> None:
    class Slow(Resource):
        def __init__(self) -> None:
            history.append("made")
            time.sleep(0.02)

    agent = with_model().add_resource("slow", MODEL, ResourceDescriptor(clazz=Slow))
    cache = ResourceCache(AgentPlan.from_agent(agent))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.get_resource("slow", MODEL))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert history == ["made"]
    assert len({id(item) for item in found}) == 1


def test_a_resource_that_failed_can_be_requested_again() -> None:
    class Shy(Resource):
        def open(self) -> None:
            history.append("tried")
            if len(history) == 1:
                raise ConnectionError("not yet")

    cache = ResourceCache(
        AgentPlan.from_agent(with_model().add_resource("shy", MODEL, ResourceDescriptor(clazz=Shy)))
    )
    with pytest.raises(ResourceFailed, match="not yet"):
        cache.get_resource("shy", MODEL)
    assert isinstance(cache.get_resource("shy", MODEL), Shy)
    assert history == ["tried", "tried"]


def test_a_resource_that_could_not_be_opened_is_closed() -> None:
    """It may hold half a connection, and is never returned."""

    class Half(Connection):
        def open(self) -> None:
            raise ConnectionError("no answer")

    cache = ResourceCache(
        AgentPlan.from_agent(with_model().add_resource("half", MODEL, ResourceDescriptor(clazz=Half)))
    )
    with pytest.raises(ResourceFailed, match="no answer"):
        cache.get_resource("half", MODEL)
    assert history == ["made connection", "closed connection"]


def test_a_resource_that_fails_to_close_does_not_keep_others_open(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Resource):
        def close(self) -> None:
            raise OSError("still busy")

    agent = with_model().add_resource("stubborn", MODEL, ResourceDescriptor(clazz=Stubborn))
    cache = ResourceCache(AgentPlan.from_agent(agent))
    cache.get_resource("model", MODEL)
    cache.get_resource("stubborn", MODEL)
    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        cache.close()
    assert history[-2:] == CLOSED
    assert "closing the chat_model 'stubborn' failed: OSError: still busy" in caplog.messages


def test_secrets_are_resolved_where_the_resource_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("SHOP_KEY", "from the environment")
    agent = (
        with_model()
        .add_resource("named", CONNECTION, ResourceDescriptor(clazz=Connection, api_key=Secret("SHOP_KEY")))
        .add_resource(
            "filed",
            CONNECTION,
            ResourceDescriptor(clazz=Connection, api_key=Secret(file=str(tmp_path / "key"))),
        )
    )
    plan = AgentPlan.from_agent(agent)
    assert "from the" not in plan.to_json()
    cache = ResourceCache(plan)
    assert cache.get_resource("named", CONNECTION).api_key == "from the environment"
    assert cache.get_resource("filed", CONNECTION).api_key == "from the file"


def test_a_plain_value_is_returned_unchanged() -> None:
    cache = ResourceCache(AgentPlan.from_agent(with_model().add_resource("text", ResourceType.PROMPT, "Hi")))
    assert cache.get_resource("text", ResourceType.PROMPT) == "Hi"
    cache.close()


class Nested(Resource):
    def __init__(self, headers: dict[str, Any], fails: bool = False) -> None:
        if fails:
            raise ValueError(f"refused {headers}")
        self.headers = headers


def test_secrets_inside_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NESTED_SECRET", "sk-hidden")
    headers = {"Authorization": Secret("NESTED_SECRET"), "more": [Secret("NESTED_SECRET")]}

    def cache(**arguments: Any) -> ResourceCache:
        agent = Agent("a").add_action("act", [InputEvent], lambda event, ctx: None)
        agent.add_resource("r", ResourceType.VECTOR_STORE, ResourceDescriptor(Nested, **arguments))
        return ResourceCache(AgentPlan.from_agent(agent))

    made = cache(headers=headers).get_resource("r", ResourceType.VECTOR_STORE)
    assert made.headers == {"Authorization": "sk-hidden", "more": ["sk-hidden"]}
    with pytest.raises(ResourceFailed) as caught:
        cache(headers=headers, fails=True).get_resource("r", ResourceType.VECTOR_STORE)
    assert "sk-hidden" not in str(caught.value)
    assert "refused {'Authorization': '***'" in str(caught.value)
    with pytest.raises(InvalidAgent, match="the argument 'Authorization' of Nested is a secret"):
        ResourceDescriptor(Nested, headers={"Authorization": "Bearer sk-hidden"})


def test_a_function_that_fails_to_close_does_not_keep_others_open() -> None:
    class Fails(MapFunction):
        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            raise ValueError("close failed")

    class Counted(Resource):
        def open(self) -> None:
            history.append("open")

        def close(self) -> None:
            history.append("close")

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(ctx.get_resource("r", MODEL) is not None))

    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    agent = (
        Agent("a").add_action("act", [InputEvent], act).add_resource("r", MODEL, ResourceDescriptor(Counted))
    )
    stream = env.env.from_collection([1]).map(Fails())
    env.from_datastream(stream, lambda value: value).apply(agent).to_list()
    with pytest.raises(StepFailed, match="close"):
        env.execute("closing")
    assert history == ["open", "close"]


class Keyed(Resource):
    def __init__(self, api_key: str, ca: str = "") -> None:
        self.api_key = api_key

    def open(self) -> None:
        self.seen = dict(self.secret_origins)


def test_a_resource_knows_where_its_secrets_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYKEY", "k-123")
    key = tmp_path / "key"
    key.write_text("k-456")
    for secret, origin in (
        (Secret("MYKEY"), "the variable MYKEY"),
        (Secret(file=str(key)), f"the file '{key}'"),
    ):
        agent = Agent("a").add_action("act", [InputEvent], lambda event, ctx: None)
        agent.add_resource("keyed", MODEL, ResourceDescriptor(clazz=Keyed, api_key=secret, ca="x"))
        made = ResourceCache(AgentPlan.from_agent(agent)).get_resource("keyed", MODEL)
        assert made.seen == {"api_key": origin}
        assert "secret_origins" not in made.model_dump()


def test_a_refused_key_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYKEY", "k-123")
    service = ChatModel.openai("m", api_key=Secret("MYKEY"), base_url="http://localhost:1/v1")
    agent = (
        Agent("a").add_action("act", [InputEvent], lambda event, ctx: None).add_resource("m", MODEL, service)
    )
    made = ResourceCache(AgentPlan.from_agent(agent)).get_resource("m", CONNECTION)
    assert made._key_from == "the variable MYKEY"


def test_an_argument_that_does_not_exist_is_no_fault_of_an_input() -> None:
    agent = with_model().add_resource("bad", MODEL, ResourceDescriptor(clazz=Model, conection="connection"))
    agent.add_action("use", [InputEvent], lambda event, ctx: ctx.get_resource("bad", MODEL))
    with pytest.raises(InvalidArgument, match="no argument 'conection'; did you mean 'connection'") as failed:
        run_agent(agent, [0])
    assert failed.value.way_out == "its arguments are connection"
    agent = Agent("a").add_action("act", [InputEvent], lambda event, ctx: ctx.call_tool("nope"))
    with pytest.raises(UnknownResource) as unknown:
        run_agent(agent, [0])
    assert "ON_ERROR" not in unknown.value.way_out
