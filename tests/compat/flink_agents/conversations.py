"""For each program, what the model says and what the program prints."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.support.ollama_server import Reply, Rule


@dataclass(frozen=True)
class Conversation:
    """Lines are compared without their order: keys have none among each other."""

    prints: list[str]
    rules: tuple[Rule, ...] = ()
    endless: bool = False
    """The program watches a file, and is stopped when it has printed everything."""


def triage(urgency: int, *tags: str, id: str | None = None) -> Reply:
    found = {"urgency": urgency, "tags": [*tags]}
    return Reply(json.dumps(found if id is None else {"id": id, **found}))


TRIAGE = (
    Rule("crushed", Reply(tools={"report_damage": {"id": "t1", "text": "crushed"}}), after_tool=False),
    Rule("crushed", triage(5, "delivery", id="t1"), last="reported t1"),
    Rule("kettle", triage(1, id="t2")),
    Rule("lid", triage(3, "quality", id="t3")),
)
TRIAGED = [
    "{'id': 't1', 'urgency': 5, 'tags': ['delivery']}",
    "{'id': 't2', 'urgency': 1, 'tags': []}",
    "{'id': 't3', 'urgency': 3, 'tags': ['quality']}",
]

CONVERSATIONS: dict[str, Conversation] = {
    "workflow": Conversation(TRIAGED, TRIAGE, endless=True),
    "yaml_agent": Conversation(TRIAGED, TRIAGE),
    "react": Conversation(["t1 5 ['delivery']", "t2 1 []", "t3 3 ['quality']"], TRIAGE),
    "parallel_requests": Conversation(
        ["{'id': 1, 'text': 'cheap and bad'}"],
        (
            Rule("its price", Reply('{"side": "price", "verdict": "good"}')),
            Rule("its quality", Reply('{"side": "quality", "verdict": "bad"}')),
            Rule("price=good quality=bad", Reply('{"text": "cheap and bad"}')),
        ),
    ),
    "skills_agent": Conversation(
        ["It is 42."],
        (
            Rule("six times", Reply(tools={"load_skill": {"name": "multiplication"}}), after_tool=False),
            Rule("six times", Reply(tools={"bash": {"command": "expr 6 '*' 7"}}), last="expr A '*' B"),
            Rule("six times", Reply("It is 42."), after_tool=True, last="42"),
        ),
    ),
    "memory": Conversation(
        [
            "ann 1 home ['pages', 'total'] ['home']",
            "ann 2 cart ['pages', 'total'] ['home', 'cart']",
            "ben 1 home ['pages', 'total'] ['home']",
        ]
    ),
    "own_resources": Conversation(
        [
            "hello 0.1 2: a sum / a sum / 3",
            "hello 0.1 2: words",
            "here 3 hello 0 2: The task is 7 / a direct question",
            "here 3 hello 0 2: The task is this / a whole setup",
        ]
    ),
    "file_results": Conversation(['{"word": "ember", "length": 5}', '{"word": "flow", "length": 4}']),
    "plain_values": Conversation(["Paris 15 list 2026-01-03", "Ulm 6 list 2026-01-02"]),
    "durable_calls": Conversation(["cup 3", "kettle 4", "teapot 4"]),
    "two_agents": Conversation(
        ["Hire a better carrier."],
        (Rule("2 tickets of urgency [5, 1]", Reply("Hire a better carrier.")), *TRIAGE),
    ),
    "table_agents": Conversation(
        ["o1 [2, 5]: talk to the driver", "o2 [4]: nothing to do"],
        (
            Rule("soaked. (1767225600)", Reply('{"grade": 2}')),
            Rule("dry. (1767225720)", Reply('{"grade": 5}')),
            Rule("Right on time. (1767225660)", Reply('{"grade": 4}')),
        ),
    ),
    "table_results": Conversation(['{"id":1,"amount":0.1}', '{"id":2,"amount":3.0}']),
    "injected_and_secret": Conversation(
        ["Order 17 is shipped."],
        (
            Rule("order 17", Reply(tools={"status": {"order": "17"}}), after_tool=False),
            Rule("order 17", Reply("Order 17 is shipped."), last="17 of acme is shipped (abc)"),
        ),
    ),
}
