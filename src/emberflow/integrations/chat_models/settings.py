"""The settings of a call, checked against what the vendor's client accepts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean, shorten

UNCHECKED_SETTINGS = (
    "correct its name; pass a setting that is new, or that only this service has, as "
    "additional_kwargs={'extra_body': {'name': value}}"
)


def checked_settings(
    settings: dict[str, Any], known: Collection[str], service: str, *, way_out: str = ""
) -> dict[str, Any]:
    """The settings without None, and with `additional_kwargs` among them. Raises InvalidArgument for an unknown name, which a
    service would silently ignore, or reject with a message of its own."""
    more: Any = settings.get("additional_kwargs") or {}
    if not isinstance(more, dict):
        raise InvalidArgument(f"additional_kwargs must be a dictionary of settings, got {shorten(more)}")
    given: dict[str, Any] = {
        name: value for name, value in settings.items() if value is not None and name != "additional_kwargs"
    }
    for name in given:
        if name not in known:
            raise InvalidArgument(
                f"{service} has no setting {name!r}{did_you_mean(name, known)}", way_out=way_out
            )
    return {**given, **more}
