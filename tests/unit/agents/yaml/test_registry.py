"""Loading YAML files: what is built, and what is refused, with which message."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    AgentsExecutionEnvironment,
    ChatMessage,
    InputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
    Secret,
    load_agents,
)
from emberflow.agents.agent_skills.skills import SkillSourceSpec
from emberflow.agents.yaml.aliases import CLASS_ALIASES
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.plan.agents.resources import Resource
from emberflow.testing import run_agent
from tests.support import yaml_agents

Write = Callable[..., str]
TARGETS = "tests.support.yaml_agents"
CONNECTION = ResourceType.CHAT_MODEL_CONNECTION

GREETER = f"""
agents:
  - name: greeter
    actions:
      - name: greet
        function: {TARGETS}:greet
        trigger_conditions: [input]
        config: {{greeting: good day, retries: 3}}
"""

JUDGE = f"""
agents:
  - name: judge_agent
    actions:
      - {{name: ask, function: "{TARGETS}:ask", trigger_conditions: [input]}}
    chat_model_setups:
      - {{name: judge, clazz: emberflow.agents.BaseChatModelSetup, connection: scripted, prompt: question, tools: [add]}}
    prompts:
      - name: question
        messages:
          - {{role: system, content: 'Answer as JSON: {{"score": 1}}'}}
          - {{content: "Is {{question}} good?"}}
chat_model_connections:
  - name: scripted
    clazz: emberflow.testing.ScriptedChatModel
    replies: {{"Is tea good": "yes", "Is soap good": "no"}}
tools:
  - {{name: add, function: "{TARGETS}:add"}}
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "agents.yaml") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def environment() -> AgentsExecutionEnvironment:
    return AgentsExecutionEnvironment.get_execution_environment(engine="local")


def test_an_agent_is_applied_by_name(write: Write) -> None:
    env = environment()
    env.load_yaml(write(GREETER))
    outputs = env.from_list([{"key": "k", "value": "Ann"}]).apply("greeter").to_list()
    env.execute()

    assert outputs == [{"k": "good day Ann"}]
    assert list(env.agents) == ["greeter"]
    assert env.agents["greeter"].actions["greet"][0] == (InputEvent.EVENT_TYPE,)


def test_agents_run_without_an_environment(write: Write) -> None:
    agent = load_agents(write(JUDGE))["judge_agent"]

    assert run_agent(agent, ["tea", "soap"]).outputs == ["yes 4", "no 3"]


def test_resources_are_built(write: Write) -> None:
    env = environment().load_yaml(write(JUDGE))
    own = env.agents["judge_agent"].resources
    setup: ResourceDescriptor = own[ResourceType.CHAT_MODEL]["judge"]

    assert (setup.target_module, setup.target_clazz) == ("emberflow.agents", "BaseChatModelSetup")
    assert setup.arguments == {"connection": "scripted", "prompt": "question", "tools": ["add"]}
    assert own[ResourceType.PROMPT]["question"] == Prompt.from_messages(
        [
            ChatMessage(role="system", content='Answer as JSON: {"score": 1}'),
            ChatMessage(content="Is {question} good?"),
        ]
    )
    assert env.resources[ResourceType.TOOL]["add"].metadata.name == "add"


def test_arguments_of_tools_are_injected(write: Write) -> None:
    text = f"""
    agents:
      - name: finder
        actions: [{{name: find, function: "{TARGETS}:find", trigger_conditions: [input]}}]
        tools:
          - name: look_up
            function: {TARGETS}:look_up
            injected_args: {{tenant: {{source: config, key: tenant_id}}}}
    """
    env = environment().load_yaml(write(text))
    env.get_config().set_str("tenant_id", "acme")
    outputs = env.from_list([{"key": 1, "value": "o-7"}]).apply("finder").to_list()
    env.execute()

    assert outputs == [{1: "o-7 of acme"}]
    tool = env.agents["finder"].resources[ResourceType.TOOL]["look_up"]
    assert list(tool.metadata.args_schema["properties"]) == ["order"]


