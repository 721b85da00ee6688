"""The actions of support.yaml."""

import json

from emberflow.agents import Event, InputEvent, OutputEvent, RunnerContext


class Angry(Event):
    EVENT_TYPE = "angry"
    text: str
    times: int


async def answer(event: InputEvent, ctx: RunnerContext) -> None:
    """Asks the model, answers the customer, and remembers how often the customer was angry."""
    clerk = ctx.get_resource("clerk", "chat_model")
    reply = json.loads((await clerk.chat([], prompt_args={"text": event.input["text"]})).content)
    ctx.send_event(OutputEvent(f"{ctx.action_config['greeting']}: {reply['answer']}"))
    if reply["mood"] == "angry":
        times = ctx.short_term_memory.get("angry", 0) + 1
        ctx.short_term_memory.set("angry", times)
        ctx.send_event(Angry(text=event.input["text"], times=times))


def escalate(event: Angry, ctx: RunnerContext) -> None:
    """A person takes over."""
    ctx.send_event(OutputEvent(f"to a person, angry {event.times} times: {event.text}"))
