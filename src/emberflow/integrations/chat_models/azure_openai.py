"""Azure OpenAI: models of OpenAI behind deployments, which have names of their own."""

from __future__ import annotations

import os
from typing import Any

from emberflow.agents import Secret
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.models.service_failure import address_of
from emberflow.errors import InvalidArgument
from emberflow.integrations.chat_models.openai import OpenAIChatModelConnection

_FIRST_NATIVE = "2024-08-01"
"""The first version of the interface with structured output."""


class AzureOpenAIChatModelConnection(OpenAIChatModelConnection):
    """A resource of Azure OpenAI: `azure_endpoint` is its address, `api_version` that of the interface. Without an `api_key`
    it is read from AZURE_OPENAI_API_KEY; further arguments are those of `OpenAIChatModelConnection`."""

    key_variable = "AZURE_OPENAI_API_KEY"

    def __init__(
        self,
        *,
        azure_endpoint: str | None = None,
        api_version: str = "2024-10-21",
        api_key: str | Secret | None = None,
        **kwargs: Any,
    ) -> None:
        if "base_url" in kwargs or "api_base_url" in kwargs:
            raise InvalidArgument(
                "an Azure connection takes no base_url", way_out="azure_endpoint='https://…'"
            )
        super().__init__(api_key=api_key, **kwargs)
        self.azure_endpoint = azure_endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT", "")
        self.api_version = api_version
        if not self.azure_endpoint:
            raise InvalidArgument(
                "no address is configured for the Azure connection",
                way_out="azure_endpoint='https://….openai.azure.com', or AZURE_OPENAI_ENDPOINT on the workers",
            )

    def supports_native_structured_output(self, model: str | None) -> bool:
        """`model` is the one behind the deployment: `model_of_azure_deployment` of the setup."""
        return self.api_version[:10] >= _FIRST_NATIVE and super().supports_native_structured_output(model)

    def _make_client(self) -> Any:
        return self._sdk().AsyncAzureOpenAI(
            azure_endpoint=self.azure_endpoint,
            api_version=self.api_version,
            api_key=self._key,
            **self._client_settings(),
        )

    @property
    def _service(self) -> str:
        return f"Azure OpenAI at {address_of(self.azure_endpoint)}"


class AzureOpenAIChatModelSetup(BaseChatModelSetup):
    """`model` is the name of the deployment; `model_of_azure_deployment` that of the model behind it, which decides whether
    structured output is native."""

    def __init__(self, *, connection: Any, model: str, **kwargs: Any) -> None:
        super().__init__(connection=connection, model=model, **kwargs)

    def effective_model(self, settings: dict[str, Any]) -> str | None:
        """The model behind the deployment."""
        return settings.get("model_of_azure_deployment") or super().effective_model(settings)
