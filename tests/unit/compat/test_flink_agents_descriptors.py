"""Descriptors of Flink Agents' programs: paths of its classes, and secrets written into the program."""

from __future__ import annotations

import os

import pytest

from emberflow.agents import BaseChatModelSetup, Secret
from emberflow.compat.flink_agents.resource_descriptor import (
    ResourceDescriptor,
    get_resource_class,
    path_here,
)
from emberflow.compat.flink_agents.resource_name import ResourceName
from emberflow.errors import FlinkAgentsOnly
from emberflow.integrations.chat_models.ollama import OllamaChatModelSetup


def test_paths_of_flink_agents_name_emberflows_classes() -> None:
    described = ResourceDescriptor(clazz=ResourceName.ChatModel.OLLAMA_SETUP, model="qwen3:8b")
    assert issubclass(described.clazz, OllamaChatModelSetup)
    assert described.target_clazz == "OllamaChatModelSetup"
    assert described.arguments == {"model": "qwen3:8b"}
    base = "flink_agents.api.chat_models.chat_model"
    assert get_resource_class(base, "BaseChatModelSetup") is BaseChatModelSetup
    assert path_here("mine.Model") == "mine.Model"


@pytest.mark.parametrize(
    ("path", "way_out"),
    [
        (ResourceName.VectorStore.CHROMA_VECTOR_STORE, "there is no retrieval yet"),
        (ResourceName.EmbeddingModel.OLLAMA_SETUP, "there is no retrieval yet"),
        (ResourceName.ChatModel.TONGYI_SETUP, "DashScope"),
        (ResourceName.ChatModel.JAVA_WRAPPER_SETUP, "use the Python class"),
        (
            "org.apache.flink.agents.integrations.chatmodels.ollama.OllamaChatModelSetup",
            "use the Python class",
        ),
    ],
)
def test_a_class_that_is_missing_is_refused_with_the_way_out(path: str, way_out: str) -> None:
    with pytest.raises(FlinkAgentsOnly, match="emberflow has no ") as failure:
        ResourceDescriptor(clazz=path)
    assert way_out in failure.value.way_out


def test_names_of_java_classes_are_refused() -> None:
    with pytest.raises(FlinkAgentsOnly, match="no Java resources"):
        _ = ResourceName.ChatModel.Java.OLLAMA_SETUP


def test_a_misspelled_class_is_suggested() -> None:
    with pytest.raises(FlinkAgentsOnly, match="did you mean 'OllamaChatModelSetup'"):
        ResourceDescriptor(
            clazz="flink_agents.integrations.chat_models.ollama_chat_model.OllamaChatModelSetpu"
        )


def test_a_written_secret_is_accepted_with_a_warning_and_stays_out_of_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    path = ResourceName.ChatModel.OPENAI_COMPLETIONS_CONNECTION
    with pytest.warns(UserWarning, match="'api_key' of OpenAIChatModelConnection is a secret") as warned:
        first = ResourceDescriptor(clazz=path, api_key="sk-first")
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match="is a secret"):
        second = ResourceDescriptor(clazz=path, api_key="sk-second", headers={"Authorization": "Bearer x"})
    with pytest.warns(UserWarning, match="is a secret"):
        again = ResourceDescriptor(clazz=path, api_key="sk-first")
    found: list[Secret] = [item.arguments["api_key"] for item in (first, second, again)]
    assert [secret.resolve() for secret in found] == ["sk-first", "sk-second", "sk-first"]
    assert found[0] == found[2]
    assert second.arguments["headers"]["Authorization"].resolve() == "Bearer x"
    assert not any(
        text in repr(item) for item in (first, second) for text in ("sk-first", "sk-second", "Bearer")
    )
