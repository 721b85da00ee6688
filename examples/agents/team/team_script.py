"""The model of team.yaml: a script that plays both agents."""

from emberflow.agents import ChatMessage
from emberflow.testing import Reply, ScriptedChatModel, tool_call

FACTS = {"How high is Mont Blanc?": "4,806 m", "How high is Ben Nevis?": "1,345 m"}


def play(messages: list[ChatMessage]) -> str | Reply:
    """The researcher knows the facts; the coordinator asks for each mountain and compares."""
    asked = [message.content for message in messages]
    if asked[0] == "You research.":
        return FACTS.get(asked[-1], "unknown")
    found = [message.content for message in messages if message.role.value == "tool"]
    if found:
        return f"The answer: {' and '.join(found)}."
    return Reply(tool_calls=[tool_call("researcher", input=question) for question in FACTS])


class Model(ScriptedChatModel):
    """Needs no arguments in the YAML file."""

    def __init__(self) -> None:
        super().__init__(play)
