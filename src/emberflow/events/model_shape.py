"""Pydantic's shape for plain classes: `model_dump`, `model_dump_json`, `model_validate`, `model_validate_json`, `model_copy`.

Events, messages, memory references and resources are not Pydantic models, because hundreds of thousands are created. They
have a model's methods nevertheless, may be fields of users' models, and do not import pydantic before pydantic asks.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import datetime as dt
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar, Literal, Self, cast
from uuid import UUID

from emberflow.errors import InvalidArgument, NotSerializable, describe_cause, did_you_mean, shorten
from emberflow.events.types.row import Row

Mode = Literal["python", "json"]
Fallback = Callable[[Any], Any]

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


class ModelShape:
    """Base of classes with a pydantic model's methods. Dataclasses need nothing else; other classes override `_shape_fields`
    and `_from_shape`."""

    __slots__ = ()

    _shape_aliases: ClassVar[Mapping[str, str]] = {}
    """Names of fields in dumped data, where they differ: field -> alias. Both are accepted when data is read."""

    def _shape_fields(self) -> dict[str, Any]:
        """The fields by name, in the order in which they are dumped."""
        found: Any = self
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(found) if item.init}

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        """Creates an object from fields by name, as users or JSON give them; raises `InvalidArgument`."""
        made: Any = cls
        known = {item.name: item for item in dataclasses.fields(made) if item.init}
        for name in fields:
            if name not in known:
                raise InvalidArgument(f"{cls.__name__} has no field {name!r}{did_you_mean(name, known)}")
        for name, item in known.items():
            needed = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
            if needed and name not in fields:
                raise InvalidArgument(
                    f"{cls.__name__} needs a field {name!r}", cause=f"got {shorten(fields)}"
                )
        return made(**fields)

    def model_dump(
        self,
        *,
        mode: Mode = "python",
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        by_alias: bool = False,
        exclude_none: bool = False,
        fallback: Fallback | None = None,
    ) -> dict[str, Any]:
        """The fields as a dictionary; models, dataclasses and events inside become dictionaries too.

        With `mode="json"` the result contains only what JSON has; a value without such a form is passed to `fallback`, or
        `NotSerializable` is raised.
        """
        fields = self._shape_fields()
        kept = set(fields) if include is None else set(include)
        kept -= set(exclude or ())
        aliases: Mapping[str, str] = self._shape_aliases if by_alias else {}
        return {
            aliases.get(name, name): plain(value, mode=mode, fallback=fallback)
            for name, value in fields.items()
            if name in kept and not (exclude_none and value is None)
        }

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        by_alias: bool = False,
        exclude_none: bool = False,
        fallback: Fallback | None = None,
    ) -> str:
        """The fields as JSON; raises `NotSerializable` for a value that cannot be represented in JSON."""
        data = self.model_dump(
            mode="json",
            include=include,
            exclude=exclude,
            by_alias=by_alias,
            exclude_none=exclude_none,
            fallback=fallback,
        )
        separators = (",", ":") if indent is None else None
        return json.dumps(data, ensure_ascii=False, indent=indent, separators=separators)

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """An object from a dictionary of its fields; an object of the class is returned unchanged.

        Raises `InvalidArgument`, which is a `ValueError`, if a field is missing, unknown or invalid.
        """
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, Mapping):
            raise InvalidArgument(f"{cls.__name__} is read from a dictionary, got {shorten(obj)}")
        names = {alias: name for name, alias in cls._shape_aliases.items()}
        given = cast("Mapping[str, Any]", obj)
        return cls._from_shape({names.get(name, name): value for name, value in given.items()})

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray) -> Self:
        """An object from the JSON of its fields; raises `InvalidArgument`."""
        try:
            data: Any = json.loads(json_data)
        except ValueError as error:
            raise InvalidArgument(
                f"{cls.__name__} cannot be read: this is not JSON: {shorten(json_data)}",
                cause=describe_cause(error),
            ) from error
        return cls.model_validate(data)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced; they are not validated. `deep` copies the contents of fields too."""
        made = copy.deepcopy(self) if deep else copy.copy(self)
        if update:
            known = self._shape_fields()
            for name, value in update.items():
                if name not in known:
                    raise InvalidArgument(
                        f"{type(self).__name__} has no field {name!r}{did_you_mean(name, known)}"
                    )
                # Frozen for users, but not while it is created.
                object.__setattr__(made, name, value)
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Called by pydantic for a field of a user's model that has this class."""
        from pydantic_core import core_schema

        def dumped(value: ModelShape, info: Any) -> Any:
            return value.model_dump(
                mode="json" if info.mode == "json" else "python", by_alias=bool(info.by_alias)
            )

        return core_schema.no_info_plain_validator_function(
            cls.model_validate,
            serialization=core_schema.plain_serializer_function_ser_schema(dumped, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Called by pydantic for the JSON Schema of a user's model with such a field."""
        return {"type": "object", "title": cls.__name__}


class ReadableAsDict(ModelShape):
    """Base of small values that are sent in events, such as messages: `message["content"]` is `message.content`.

    Flink Agents' receivers find dictionaries in the attributes of an event, so its programs read them that way.
    """

    __slots__ = ()

    def keys(self) -> list[str]:
        """The names of the fields; with it, `dict(value)` and `{**value}` work."""
        return list(self._shape_fields())

    def __getitem__(self, name: str) -> Any:
        fields = self._shape_fields()
        if name not in fields:
            raise KeyError(name)
        return plain(fields[name])

    def get(self, name: str, default: Any = None) -> Any:
        """A field as plain data, as in a dictionary."""
        fields = self._shape_fields()
        return plain(fields[name]) if name in fields else default

    def __contains__(self, name: object) -> bool:
        return name in self._shape_fields()

    __iter__ = None
    """Or `__getitem__` would be called with 0, 1, …"""


def plain(value: Any, *, mode: Mode = "python", fallback: Fallback | None = None) -> Any:
    """The value with dictionaries instead of models, dataclasses and events, also inside containers.

    With `mode="json"` only what JSON has remains: text for dates, UUIDs and bytes, lists for tuples and sets, values for
    enums. Raises `NotSerializable` for any other value, unless `fallback` converts it, and for one that contains itself.
    """
    try:
        return _plain(value, mode == "json", fallback)
    except RecursionError as error:
        raise NotSerializable(
            "a value that contains itself, or is nested too deeply, is not plain data"
        ) from error


def _plain(value: Any, as_json: bool, fallback: Fallback | None) -> Any:
    kind: Any = value.__class__
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        if as_json:
            return {_key(name): _plain(item, as_json, fallback) for name, item in value.items()}
        return {name: _plain(item, as_json, fallback) for name, item in value.items()}
    if kind is list:
        return [_plain(item, as_json, fallback) for item in value]
    if kind is float:
        return None if as_json and not math.isfinite(value) else value
    if kind is tuple and not as_json:
        return tuple([_plain(item, as_json, fallback) for item in value])
    if not isinstance(value, type):
        if hasattr(kind, "model_dump"):
            return _dumped(value, as_json, fallback)
        if dataclasses.is_dataclass(value):
            return {
                item.name: _plain(getattr(value, item.name), as_json, fallback)
                for item in dataclasses.fields(value)
            }
    return _as_json(value, fallback) if as_json else value


def _dumped(value: Any, as_json: bool, fallback: Fallback | None) -> Any:
    if isinstance(value, ModelShape):
        return value.model_dump(mode="json" if as_json else "python", fallback=fallback)
    if not as_json:
        return value.model_dump()
    return value.model_dump(mode="json", **({} if fallback is None else {"fallback": fallback}))


def _key(name: Any) -> str:
    if name.__class__ is str:
        return name
    if isinstance(name, Enum):
        return _key(name.value)
    if name is None or isinstance(name, bool):
        return json.dumps(name)
    return str(_as_json(name, None)) if not isinstance(name, (int, float)) else str(name)


def _as_json(value: Any, fallback: Fallback | None) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, True, fallback)
    for kinds, convert in _TEXTS:
        if isinstance(value, kinds):
            return convert(value)
    if isinstance(value, Mapping):
        found = cast("Mapping[Any, Any]", value)
        return {_key(name): _plain(item, True, fallback) for name, item in found.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, True, fallback) for item in cast("Iterable[Any]", value)]
    if isinstance(value, Row):
        # The form that `rows_from_plain` reads.
        made: dict[str, Any] = {"type": "Row", "values": [_plain(item, True, fallback) for item in value]}
        if value._fields:
            made["fields"] = list(value._fields)
        return made
    if fallback is not None:
        return fallback(value)
    raise NotSerializable(
        f"{shorten(value)} is not plain data",
        cause=f"a {type(value).__name__} cannot be represented in JSON",
        way_out="use text, numbers, lists, dictionaries, dataclasses or pydantic models",
    )


