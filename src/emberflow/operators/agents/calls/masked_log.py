"""Masks secrets in everything that is logged about agents: the only place that does so for log messages.

A filter of the logger `emberflow.agents`, so that no caller can forget it; most of them do not know the agent's secrets.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Collection
from typing import Protocol

from emberflow.operators.agents.calls.masked_errors import mask


class SecretHolder(Protocol):
    """The resources of an agent."""

    @property
    def secrets(self) -> Collection[str]: ...


_SHORTEST = 4
"""Shorter values are found in ordinary words, also of other agents' messages, and protect nothing."""
_holders: list[weakref.ref[SecretHolder]] = []


def mask_in_log(holder: SecretHolder) -> None:
    """From now on and as long as it exists, its secrets are masked, whoever logs them."""
    _holders.append(weakref.ref(holder, _holders.remove))


class _Masking(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:
            return True  # The handlers report it.
        found = [holder() for holder in tuple(_holders)]
        secrets = {secret for item in found if item is not None for secret in tuple(item.secrets)}
        shown = mask(message, [secret for secret in secrets if len(secret) >= _SHORTEST])
        if shown != message:
            record.msg, record.args = shown, ()
        return True


logging.getLogger("emberflow.agents").addFilter(_Masking())