def test_skills_of_every_source_are_declared(write: Write, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    text = """
    skills:
      - name: all
        paths: [mine, /elsewhere, other]
        urls: ["https://example.com/skills.zip"]
        package: [{package: my_pkg, resource: skills}]
    """
    env = environment().load_yaml(write(text))

    assert env.resources[ResourceType.SKILLS]["all"].sources == [
        SkillSourceSpec("local", {"path": str(tmp_path.resolve() / "mine")}),
        SkillSourceSpec("local", {"path": "/elsewhere"}),
        SkillSourceSpec("local", {"path": "other"}),
        SkillSourceSpec("url", {"url": "https://example.com/skills.zip"}),
        SkillSourceSpec("package", {"package": "my_pkg", "resource": "skills"}),
    ]


TEAM = """
react_agents:
  - name: coordinator
    chat_model: {clazz: emberflow.agents.BaseChatModelSetup, connection: server, tools: [researcher]}
    prompt: {text: "{question}"}
    sub_agents: [researcher]
  - name: researcher
    description: Finds out facts.
    chat_model: researching
    prompt: ask
    output_schema: {type: object, properties: {height: {type: integer}}, required: [height]}
    max_steps: 3
    chat_model_setups: [{name: researching, clazz: emberflow.agents.BaseChatModelSetup, connection: server}]
    prompts: [{name: ask, messages: [{content: "Look up: {input}"}]}]
chat_model_connections:
  - {name: server, clazz: tests.support.yaml_agents.TeamModel}
"""


def test_react_agents_need_no_functions_and_call_each_other(write: Write) -> None:
    agents = load_agents(write(TEAM))

    assert run_agent(agents["researcher"], ["Mont Blanc"]).outputs == [{"height": 4806}]
    assert run_agent(agents["coordinator"], [{"question": "How high?"}]).outputs == [
        'It says: {"height": 4806}'
    ]


BAD_TEAMS = {
    "an unknown agent": ("sub_agents: [researcher]", "sub_agents: [reseacher]", "did you mean 'researcher'?"),
    "an unknown model": (
        "chat_model: researching",
        "chat_model: reserching",
        "chat model 'reserching', which",
    ),
    "an unknown prompt": ("prompt: ask", "prompt: asc", "the prompt 'asc', which does not exist"),
    "no steps": ("max_steps: 3", "max_steps: 0", "'max_steps' must be at least 1, got 0"),
    "a class that is missing": (
        "output_schema: {type: object, properties: {height: {type: integer}}, required: [height]}",
        f"output_schema: {TARGETS}:Heigth",
        "has no 'Heigth'",
    ),
    "two of a name": ("name: researcher", "name: coordinator", "the agent 'coordinator' is declared twice"),
}


@pytest.mark.parametrize("case", BAD_TEAMS)
def test_a_mistake_in_a_react_agent_is_shown_with_its_place(case: str, write: Write) -> None:
    before, after, message = BAD_TEAMS[case]
    with pytest.raises(InvalidAgent, match=re.escape(message)) as raised:
        load_agents(write(TEAM.replace(before, after)))
    assert re.match(r".*agents\.yaml:\d+:\d+: ", raised.value.message)


def test_agents_that_call_each_other_in_a_cycle_are_refused(write: Write) -> None:
    cyclic = TEAM.replace("max_steps: 3", "sub_agents: [coordinator]")
    env = environment().load_yaml(write(cyclic))
    with pytest.raises(InvalidAgent, match="in a cycle: coordinator -> researcher -> coordinator"):
        env.from_list([]).apply("coordinator")


def test_actions_are_shared_by_name(write: Write) -> None:
    chained = f"""
    agents:
      - name: doubler
        actions:
          - {{name: double, function: "{TARGETS}:double", trigger_conditions: [input]}}
          - report
      - name: shouter
        actions: [shout]
    """
    shared = f"""
    actions:
      - {{name: report, function: "{TARGETS}:report", trigger_conditions: [doubled]}}
      - {{name: shout, function: "{TARGETS}:Functions.shout", trigger_conditions: ["type == '_input_event'"]}}
    """
    agents = load_agents([write(chained), write(shared, "shared.yaml")])

    assert run_agent(agents["doubler"], [4]).outputs == [8]
    assert agents["shouter"].actions["shout"][1] is yaml_agents.Functions.shout


def test_only_whole_conditions_are_aliases(write: Write) -> None:
    text = GREETER.replace("[input]", """[input, chat_response, "attributes.kind == 'input'", "'input'"]""")

    assert load_agents(write(text))["greeter"].actions["greet"][0] == (
        InputEvent.EVENT_TYPE,
        "_chat_response_event",
        "attributes.kind == 'input'",
        "'input'",
    )


def test_a_file_may_be_loaded_after_the_one_that_needs_it(write: Write) -> None:
    agents, shared = JUDGE.split("chat_model_connections:")
    env = environment()
    env.load_yaml(write(agents))
    with pytest.raises(
        InvalidAgent, match=r"agents\.yaml:7:.*refers to the chat model connection 'scripted'"
    ):
        env.from_list([]).apply("judge_agent")
    env.load_yaml(write(f"chat_model_connections:{shared}", "models.yaml"))
    env.from_list([]).apply("judge_agent")


def test_a_reference_to_a_secret_is_no_value(write: Write) -> None:
    text = """
    chat_model_connections:
      - name: one
        clazz: a.B
        api_key: ${OPENAI_API_KEY}
        headers: {X-Token: "${ X_TOKEN }", list: ["${file:/run/secrets/x}", plain]}
    """
    env = environment().load_yaml(write(text))

    assert env.resources[ResourceType.CHAT_MODEL_CONNECTION]["one"].arguments == {
        "api_key": Secret("OPENAI_API_KEY"),
        "headers": {"X-Token": Secret("X_TOKEN"), "list": [Secret(file="/run/secrets/x"), "plain"]},
    }


def test_the_value_of_a_secret_is_not_in_the_plan(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    env = environment().load_yaml(
        write(GREETER + "chat_model_connections: [{name: c, clazz: a.B, api_key: '${OPENAI_API_KEY}'}]")
    )
    env.from_list([]).apply("greeter").to_datastream().print()

    assert "sk-very-secret" not in env.env.explain("json")


def test_a_refused_file_leaves_nothing_behind(write: Write) -> None:
    env = environment()
    bad = write("agents: [{name: other, actions: [nothing]}]", "bad.yaml")
    with pytest.raises(InvalidAgent, match="nothing"):
        env.load_yaml([write(JUDGE), bad])

    assert env.agents == {}
    assert env.resources == {}


def test_names_are_unique_over_all_calls(write: Write) -> None:
    env = environment().load_yaml(write(JUDGE))
    for text, what in [
        ("agents: [{name: judge_agent}]", "agent 'judge_agent' is declared twice"),
        ("chat_model_connections: [{name: scripted, clazz: a.B}]", "connection 'scripted' is declared twice"),
    ]:
        with pytest.raises(InvalidAgent, match=rf"again\.yaml:1:\d+: the .*{what}"):
            env.load_yaml(write(text, "again.yaml"))
    env.add_resource("p", ResourceType.PROMPT, Prompt.from_text("x"))
    with pytest.raises(InvalidAgent, match=r"again\.yaml:1:11: the environment already has the prompt 'p'"):
        env.load_yaml(write("prompts: [{name: p, text: x}]", "again.yaml"))


def test_an_unknown_agent_is_refused_with_the_closest_name(write: Write) -> None:
    env = environment().load_yaml(write(GREETER))
    with pytest.raises(InvalidArgument, match="no agent named 'greter'; did you mean 'greeter'"):
        env.from_list([]).apply("greter")


@pytest.mark.parametrize("given", [7, [7], None])
def test_a_path_is_a_path(given: Any) -> None:
    with pytest.raises((InvalidArgument, TypeError)):
        environment().load_yaml(given)


def action(function: str, **others: str) -> str:
    more = "".join(f", {name}: {value}" for name, value in others.items())
    return f'agents: [{{name: a, actions: [{{name: act, function: "{function}", trigger_conditions: [input]{more}}}]}}]'


def model(rest: str) -> str:
    return f"agents: [{{name: a, chat_model_setups: [{{name: m, {rest}}}]}}]"


BAD = {
    "a function without a module": (action("greet"), "'greet' does not name a function"),
    "two colons": (action("a:b:c"), "'a:b:c' does not name a function"),
    "a function without a name": (action("a:"), "'a:' does not name a function"),
    "no function": (
        "agents: [{name: a, actions: [{name: act, trigger_conditions: [input]}]}]",
        "action 'act' has no 'function'",
    ),
    "a missing module": (
        action("tests.suport.yaml_agents:greet"),
        "no module 'tests.suport'; did you mean 'support'?",
    ),
    "a missing function": (action(f"{TARGETS}:gret"), "has no 'gret'; did you mean 'greet'?"),
    "a missing method": (action(f"{TARGETS}:Functions.shot"), "has no 'shot'; did you mean 'shout'?"),
    "something that is not a function": (action(f"{TARGETS}:NOT_A_FUNCTION"), "is a int, which cannot be"),
    "a Java action": (
        action("com.example.A:f", type="java"),
        "Java implementations are not supported",
    ),
    "a Java model": (model("clazz: ollama, type: java"), "Java implementations are not supported"),
    "a Java tool": (
        "tools: [{name: t, type: java, function: 'a.B:c', parameter_types: [int]}]",
        "tools, 't': Java implementations are not supported",
    ),
    "parameter types": (
        f"tools: [{{name: t, function: '{TARGETS}:add', parameter_types: [int]}}]",
        "'parameter_types' describes Java functions",
    ),
    "a class of Flink Agents only": (model("clazz: tongyi"), "emberflow has no chat model 'tongyi'"),
    "an unknown alias": (model("clazz: olama"), "'olama' is not an alias of a chat model"),
    "skills of Java": (
        "skills: [{name: s, classpath: [a]}]",
        "skills on a Java class path are not supported",
    ),
    "a literal key": (
        model("clazz: a.B, api_key: sk-123"),
        "the argument 'api_key' of B is a secret written into the program",
    ),
    "a literal key of an action": (
        action(f"{TARGETS}:greet", config="{service: {api_key: sk-123}}"),
        "'api_key' of the action's config is a secret",
    ),
    "a reference of an action": (
        action(f"{TARGETS}:greet", config="{region: '${REGION}'}"),
        "references such as ${NAME} are not resolved in the config of an action",
    ),
    "part of a reference": (
        model("clazz: a.B, url: 'http://${HOST}/'"),
        "${HOST} is only a part of the value",
    ),
    "two agents of a name": ("agents: [{name: a}, {name: a}]", "the agent 'a' is declared twice"),
    "two actions of a name": (
        f"actions: [{{name: a, function: '{TARGETS}:greet', trigger_conditions: [x]}}, "
        f"{{name: a, function: '{TARGETS}:greet', trigger_conditions: [x]}}]",
        "the action 'a' is declared twice",
    ),
    "two tools of a name": (
        f"tools: [{{name: t, function: '{TARGETS}:add'}}, {{name: t, function: '{TARGETS}:add'}}]",
        "tools has two entries named 't'",
    ),
    "an unknown injected argument": (
        f"tools: [{{name: t, function: '{TARGETS}:look_up', injected_args: {{tenent: {{}}}}}}]",
        "has no parameter 'tenent' to inject; did you mean 'tenant'?",
    ),
    "an action twice": ("agents: [{name: a, actions: [s, s]}]", "refers to the shared action 's'"),
    "a missing prompt": (
        "agents: [{name: a, chat_model_setups: [{name: m, clazz: a.B, prompt: p}]}]\nprompts: [{name: pp, text: x}]",
        "refers to the prompt 'p', which does not exist; did you mean 'pp'?",
    ),
    "a missing tool": (model("clazz: a.B, tools: [t]"), "refers to the tool 't', which does not exist"),
}


def conditions(*wanted: str, function: str = f"{TARGETS}:greet") -> str:
    """An agent with an action for each condition."""
    actions = [
        f"\n      - name: act{at}\n        function: {function}\n        trigger_conditions: [{condition}]"
        for at, condition in enumerate(wanted)
    ]
    return f"agents:\n  - name: support\n    actions:{''.join(actions)}"


BAD_CONDITIONS = {
    "a typo of the input": ("inptu", "'inptu', which nothing in this agent sends", "'input'"),
    "a typo of an answer": ("chat_respons", "'chat_respons', which nothing in this", "'chat_response'"),
    "a typo of an event of the agent": ("dubled", "'dubled', which nothing in this agent sends", "'doubled'"),
    "an alias in an expression": (
        "\"type == 'chat_response'\"",
        "'chat_response', which nothing in this agent sends",
        "'_chat_response_event'",
    ),
    "half an expression": ("\"type == 'x' &&\"", "is not a valid expression", "expressions are CEL"),
    "an attribute": ("attributes.flag", "is interpreted as an event type", '"attributes.flag == true"'),
}


@pytest.mark.parametrize("case", BAD_CONDITIONS)
@pytest.mark.parametrize("before", [[], ["input"]], ids=["the only one", "beside the input"])
def test_a_condition_that_cannot_work_is_shown_with_its_place(
    case: str, before: list[str], write: Write
) -> None:
    condition, message, way_out = BAD_CONDITIONS[case]
    with pytest.raises(InvalidAgent, match=message) as raised:
        load_agents(write(conditions(*before, condition, function=f"{TARGETS}:double")))
    assert f"agents.yaml:{6 + 3 * len(before)}:30: agent 'support'" in raised.value.message
    assert way_out in raised.value.way_out


def test_an_agent_without_input_and_a_wrong_function_are_shown_with_their_place(write: Write) -> None:
    with pytest.raises(InvalidAgent, match=r"agents\.yaml:6:30: agent 'support' does nothing") as raised:
        load_agents(write(conditions("other_event")))
    assert "trigger_conditions: [input]" in raised.value.way_out
    with pytest.raises(InvalidAgent, match=r"agents\.yaml:2:5: agent 'support', action 'act0' takes 0 param"):
        load_agents(write(conditions("input", function=f"{TARGETS}:no_action")))


def test_a_type_like_no_other_is_a_warning_with_its_place(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """Its events may come from code that nobody can look into."""
    path = write(conditions("input", "order_placed"))
    run_agent(load_agents(path)["support"], ["ann"])
    assert (
        f"{path}:9:30: action 'act1' waits for 'order_placed', but nothing in this agent sends it"
        in caplog.text
    )


def test_a_typo_is_suggested_even_if_the_code_may_send_anything(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(conditions("input", "chat_respons", function=f"{TARGETS}:sends_anything"))
    run_agent(load_agents(path)["support"], ["ann"])
    assert f"{path}:9:30:" in caplog.text
    assert "waits for 'chat_respons'; did you mean 'chat_response'?" in caplog.text


MODEL = """
chat_model_setups:
  - name: m
    clazz: {setup}
    connection: c
    {setting}
chat_model_connections:
  - name: c
    clazz: {service}
    {argument}
"""
ALIASES = list(CLASS_ALIASES[ResourceType.CHAT_MODEL_CONNECTION])


def described(service: str, *, setup: str = "", setting: str = "model: m", argument: str = "") -> str:
    if "model:" not in setting:
        setting += "\n    model: m"
    if service == "llama_cpp":
        argument += "\n    path: model.gguf"
    return MODEL.format(service=service, setup=setup or service, setting=setting, argument=argument)


@pytest.mark.parametrize("service", ALIASES)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"argument": "tmeout_s: 3"}, r"yaml:9:5: .*ChatModelConnection takes no argument 'tmeout_s'"),
        ({"argument": "max_concurent: 3"}, "'max_concurent'; did you mean 'max_concurrent'"),
        (
            {"setting": "temprature: 3"},
            r"yaml:5:5: .*no setting 'temprature'; did you mean 'temperature'",
        ),
        (
            {"setting": "structured_output_strategy: nativ"},
            r"yaml:5:33: .*cannot be 'nativ'; did you mean 'native'",
        ),
        ({"setting": "history_strategy: sumarize"}, r"yaml:5:23: .*did you mean 'summarize'"),
        ({"setting": "tools: search"}, r"yaml:5:12: .*'tools' must be a list, got 'search'"),
        ({"setting": "prompt: 3"}, r"yaml:5:13: .*'prompt' is 3"),
        ({"setting": "model: 3"}, r"yaml:5:12: .*'model' is 3"),
    ],
)
def test_a_misspelt_argument_of_a_model_is_shown_with_its_place(
    service: str, given: dict[str, str], message: str, write: Write
) -> None:
    with pytest.raises(InvalidAgent, match=message) as raised:
        load_agents(write(described(service, **given).lstrip()))
    if "temprature" in message:
        assert "additional_kwargs" in raised.value.way_out


