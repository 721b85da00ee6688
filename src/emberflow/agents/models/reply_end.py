"""Why a model stopped: it refused, or reached its limit of tokens. Read from `extra_args`, whatever the service calls it."""

from __future__ import annotations

from dataclasses import replace

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.errors import ModelFailed, ModelRefused, OutputMismatch, shorten

REFUSAL = "refusal"
FINISH_REASON = "finish_reason"
"""Their names in `extra_args`."""

_WITHHELD = frozenset({"content_filter", "refusal"})
_CUT = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
_LONGEST = 600


def with_refusal(reply: ChatMessage) -> ChatMessage:
    """A refusal in the form that every service's has: its text in `extra_args["refusal"]`, and as content if there is no
    other. Any other reply is unchanged."""
    refusal, finish = reply.extra_args.get(REFUSAL), reply.extra_args.get(FINISH_REASON)
    if not refusal and (finish not in _WITHHELD or reply.tool_calls):
        return reply
    text = str(refusal or f"the service withheld the answer: {finish}")
    return replace(reply, content=reply.content or text, extra_args={**reply.extra_args, REFUSAL: text})


def is_cut(reply: ChatMessage) -> bool:
    """Whether the reply ends where its limit of tokens was reached."""
    return reply.extra_args.get(FINISH_REASON) in _CUT


def check_answered(reply: ChatMessage, model: str) -> None:
    """For a final reply that must have a type: raises ModelRefused for a refusal."""
    refusal = reply.extra_args.get(REFUSAL)
    if refusal:
        raise ModelRefused(
            f"the model {model!r} refused to answer",
            cause=str(refusal)[:_LONGEST],
            way_out="change the question, give the action a fallback, or ask without an output type: the refusal is then "
            "the content of the answer, and its extra_args['refusal']",
        )


_LONGER = "raise max_tokens (max_completion_tokens, for Ollama num_predict) of the setup or the call, or ask for less"


def cut_output(reply: ChatMessage, model: str, schema: str) -> OutputMismatch:
    """For a typed reply that was cut: the model would reach the same limit again."""
    return OutputMismatch(
        f"the answer of the model {model!r} is not a complete {schema}: it was cut at the limit of tokens",
        cause=f"it ends with finish_reason {reply.extra_args[FINISH_REASON]!r}: {shorten(reply.content)}",
        way_out=_LONGER,
    )


def cut_before_it_began(reply: ChatMessage, model: str) -> ModelFailed:
    """For a reply that was cut before its first word, as those of models that reason at length may be."""
    return ModelFailed(
        f"the model {model!r} reached its limit of tokens before it answered",
        cause=f"the answer is empty, with finish_reason {reply.extra_args[FINISH_REASON]!r}",
        way_out=_LONGER,
    )
