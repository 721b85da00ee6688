"""How the values of Flink's options are read: durations, lists, pairs, names, restart strategies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn

from emberflow.errors import InvalidArgument, NotSupported, shorten
from emberflow.event_time.clock import Interval, to_ms
from emberflow.plan.restart_strategy import RestartStrategies, RestartStrategy
from emberflow.streams.settings.configuration import (
    Configuration,
    as_boolean,
    as_float,
    as_integer,
    to_text,
)


class Kind(Enum):
    """How the value of an option is read."""

    STRING = "a string"
    INTEGER = "a whole number"
    FLOAT = "a number"
    BOOLEAN = "true or false"
    DURATION = "a duration such as 10 s"
    LIST = "a list such as a;b"
    MAP = "pairs such as a:1,b:2"
    CHOICE = "one of several names"


def read_value(key: str, kind: Kind, value: Any, choices: Mapping[str, Any]) -> Any:
    """The value of an option as its kind says; one that does not fit raises InvalidArgument."""
    match kind:
        case Kind.INTEGER:
            return as_integer(key, value)
        case Kind.FLOAT:
            return as_float(key, value)
        case Kind.BOOLEAN:
            return as_boolean(key, value)
        case Kind.DURATION:
            return duration_ms(key, value)
        case Kind.LIST:
            return Configuration.parse_list_value(to_text(value))
        case Kind.MAP:
            return _pairs(key, value)
        case Kind.CHOICE:
            return _choice(key, choices, value)
        case Kind.STRING:
            return to_text(value)


def _choice(key: str, choices: Mapping[str, Any], value: Any) -> Any:
    if value in choices.values():
        return value
    wanted = re.sub("[-_]", "", to_text(value)).lower()
    for name, choice in choices.items():
        if re.sub("[-_]", "", name).lower() == wanted:
            return choice
    raise InvalidArgument(
        f"the option {key!r} cannot be {shorten(value)}", way_out=f"use one of {', '.join(choices)}"
    )


def _pairs(key: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        given: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {str(name): to_text(item) for name, item in given.items()}
    pairs = [part.partition(":") for part in to_text(value).split(",") if part.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise InvalidArgument(
            f"the option {key!r} is {shorten(value)}", way_out="write pairs such as a:1,b:2"
        )
    return {name.strip(): item.strip() for name, _, item in pairs}


_UNITS_MS = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")
_ISO_DURATION = re.compile(r"pt(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


def duration_ms(key: str, value: Interval | str) -> int:
    """Milliseconds of a duration as Flink's configuration files write it: `10 s`, `1 min`, `PT30S`, or milliseconds."""
    if not isinstance(value, str):
        return to_ms(value, key)
    text = value.strip().lower()
    found = _DURATION.fullmatch(text)
    if found and found[2] in _UNITS_MS:
        return int(found[1]) * _UNITS_MS[found[2]]
    iso = _ISO_DURATION.fullmatch(text)
    if iso and any(iso.groups()):
        hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return round(((hours * 60 + minutes) * 60 + seconds) * 1000)
    raise InvalidArgument(
        f"the option {key!r} is {shorten(value)}, which is not a duration",
        way_out="write it as '500 ms', '10 s', '5 min', '1 h' or '1 d'",
    )


def restart_of(values: Mapping[str, Any]) -> RestartStrategy | None:
    """The strategy that `restart-strategy.*` describes; None if they do not."""
    kind = values.get("restart-strategy.type")
    given = {
        key.rpartition(".")[2]: value
        for key, value in values.items()
        if key.startswith(f"restart-strategy.{kind}.")
    }
    if kind == "none":
        return RestartStrategies.no_restart()
    if kind == "fixed-delay":
        return RestartStrategies.fixed_delay_restart(given.get("attempts", 1), given.get("delay", 1_000))
    if kind == "failure-rate":
        return RestartStrategies.failure_rate_restart(
            given.get("max-failures-per-interval", 1),
            given.get("failure-rate-interval", 60_000),
            given.get("delay", 1_000),
        )
    if kind == "exponential-delay":
        return RestartStrategies.exponential_delay_restart(
            given.get("initial-backoff", 1_000),
            given.get("max-backoff", 60_000),
            given.get("backoff-multiplier", 1.5),
            given.get("reset-backoff-threshold", 3_600_000),
            given.get("jitter-factor", 0.1),
            given.get("attempts-before-reset-backoff"),
        )
    return None


def refuse(what: str, way_out: str) -> NoReturn:
    """Raises NotSupported."""
    raise NotSupported(what, way_out=way_out)
