"""Plans of any agent survive a JSON round trip; no text causes harm as an expression."""

from __future__ import annotations

import contextlib
from typing import Any

import cel
from hypothesis import given
from hypothesis import strategies as st

from emberflow.agents import (
    Agent,
    AgentPlan,
    Configuration,
    Event,
    InputEvent,
    ResourceDescriptor,
    ResourceType,
    Secret,
)
from emberflow.errors import InvalidAgent
from emberflow.plan.cel import expression_text
from emberflow.plan.cel.expression import CelExpression, ConditionFailed


class Scored(Event):
    score: int


def one(event: Event, ctx: Any) -> None: ...


async def two(event: Scored, ctx: Any) -> None: ...


def holds(event: Event) -> bool:
    return event.id == ""


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
values = st.recursive(
    st.one_of(scalars, st.binary(max_size=4), st.builds(Secret, names)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.just("$emberflow"), st.integers()), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
settings_of = st.dictionaries(
    names.filter(lambda name: not name.endswith(("key", "secret", "token"))), values
)
triggers = st.one_of(
    st.sampled_from(
        [InputEvent, Event, Scored, "Scored", "input > 5", "type == 'Scored' && score > 1", holds]
    ),
    names,
)
functions = st.sampled_from([one, two])


@st.composite
def agents(draw: Any) -> Agent:
    agent = Agent(draw(st.text(max_size=8)))
    for index, name in enumerate(draw(st.lists(names, min_size=1, max_size=4, unique=True))):
        conditions = draw(st.lists(triggers, min_size=1, max_size=3))
        function = one if index == 0 else draw(functions)
        config: dict[str, Any] = {f"c_{key}": value for key, value in draw(settings_of).items()}
        agent.add_action(name, [InputEvent, *conditions] if index == 0 else conditions, function, **config)
    for name in draw(st.lists(names, max_size=3, unique=True)):
        kind = draw(st.sampled_from(list(ResourceType)))
        made = ResourceDescriptor(clazz=Scored, arguments=draw(settings_of))
        agent.add_resource(name, kind, draw(st.sampled_from([made, "a prompt", one])))
    return agent


@given(agents(), settings_of)
def test_a_plan_survives_a_json_round_trip(agent: Agent, settings: dict[str, Any]) -> None:
    try:
        plan = AgentPlan.from_agent(agent, Configuration(settings))
    except InvalidAgent:
        # A generated name may look like a misspelt known one, or an annotation may not match its trigger.
        return
    read = AgentPlan.from_json(plan.to_json())
    assert read == plan
    assert read.to_json() == plan.to_json()


EVENT = Event(
    type="Scored", attributes={"score": 6, "text": "abc", "deep": {"n": 1, "none": None}, "list": [1, 2]}
)
WORDS = [
    "score", "text", "deep.n", "deep.none", "deep", "list", "attributes", "attributes.score", "type", "id", "nope",
    "EventType", "EventType.InputEvent", "'Scored'", '"a\\"b"', "r'\\'", "1", "2.5", "true", "null", "has(deep.n)",
    "has(attributes.nope)", "list.all(x, x > 0)", "list.map(score, score + 1)", "size(text)", "text.size()",
    "[", "]", "(", ")", "{", "}", ":", ",", ".", "?", "==", "!=", "<", ">", "&&", "||", "!", "-", "+", "in", "// c\n",
]  # fmt: skip


def parsed(text: str) -> CelExpression | None:
    try:
        return CelExpression(text, "here")
    except InvalidAgent:
        return None


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)))
def test_any_text_is_an_expression_or_is_rejected(text: str) -> None:
    made = parsed(text)
    if made is not None:
        with contextlib.suppress(ConditionFailed):
            made.matches(EVENT)


operands = st.sampled_from([word for word in WORDS[:26] if word not in ("EventType",)])
comparisons = st.builds(
    " ".join, st.tuples(operands, st.sampled_from(["==", "!=", "<", ">", "in"]), operands)
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{} || {}".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=6,
)


@given(conditions)
def test_the_fast_path_gives_the_same_result_as_cel(text: str) -> None:
    made = parsed(text)
    if made is None:
        return
    everything = {
        **EVENT.attributes,
        "type": EVENT.type,
        "id": EVENT.id,
        "attributes": EVENT.attributes,
        "EventType": expression_text.EVENT_TYPES,
    }
    try:
        expected = cel.evaluate(text, everything)
    except Exception:
        expected = None
    try:
        found = made.matches(EVENT)
    except ConditionFailed:
        found = None
    assert found == (expected if isinstance(expected, bool) else None)