@pytest.mark.parametrize(
    ("service", "given", "message"),
    [
        ("ollama", {"argument": "request_timeout: soon"}, r"yaml:9:22: .*'request_timeout' is 'soon'"),
        ("openai", {"argument": "timeout: soon"}, r"yaml:9:14: .*'timeout' is 'soon'"),
        ("openai", {"argument": "timeout: .nan"}, r"yaml:9:14: .*'timeout' is nan"),
        ("anthropic", {"argument": "timeout: -1"}, r"yaml:9:14: .*'timeout' is -1"),
        ("vllm", {"argument": "max_retries: many"}, r"yaml:9:18: .*'max_retries' is 'many'"),
        ("azure_openai", {"argument": "api_version: 2024"}, r"yaml:9:18: .*'api_version' is 2024"),
        ("openai", {"argument": "default_headers: {A: 1}"}, r"yaml:9:\d+: .*'default_headers' is"),
        ("openai", {"setting": "temperature: hot"}, r"yaml:5:18: .*'temperature' is 'hot'"),
        ("openai", {"setting": "additional_kwargs: fast"}, r"yaml:5:24: .*'additional_kwargs' is 'fast'"),
        ("ollama", {"setting": "num_ctx: many"}, r"yaml:5:14: .*'num_ctx' is 'many'"),
        (
            "ollama",
            {"setting": "# model: m"},
            r"yaml:2:5: .*OllamaChatModelSetup needs an argument 'model'",
        ),
        ("anthropic", {"setting": "max_tokens: few"}, r"yaml:5:17: .*'max_tokens' is 'few'"),
    ],
)
def test_a_value_of_the_wrong_type_is_shown_with_its_place(
    service: str, given: dict[str, str], message: str, write: Write
) -> None:
    with pytest.raises(InvalidAgent, match=message):
        load_agents(write(described(service, **given).lstrip()))