def _bytes_as_text(value: bytes | bytearray) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _moment(value: dt.datetime) -> str:
    text = value.isoformat()
    return text.removesuffix("+00:00") + "Z" if value.utcoffset() == dt.timedelta(0) else text


_TEXTS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int),
    (float, float),
    (dt.datetime, _moment),
    ((dt.date, dt.time), lambda value: value.isoformat()),
    (dt.timedelta, lambda value: f"PT{value.total_seconds():g}S"),
    ((UUID, Decimal, PurePath), str),
    ((bytes, bytearray), _bytes_as_text),
)


@functools.lru_cache(maxsize=1024)
def is_model(kind: Any) -> bool:
    """Whether a class is a pydantic model. Ours only have the shape of one."""
    return hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump")


def without_models(value: Any) -> Any:
    """The value with dictionaries instead of pydantic models, also inside containers; the same object if it has none."""
    kind: Any = value.__class__
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        found = {name: without_models(item) for name, item in value.items()}
        return found if any(found[name] is not item for name, item in value.items()) else value
    if kind is list or kind is tuple:
        items: list[Any] = [without_models(item) for item in value]
        same = all(made is item for made, item in zip(items, value, strict=True))
        return value if same else items if kind is list else tuple(items)
    return value.model_dump() if is_model(kind) else value


def rows_from_plain(value: Any) -> Any:
    """The value with rows instead of the dictionaries that JSON has in their place."""
    if isinstance(value, list):
        return [rows_from_plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, Any]", value)
    if found.get("type") == "Row" and isinstance(found.get("values"), list):
        values = [rows_from_plain(item) for item in found["values"]]
        fields = found.get("fields")
        return Row(**dict(zip(fields, values, strict=False))) if fields else Row(*values)
    return {name: rows_from_plain(item) for name, item in found.items()}
