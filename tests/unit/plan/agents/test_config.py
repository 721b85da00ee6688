"""Options and settings of agents."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    AgentConfigOptions,
    AgentExecutionOptions,
    ConfigOption,
    Configuration,
    ErrorHandling,
    EventLogLevel,
)
from emberflow.errors import InvalidArgument


class Colour(Enum):
    RED = "r"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (int, "5", 5),
        (int, 5.0, 5),
        (float, 1, 1.0),
        (float, "1.5", 1.5),
        (str, 5, "5"),
        (bool, "TRUE", True),
        (bool, False, False),
        (Colour, "RED", Colour.RED),
        (Colour, "R", Colour.RED),
        (Colour, Colour.RED, Colour.RED),
        (list, [1], [1]),
    ],
)
def test_values_in_the_type_of_the_option(kind: Any, given: Any, expected: Any) -> None:
    found = ConfigOption("key", kind).convert(given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (int, "five"),
        (int, 5.5),
        (int, float("inf")),
        (int, True),
        (int, None),
        (float, True),
        (bool, "yes"),
        (bool, 1),
        (Colour, "blue"),
        (list, "a"),
    ],
)
def test_values_that_do_not_fit(kind: Any, given: Any) -> None:
    with pytest.raises(InvalidArgument, match="the option 'key' cannot be"):
        ConfigOption("key", kind).convert(given)


def test_errors_of_enums_name_the_allowed_values() -> None:
    with pytest.raises(InvalidArgument, match=r"one of \['fail', 'skip', 'dead-letter'\]"):
        Configuration().set(AgentExecutionOptions.ON_ERROR, "maybe")


def test_options_check_their_values() -> None:
    with pytest.raises(InvalidArgument, match="it must be greater than 0"):
        Configuration().set(AgentExecutionOptions.MAX_STEPS, 0)
    with pytest.raises(InvalidArgument, match="it must not be negative"):
        Configuration().set(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS, -1)


def test_every_default_is_a_value_of_its_option() -> None:
    options = [
        item
        for holder in (AgentExecutionOptions, AgentConfigOptions)
        for item in vars(holder).values()
        if isinstance(item, ConfigOption)
    ]
    assert len(options) > 10
    assert len({item.get_key() for item in options}) == len(options)
    for item in options:
        default = item.get_default_value()
        assert default is None or item.convert(default) == default
        assert item.get_key() in repr(item)


def test_set_and_get() -> None:
    settings = Configuration()
    assert settings.get(AgentExecutionOptions.ON_ERROR) is ErrorHandling.FAIL
    assert settings.set(AgentExecutionOptions.ON_ERROR, "skip") is settings
    assert settings.get(AgentExecutionOptions.ON_ERROR) is ErrorHandling.SKIP
    assert settings.set("on-error", "fail").get(AgentExecutionOptions.ON_ERROR) is ErrorHandling.FAIL
    with pytest.raises(InvalidArgument, match=r"no option 'on-eror'; did you mean 'on-error'\?"):
        settings.set("on-eror", "skip")
    with pytest.raises(InvalidArgument, match="is not an option"):
        settings.set(5, "skip")  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_by_key() -> None:
    settings = Configuration()
    settings.set_str("s", "text")
    settings.set_int("i", 5)
    settings.set_float("f", 1.5)
    settings.set_bool("b", True)
    assert settings.get_str("s") == "text"
    assert settings.get_int("i") == 5
    assert settings.get_float("f") == 1.5
    assert settings.get_bool("b") is True
    assert settings.get_int("none") is None
    assert settings.get_int("none", 7) == 7
    with pytest.raises(InvalidArgument, match="the option 's' cannot be 'text'"):
        settings.get_int("s")
    assert settings.to_dict() == {"s": "text", "i": 5, "f": 1.5, "b": True}


def test_configurations_are_equal_by_their_values() -> None:
    assert Configuration({"a": 1}) == Configuration({"a": 1})
    assert Configuration({"a": 1}) != Configuration({"a": 2})
    assert repr(Configuration({"b": 2})) == "Configuration({'b': 2})"


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"event-log.level": "off", "max-steps": "7"}', encoding="utf-8")
    settings = Configuration({"max-steps": 1}).load(path)
    assert settings.get(AgentConfigOptions.EVENT_LOG_LEVEL) is EventLogLevel.OFF
    assert settings.get(AgentExecutionOptions.MAX_STEPS) == 7


@pytest.mark.parametrize("text", ["[]", "{", None])
def test_from_an_invalid_file(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"settings\.json cannot be read"):
        Configuration().load(path)