@pytest.mark.parametrize("service", ALIASES)
def test_correct_arguments_of_a_model_are_accepted(service: str, write: Write) -> None:
    setting = (
        "{temperature: 0.1, max_concurrent: 2, structured_output_strategy: PROMPT, extract_reasoning: true}"
    )
    text = described(service, setting=f"<<: {setting}", argument="requests_per_minute: 3")
    load_agents(write(text))


def test_settings_are_checked_for_every_way_to_a_connection(write: Write) -> None:
    connection = "chat_model_connections: [{name: c, clazz: ollama}]"
    setup = "{name: m, clazz: emberflow.agents.BaseChatModelSetup, connection: c, num_ctxt: 3}"
    own = f"agents: [{{name: a, chat_model_setups: [{setup}], {connection}}}]"
    shared = f"agents: [{{name: a, chat_model_setups: [{setup}]}}]\n{connection}"
    react = f"react_agents: [{{name: a, chat_model: {setup.replace('name: m, ', '')}}}]\n{connection}"
    for text in (own, shared, react):
        with pytest.raises(
            InvalidAgent, match=r"yaml:1:\d+: .*no setting 'num_ctxt'; did you mean 'num_ctx'"
        ):
            load_agents(write(text))
    env = environment()
    env.add_resource(
        "c", ResourceType.CHAT_MODEL_CONNECTION, ResourceDescriptor(CLASS_ALIASES[CONNECTION]["ollama"])
    )
    with pytest.raises(InvalidAgent, match="'num_ctxt'"):
        env.load_yaml(write(f"chat_model_setups: [{setup}]"))
    env = environment().load_yaml(write(f"chat_model_setups: [{setup}]"))
    with pytest.raises(InvalidAgent, match="'num_ctxt'"):
        env.load_yaml(write(connection, name="other.yaml"))


