"""B15: side outputs from process functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.streams import KeyedProcessFunction, OutputTag, ProcessFunction
from emberflow.testing import SPARK, Host, on_every_host, per_key

ODD = OutputTag("odd")
BIG = OutputTag("big")


class Sort(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
        if value % 2:
            yield ODD, value
        if value > 10:
            yield BIG, value
        yield value


class KeyedSort(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(2**63 - 1)
        if value % 2:
            yield ODD, value
        else:
            yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield BIG, ("end of", ctx.get_current_key())


def tagged(**streams: Any) -> Any:
    named = [stream.map(lambda value, name=name: (name, value)) for name, stream in streams.items()]
    return named[0].union(*named[1:])


@on_every_host(nightly=[SPARK])
def test_side_outputs_of_a_process_function(host: Host) -> None:
    def build(env: Any) -> Any:
        main = env.from_collection([1, 2, 11, 12]).process(Sort())
        return tagged(main=main, odd=main.get_side_output(ODD), big=main.get_side_output(OutputTag("big")))

    assert per_key(host.run(build)) == {
        "main": [("main", 1), ("main", 2), ("main", 11), ("main", 12)],
        "odd": [("odd", 1), ("odd", 11)],
        "big": [("big", 11), ("big", 12)],
    }


@on_every_host
def test_side_outputs_from_elements_and_timers(host: Host) -> None:
    def build(env: Any) -> Any:
        main = env.from_collection([1, 2, 3]).key_by(lambda v: v % 2).process(KeyedSort())
        return tagged(main=main, odd=main.get_side_output(ODD), end=main.get_side_output(BIG))

    out = per_key(host.run(build))
    assert out["main"] == [("main", 2)]
    assert out["odd"] == [("odd", 1), ("odd", 3)]
    assert sorted(out["end"]) == [("end", ("end of", 0)), ("end", ("end of", 1))]


@on_every_host(nightly=[SPARK])
def test_an_unused_side_output_is_dropped(host: Host) -> None:
    assert host.run(lambda env: env.from_collection([1, 2, 11]).process(Sort())) == [1, 2, 11]


@on_every_host(nightly=[SPARK])
def test_a_side_output_alone(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([1, 2, 11]).process(Sort()).get_side_output(ODD))
    assert out == [1, 11]


@on_every_host
def test_a_side_output_can_have_its_own_steps_keys_and_side_outputs(host: Host) -> None:
    def build(env: Any) -> Any:
        odd = env.from_collection([1, 2, 3, 13]).process(Sort()).get_side_output(ODD)
        again = odd.map(lambda n: n + 10).process(Sort())
        counted = again.get_side_output(BIG).key_by(lambda n: "all").map(lambda n: n)
        return tagged(again=again, counted=counted)

    assert per_key(host.run(build)) == {
        "again": [("again", 11), ("again", 13), ("again", 23)],
        "counted": [("counted", 11), ("counted", 13), ("counted", 23)],
    }


@on_every_host
def test_a_side_output_of_a_side_output_is_rejected(host: Host) -> None:
    env = host.environment()
    side = env.from_collection([1]).process(Sort()).get_side_output(ODD)
    with pytest.raises(InvalidArgument, match="big"):
        side.get_side_output(BIG)
