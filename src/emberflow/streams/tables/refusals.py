"""What PyFlink's tables can do and these cannot: methods that fail with the way out when they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from emberflow.errors import NotSupported, did_you_mean

AS_STREAM = "use the steps of t_env.to_data_stream(table), or its to_dataframe() and Spark SQL"


def refuse(what: str, way_out: str = AS_STREAM) -> NoReturn:
    """Raises NotSupported."""
    raise NotSupported(f"{what} is not supported", way_out=way_out)


def refusing(owner: str, name: str, way_out: str) -> Callable[..., NoReturn]:
    """A method that fails when it is called."""

    def refused(*_: Any, **__: Any) -> NoReturn:
        refuse(f"{name}() of {owner}", way_out)

    return refused


def no_attribute(owner: object, name: str, known: Iterable[str]) -> AttributeError:
    """For a name that PyFlink does not have either."""
    kind = type(owner).__name__
    return AttributeError(f"{kind!r} object has no attribute {name!r}{did_you_mean(name, known)}")


def words(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())
