"""Agents that ask models through the official clients, on every engine (A18, A38)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    ChatModel,
    InputEvent,
    OutputEvent,
    OutputSchema,
    ResourceType,
    RunnerContext,
    Secret,
    action,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import LOCAL_2, SPARK, Host, on_every_host
from tests.support import anthropic_answers, openai_answers
from tests.support.model_server import Answer, ModelServer, Request
from tests.support.small_agents import applied


@dataclass(frozen=True)
class Verdict:
    guilty: bool
    years: int = 0


class Court(Agent):
    """Asks two services and a local model; the answers of the first are typed."""

    def __init__(self, address: str, key_file: Path) -> None:
        super().__init__()
        judge = ChatModel.openai_compatible("gpt-5", base_url=f"{address}/v1", max_concurrent=4, timeout=60)
        self.add_resource("judge", ResourceType.CHAT_MODEL, judge)
        clerk = ChatModel.anthropic("claude-sonnet-5", base_url=address, api_key=Secret(file=str(key_file)))
        self.add_resource("clerk", ResourceType.CHAT_MODEL, clerk)

    @action(InputEvent)
    @staticmethod
    async def decide(event: InputEvent, ctx: RunnerContext) -> None:
        verdict = OutputSchema(Verdict)
        said = await ctx.chat("judge", f"case {event.input[0]}", output_schema=verdict)
        found = verdict.parse(said.content)
        noted = await ctx.chat("clerk", f"note {found.years}")
        ctx.send_event(OutputEvent(f"{event.input[0]}: {noted.content}"))


class Service:
    """Speaks both formats. The first request of each kind is throttled, and one case is too hard for it."""

    def __init__(self) -> None:
        self.throttled: set[str] = set()

    def __call__(self, request: Request) -> Answer:
        if request.path not in self.throttled:
            self.throttled.add(request.path)
            return Answer({"error": {"message": "Slow down."}}, status=429, headers={"Retry-After": "0.05"})
        asked = request.body["messages"][-1]["content"]
        if request.path == "/v1/chat/completions":
            number = int(asked.split()[-1])
            return openai_answers.completion(f'{{"guilty": true, "years": {number}}}')
        return anthropic_answers.message(anthropic_answers.text(f"noted {asked[0]['text'].split()[-1]}"))


def answers(env: StreamExecutionEnvironment, agent: Agent) -> DataStream[Any]:
    return applied(env, env.from_collection([(number,) for number in range(12)]), agent)


@on_every_host(hosts=[LOCAL_2, SPARK])
def test_typed_answers_of_two_services_that_are_throttled_first(host: Host, tmp_path: Path) -> None:
    # In a file: Spark's workers may have been started before this test, without its environment.
    key_file = tmp_path / "key"
    key_file.write_text("sk-ant-of-a-test\n", encoding="utf-8")
    with ModelServer(Service()) as server:
        agent = Court(server.url, key_file)
        found = host.run(lambda env: answers(env, agent))
        paths = [request.path for request in server.requests]
    assert sorted(found) == sorted(f"{number}: noted {number}" for number in range(12))
    # Throttled requests are repeated, others are not.
    assert paths.count("/v1/chat/completions") == 13
    assert paths.count("/v1/messages") == 13
