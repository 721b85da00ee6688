"""Secrets of an agent's resources are masked in everything that is logged about agents."""

from __future__ import annotations

import gc
import logging

import pytest

from emberflow.operators.agents.calls.masked_log import mask_in_log

LOG = logging.getLogger("emberflow.agents")


class Holder:
    def __init__(self, *secrets: str) -> None:
        self.secrets = set(secrets)


def test_secrets_are_masked_as_long_as_their_holder_exists(caplog: pytest.LogCaptureFixture) -> None:
    holder = Holder("tok-314159")
    mask_in_log(holder)
    LOG.warning("the service answered %s", "tok-314159 is wrong")
    assert caplog.messages[-1] == "the service answered *** is wrong"
    del holder
    gc.collect()
    LOG.warning("the service answered tok-314159")
    assert caplog.messages[-1] == "the service answered tok-314159"


def test_values_that_are_parts_of_ordinary_words_are_not(caplog: pytest.LogCaptureFixture) -> None:
    holder = Holder("k", "act")
    mask_in_log(holder)
    LOG.warning("the action 'like' waits")
    assert caplog.messages[-1] == "the action 'like' waits"
    assert holder.secrets