@pytest.mark.parametrize("service", ["openai", "anthropic", "ollama"])
def test_settings_of_a_client_that_is_not_installed_are_left_to_the_worker(
    service: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Any = ResourceDescriptor(CLASS_ALIASES[CONNECTION][service]).clazz
    known: Any = vars(sys.modules[made.__module__])["_known"]
    getattr(known, "cache_clear", int)()
    for name in [service, *(name for name in sys.modules if name.startswith(f"{service}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    load_agents(write(described(service, setting="temprature: 3")))
    with pytest.raises(InvalidAgent, match="takes no argument 'tmeout'"):
        load_agents(write(described(service, argument="tmeout: 3")))


def test_what_code_of_ones_own_accepts_is_left_to_it(write: Write) -> None:
    for setup in (f"{TARGETS}.OwnSetup", "not_installed_here.Setup"):
        load_agents(write(described("ollama", setup=setup, setting="anything: 3")))
    text = described(f"{TARGETS}.TeamModel", setup="emberflow.agents.BaseChatModelSetup", setting="any: 3")
    load_agents(write(text))
    with pytest.raises(InvalidAgent, match="TeamModel takes no argument 'replies'"):
        load_agents(write(described(f"{TARGETS}.TeamModel", argument="replies: [a]")))


def test_a_class_that_its_module_does_not_have(write: Write) -> None:
    with pytest.raises(InvalidAgent, match=r"yaml:4:\d+: .*has no 'TeamModle'; did you mean 'TeamModel'"):
        load_agents(write(described("ollama", setup=f"{TARGETS}.TeamModle")))


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_shown_with_its_place(case: str, write: Write) -> None:
    text, message = BAD[case]
    with pytest.raises(InvalidAgent, match=re.escape(message)) as raised:
        load_agents(write(text))
    assert re.match(r".*agents\.yaml:\d+:\d+: ", raised.value.message)


def test_a_module_that_fails_is_no_missing_module(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "yaml_broken.py").write_text("import missing_of_yaml_broken\n")
    (tmp_path / "yaml_raises.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidAgent, match="module 'yaml_broken' cannot be imported") as raised:
        load_agents(write(action("yaml_broken:f")))
    assert "missing_of_yaml_broken" in raised.value.cause
    with pytest.raises(InvalidAgent, match="importing the module 'yaml_raises' failed") as raised:
        load_agents(write(action("yaml_raises:f")))
    assert "ZeroDivisionError" in raised.value.cause


@pytest.mark.parametrize("kind", CLASS_ALIASES, ids=lambda kind: kind.value)
def test_every_alias_names_a_resource_of_its_section(kind: ResourceType) -> None:
    for path in CLASS_ALIASES[kind].values():
        made = ResourceDescriptor(path).clazz
        assert issubclass(made, Resource)
        assert made.resource_type() is kind  # pyright: ignore[reportAttributeAccessIssue]
