"""A GGUF model inside the worker's process, run by llama.cpp (`xllamacpp`)."""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from emberflow.agents.models.chat_connection import BaseChatModelConnection, OnChunk, with_instructions
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.service_failure import cut_short, failure_of, package_missing, unreadable
from emberflow.agents.models.unsendable import check_encodable
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import EmberflowError, InvalidArgument, ModelFailed, ResourceFailed, describe_cause
from emberflow.integrations.chat_models.openai_format import Pieces, Reported, Unreadable, request_data
from emberflow.integrations.chat_models.settings import checked_settings

Data = dict[str, Any]

_SETTINGS = frozenset(
    (
        *("model", "temperature", "top_k", "top_p", "min_p", "max_tokens", "seed", "stop", "tool_choice"),
        *("repeat_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "grammar", "cache_prompt"),
        *("response_format", "parallel_tool_calls", "reasoning_format", "chat_template_kwargs"),
        *("extract_reasoning", "additional_kwargs"),
    )
)


class LlamaCppChatModelConnection(BaseChatModelConnection):
    """The model of a GGUF file, loaded when it is first used; each worker process has its own.

    `parallel` calls are answered concurrently and share `context_tokens`; further ones wait. `threads` of the processor
    should not be more than are idle. `gpu_layers` are computed by a GPU, with a build of xllamacpp for it. `mmproj` is
    the file with which a model sees images.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        threads: int = 1,
        context_tokens: int = 4096,
        parallel: int = 1,
        gpu_layers: int = 0,
        mmproj: str | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.threads = threads
        self.context_tokens = context_tokens
        self.parallel = parallel
        self.gpu_layers = gpu_layers
        self.mmproj = mmproj
        self._server: Any = None
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Loads the model. Raises PackageMissing, or ResourceFailed if the file is not a model."""
        if self._server is not None:
            return
        try:
            import xllamacpp
        except ImportError as error:
            raise package_missing("xllamacpp", "local-model", error) from error
        module: Any = xllamacpp
        if not Path(self.path).is_file():
            raise ResourceFailed(
                f"there is no model at {self.path!r} on this worker",
                way_out="give the path of a GGUF file that exists wherever the job runs; a relative path starts at the "
                f"working directory, here {os.getcwd()}",
            )
        params = module.CommonParams()
        params.model.path = self.path
        params.n_ctx, params.n_parallel = self.context_tokens, self.parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.n_threads_http = 1
        params.n_gpu_layers = self.gpu_layers
        params.warmup, params.verbosity = False, 0
        # The server inside also listens on the loopback address: with a key that nobody knows.
        params.api_keys = [secrets.token_hex(32)]
        if self.mmproj:
            params.mmproj.path = self.mmproj
        try:
            self._server = module.Server(params)
        except Exception as error:
            raise ResourceFailed(
                f"the model {self.path!r} cannot be loaded",
                cause=describe_cause(error),
                way_out="check that it is a GGUF file, and that it fits into memory",
            ) from error
        self._pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="emberflow-llama")

    def close(self) -> None:
        """Frees the model's memory."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        self._server = None

    @classmethod
    def known_settings(cls) -> Mapping[str, Any] | None:
        """Those that the server of llama.cpp has."""
        return dict.fromkeys(_SETTINGS, Any)

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        *,
        output_schema: OutputSchema | None = None,
        on_chunk: OnChunk | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer. `kwargs` are llama.cpp's settings (`temperature`, `max_tokens`, `seed`, …). A canceled call stops
        after the token that it is at. Raises ModelFailed."""
        settings = checked_settings(kwargs, _SETTINGS, "llama.cpp", way_out="additional_kwargs={…}")
        reasoning = bool(settings.pop("extract_reasoning", False))
        model = str(settings.get("model") or Path(self.path).stem)
        if output_schema is not None and tools:
            # What restricts the answer to JSON would also prevent calls of tools.
            messages, output_schema = with_instructions(messages, output_schema), None
        check_encodable(self._named(model), messages)
        request = {**request_data(messages, tools, output_schema, strict=False), **settings, "model": model}
        self.open()
        # Always as a stream: only between pieces can a call be stopped.
        pieces = Pieces(_nobody if on_chunk is None else on_chunk)
        stopped = False

        def take(piece: Any) -> bool:
            if not stopped:
                pieces.add(piece)
            return stopped

        request |= {"stream": True, "stream_options": {"include_usage": True}}
        called = functools.partial(self._answered, request, take, model)
        try:
            await asyncio.get_running_loop().run_in_executor(self._pool, called)
        finally:
            stopped = True
        if not pieces.finish:
            raise cut_short(self._named(model))
        return pieces.message(model, reasoning=reasoning)

    def _answered(self, request: Data, take: Callable[[Any], bool], model: str) -> None:
        try:
            self._server.handle_chat_completions(request, take)
            return
        except EmberflowError:
            raise
        except Unreadable as problem:
            failed = unreadable(self._named(model), str(problem))
        except Reported as error:
            failed = failure_of(error, self._named(model))
        except ValueError as error:
            failed = InvalidArgument(
                f"{self._named(model)} rejected the request", cause=describe_cause(error)
            )
        except Exception as error:
            failed = ModelFailed(f"{self._named(model)} failed", cause=describe_cause(error))
        raise failed

    def _named(self, model: str) -> str:
        return f"the local model {model!r}"

    def supports_native_structured_output(self, model: str | None) -> bool:
        """Every model: llama.cpp restricts what it may write."""
        return True

    def __repr__(self) -> str:
        return f"LlamaCppChatModelConnection({self.path!r})"

    def __getstate__(self) -> Data:
        kept = {name: value for name, value in self.__dict__.items() if name != "resource_context"}
        return {**kept, "_server": None, "_pool": None}


class LlamaCppChatModelSetup(BaseChatModelSetup):
    """A local model; its settings are llama.cpp's."""


def _nobody(_: Any) -> None:
    """No-op chunk callback."""
