"""What connections to services with an API key share: where the key comes from, the client, and how its errors are translated."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from emberflow.agents import Secret
from emberflow.agents.models.chat_connection import BaseChatModelConnection
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.service_failure import (
    address_of,
    failure_of,
    header_secrets,
    key_header,
    unreadable,
)
from emberflow.errors import EmberflowError, ResourceFailed
from emberflow.integrations.chat_models.http_transport import transport_settings, trusting
from emberflow.integrations.chat_models.loop_clients import LoopClients
from emberflow.integrations.chat_models.openai_format import Unreadable

TIMEOUT_S = 600.0


class HostedChatModelConnection(BaseChatModelConnection):
    """A service with an API key. Subclasses create the client of their vendor."""

    key_variable: ClassVar[str]
    """The environment variable with the key, if none is given."""
    vendor: ClassVar[str]
    _no_key: ClassVar[str] = ""
    """How to give a key to a service that is called without one."""

    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        timeout: float | None = TIMEOUT_S,
        max_retries: int = 0,
        default_headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._given_key = api_key
        self.base_url = base_url
        self.timeout = timeout
        self.max_retries = max_retries
        self.default_headers = dict(default_headers or {})
        self.ca_file = ca_file
        self._clients = self._new_clients()

    def _new_clients(self) -> LoopClients[Any]:
        return LoopClients(self._make_client, lambda client: client.close())

    def open(self) -> None:
        """Raises PackageMissing, or ResourceFailed if there is no key or the CA file cannot be read, before the first call."""
        self._sdk()
        _ = self._key
        if self.ca_file:
            trusting(self.ca_file)

    def close(self) -> None:
        """Closes the connections."""
        self._clients.close()

    @abstractmethod
    def _sdk(self) -> Any:
        """The vendor's package; raises PackageMissing."""

    @abstractmethod
    def _make_client(self) -> Any: ...

    def _client_settings(self) -> dict[str, Any]:
        import httpx2

        timeout = self.timeout or None
        return {
            "timeout": timeout,
            "max_retries": self.max_retries,
            "default_headers": self.default_headers,
            "http_client": self._sdk().DefaultAsyncHttpxClient(
                timeout=timeout, **transport_settings(httpx2, self.ca_file)
            ),
        }

    def _failed(
        self, error: Exception, model: str, messages: Sequence[ChatMessage], timeout: Any = None
    ) -> EmberflowError:
        """`timeout` is that of the call, if it has one of its own."""
        named = self._named(model)
        timeout_s: Any = self.timeout if timeout is None else timeout
        if isinstance(error, Unreadable):
            return unreadable(named, str(error), self._secrets)
        return failure_of(
            error,
            named,
            secrets=self._secrets,
            key_from=self._key_from,
            no_key=self._no_key,
            timeout_s=timeout_s,
            messages=messages,
        )

    @property
    def _key(self) -> str:
        key = self._own_key or self._key_of_environment().strip()
        if not key.isascii() or not key.isprintable():
            raise ResourceFailed(
                f"the key of {type(self).__name__} contains a character that cannot be sent in a header",
                way_out="check the source of the key",
            )
        return key

    @property
    def _own_key(self) -> str:
        given = self._given_key
        key = given.resolve() if isinstance(given, Secret) else given
        # Files and environments add line breaks, and the client shows a header that it cannot send.
        return (key or "").strip()

    def _key_of_environment(self) -> str:
        key = os.environ.get(self.key_variable, "")
        if not key:
            raise ResourceFailed(
                f"no API key is configured for {type(self).__name__}",
                way_out=f"set {self.key_variable} where the job runs, or api_key=Secret('…')",
            )
        return key

    @property
    def _key_from(self) -> str:
        """Where the key that is sent comes from; empty if none is sent."""
        header = key_header(self.default_headers)
        if header or not self._own_key:
            return header or self._default_origin
        if isinstance(self._given_key, Secret):
            return self._given_key.origin
        return self.secret_origins.get("api_key", "api_key of the connection")

    @property
    def _default_origin(self) -> str:
        return f"the variable {self.key_variable}"

    @property
    def _secrets(self) -> list[str]:
        return [self._key, *header_secrets(self.default_headers)]

    @property
    def _service(self) -> str:
        return f"the service at {address_of(self.base_url)}" if self.base_url else self.vendor

    def _named(self, model: str) -> str:
        return f"the model {model!r} of {self._service}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({address_of(self.base_url) if self.base_url else ''})"

    def __getstate__(self) -> dict[str, Any]:
        kept = {**self.__dict__}
        for name in ("_clients", "resource_context"):
            kept.pop(name, None)
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._clients = self._new_clients()
