"""A job's numbers get names in a savepoint, and other numbers in the next job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.job.savepoint_start import keep_wiring
from emberflow.errors import ProgramChanged
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.events.stored_files import write_json
from emberflow.operators.watermarks.watermark_merge import hold_channel
from emberflow.savepoints.wiring import Wiring, wiring_of
from emberflow.streams import BroadcastProcessFunction, MapStateDescriptor
from emberflow.testing import LOCAL


def graph(*, with_more: bool = False) -> Any:
    env = LOCAL.environment()
    if with_more:
        env.from_collection([(1, 1)]).uid("more").key_by(lambda pair: pair[0]).sum(1).uid("other").print()
    stream = env.from_collection([(1, 1)]).uid("pairs")
    sums = stream.key_by(lambda pair: pair[0]).sum(1).uid("sums")
    sums.union(stream).key_by(lambda pair: pair[1]).sum(0).uid("again").print()
    return env.job_graph("wired")


def test_names_stay_when_numbers_change() -> None:
    small, large = wiring_of(graph()), wiring_of(graph(with_more=True))
    names = {"pairs > pairs > sums[0]", "sums > sums > again[0]", "pairs > pairs > again[0]"}
    assert set(small.exchanges) == names
    assert names < set(large.exchanges)
    assert {name: small.exchanges[name] for name in names} != {name: large.exchanges[name] for name in names}
    assert (small.sources, list(small.kinds)) == (["pairs"], ["sums", "again"])


def test_a_stream_that_is_part_of_a_union_twice_has_two_names() -> None:
    env = LOCAL.environment()
    stream = env.from_collection([(1, 1)]).uid("pairs")
    stream.union(stream.rebalance(), stream).key_by(lambda pair: pair[0]).sum(1).uid("sums").print()
    name = "pairs > pairs > sums[0]"
    assert set(wiring_of(env.job_graph("twice")).exchanges) == {name, f"{name} #2", f"{name} #3"}


def wired() -> Wiring:
    return Wiring(
        job_name="job", stages={}, kinds={}, sources=[], sinks=[], exchanges={"a > b[0]": 3, "c > b[1]": 5}
    )


def test_channels_by_name() -> None:
    saved = [((3, 1), 20, 0), ((3, 0), 10, 0), ((5, 0), MAX_WATERMARK, 7), ((9, 0), 1, 0)]
    assert wired().named_channels(saved) == {"a > b[0]": [10, 20], "c > b[1]": [MAX_WATERMARK]}


def test_a_hold_lowers_its_channel() -> None:
    saved = [((3, 0), 50, 0), ((3, 1), 30, 0), (hold_channel(3, 17), 40, 0), ((5, 0), MIN_WATERMARK, 0)]
    assert wired().named_channels(saved) == {"a > b[0]": [40, 30], "c > b[1]": [MIN_WATERMARK]}


def test_channels_that_are_keys_are_named_too() -> None:
    wiring = wired()
    assert wiring.key_out("watermark_generator", (5, 2)) == ("c > b[1]", 2)
    assert wiring.key_in("watermark_generator", ("a > b[0]", 2)) == (3, 2)
    assert wiring.key_in("watermark_generator", ("gone", 2)) == (-1, 2)
    assert wiring.key_out("sum", (5, 2)) == (5, 2)


def two_sums(first: str, second: str) -> Any:
    env = LOCAL.environment()
    for uid in (first, second):
        stream = env.from_collection([(1, 1)]).uid(f"source of {uid}")
        stream.key_by(lambda pair: pair[0]).sum(1).uid(uid).print().uid(f"sink of {uid}")
    return env.job_graph()


def test_steps_in_another_order_are_detected_where_numbers_matter(tmp_path: Path) -> None:
    keep_wiring(two_sums("a", "b"), str(tmp_path), None, by_number=True)
    keep_wiring(two_sums("a", "b"), str(tmp_path), None, by_number=True)
    with pytest.raises(ProgramChanged, match="the steps are in a different order") as caught:
        keep_wiring(two_sums("b", "a"), str(tmp_path), None, by_number=True)
    assert "emberflow savepoint create" in str(caught.value)
    assert keep_wiring(two_sums("b", "a"), str(tmp_path), None).stages["b"] == 1


def ruled(tasks: int | None) -> Any:
    env: Any = LOCAL.environment()
    stream = env.from_collection([1])
    rules = stream.broadcast(MapStateDescriptor("rules"))
    step = stream.connect(rules).process(BroadcastProcessFunction()).uid("ruled")
    if tasks is not None:
        step.set_parallelism(tasks)
    return env.job_graph()


def test_state_of_numbered_tasks_keeps_its_parallelism_within_a_checkpoint(tmp_path: Path) -> None:
    assert keep_wiring(ruled(2), str(tmp_path), None, by_number=True).tasks == {"ruled": 2}
    with pytest.raises(ProgramChanged, match="the parallelism of 'ruled' has changed"):
        keep_wiring(ruled(3), str(tmp_path), None, by_number=True)
    with pytest.raises(ProgramChanged, match="the parallelism of 'ruled' has changed"):
        keep_wiring(ruled(None), str(tmp_path), None, by_number=True)
    # Locally it is distributed again.
    assert keep_wiring(ruled(3), str(tmp_path), None).tasks == {"ruled": 3}


def test_a_wiring_of_the_first_format_is_read(tmp_path: Path) -> None:
    keep_wiring(ruled(2), str(tmp_path), None)
    path = tmp_path / "wiring.json"
    body = json.loads(path.read_text())
    del body["tasks"]
    body.pop("checksum", None)
    write_json(path, {**body, "format": 1})
    assert keep_wiring(ruled(3), str(tmp_path), None, by_number=True).tasks == {"ruled": 3}
