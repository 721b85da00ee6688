"""The exits of a stage on Spark, without Spark: to which group, in which order and with which watermark records are sent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from emberflow.engines.spark.wire.packet_rows import group_ids, sink_dest
from emberflow.engines.spark.worker.packing import ExchangePacker, SinkPacker, SparkExits
from emberflow.errors import KeySelectorFailed, NotSerializable
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.events.key_groups import KeyGroups
from emberflow.events.packets import Packet, decode_packet
from emberflow.streams import CollectSink, DiscardingSink
from tests.support.spark_specs import graph_of, spec_of

GROUPS = 8
KEYED = graph_of(lambda env: env.from_collection([("a", 1)]).key_by(lambda v: v[0]).sum(1).print())


def packer(**changes: Any) -> ExchangePacker:
    return ExchangePacker(spec_of(KEYED, max_parallelism=GROUPS, **changes), KEYED.exchanges[0])


def packets(rows: list[Any]) -> list[tuple[int, int, Packet]]:
    return [(number, mark, decode_packet(data)) for number, _, _, mark, data in rows]


def keyed(*keys: str, stamps: list[int] | None = None, marks: list[int] | None = None) -> Batch:
    return Batch([(key, 1) for key in keys], stamps, marks, list(keys))


def test_records_are_sent_to_the_group_of_their_key_in_order() -> None:
    made = packer()
    made.on_batch(keyed("a", "b", "a"))
    made.on_batch(keyed("c", "a"))
    groups, ids = KeyGroups(GROUPS), group_ids(GROUPS, 1)
    found: dict[int, list[Any]] = {}
    for number, _, packet in packets(made.take_rows()):
        found.setdefault(number, []).extend(packet.batch.keys or ())
    wanted: dict[int, list[Any]] = {}
    for key in ("a", "b", "a", "c", "a"):
        wanted.setdefault(ids[groups[key]], []).append(key)
    assert found == wanted
    assert made.take_rows() == [], "what was taken is gone"


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_batches_with_and_without_timestamps_and_watermarks_may_follow_each_other(order: Any) -> None:
    """A shorter column would lose the last records of the packet."""
    batches = [keyed("a"), keyed("a", stamps=[1]), keyed("a", stamps=[2], marks=[0]), keyed("a", marks=[1])]
    batches[order[1]].origins = [("reader", "1")]
    made = packer()
    for number in order:
        made.on_batch(batches[number])
    ((_, _, packet),) = packets(made.take_rows())
    assert list(packet.batch.timestamps or ()) == [(None, 1, 2, None)[number] for number in order]
    assert list(packet.batch.watermarks or ()) == [
        (MIN_WATERMARK, MIN_WATERMARK, 0, 1)[number] for number in order
    ]
    assert len(packet.batch.values) == len(packet.batch.keys or ()) == 4
    assert packet.batch.origins == [None, ("reader", "1"), None, None]


def test_a_watermark_reaches_every_group() -> None:
    made = packer()
    made.on_batch(keyed("a", stamps=[5], marks=[3]))
    made.on_watermark(4)
    rows = packets(made.take_rows())
    assert sorted(number for number, _, _ in rows) == sorted(group_ids(GROUPS, 1))
    assert {mark for _, mark, _ in rows} == {4}
    (with_record,) = [packet for _, _, packet in rows if len(packet.batch)]
    assert with_record.batch.watermarks == [3]
    assert with_record.batch.timestamps == [5]


def test_a_stage_with_at_end_watermarks_sends_each_once() -> None:
    made = packer(at_end=dict.fromkeys(range(len(KEYED.stages)), True))
    made.on_batch(keyed("a", stamps=[5], marks=[3]))
    first = packets(made.take_rows())
    assert {mark for _, mark, _ in first} == {3}
    assert all(packet.at_end for _, _, packet in first)
    made.on_watermark(3)
    assert made.take_rows() == [], "nothing is sent"
    made.new_batch(0)
    made.on_watermark(3)
    assert len(made.take_rows()) == GROUPS, "another task sends it again"


def test_batch_mode_has_no_watermarks() -> None:
    made = packer(batch=True)
    made.on_batch(keyed("a", stamps=[5], marks=[3]))
    made.on_watermark(9)
    made.hold(0, 1)
    ((_, mark, packet),) = packets(made.take_rows())
    assert (mark, packet.batch.watermarks) == (MIN_WATERMARK, None)


def test_a_channel_is_packed_before_the_next_one_is_selected() -> None:
    made = packer()
    made.on_batch(keyed("a"))
    made.select_channel(1)
    made.on_batch(keyed("a"))
    found = [packet for _, _, packet in packets(made.take_rows())]
    assert [(packet.channel, packet.sequence) for packet in found] == [(0, 1), (1, 2)]


def test_a_hold_is_sent_to_all_groups_and_released() -> None:
    made = packer()
    made.hold(3, 7)
    held = packets(made.take_rows())
    assert len(held) == GROUPS
    assert {mark for _, mark, _ in held} == {7}
    made.hold(3, None)
    assert {mark for _, mark, _ in packets(made.take_rows())} == {MAX_WATERMARK}


def test_an_abandoned_attempt_leaves_nothing() -> None:
    made = packer()
    made.on_batch(keyed("a"))
    made.on_watermark(5)
    made.select_channel(1)
    made.new_batch(40)
    assert made.take_rows() == []
    made.on_batch(keyed("b"))
    ((_, _, packet),) = packets(made.take_rows())
    assert packet.sequence == 41


def test_a_key_that_cannot_be_hashed_is_named() -> None:
    made = packer()
    with pytest.raises(KeySelectorFailed, match=r"the key \[1\] of the value 'x' cannot be used as a key"):
        made.on_batch(Batch(["x"], None, None, [[1]]))


def test_a_value_that_cannot_be_sent_names_the_receiving_step() -> None:
    made = packer()
    made.on_batch(Batch([("a", (item for item in ()))], None, None, ["a"]))
    with pytest.raises(NotSerializable, match="step 'sum'"):
        made.take_rows()


def sink_packer(sink: Any) -> SinkPacker:
    graph = graph_of(lambda env: env.from_collection([1]).sink_to(sink))
    return SinkPacker(spec_of(graph), graph.sinks[0], 0)


def test_records_for_a_sink_keep_order_and_timestamps() -> None:
    made = sink_packer(CollectSink(lambda batch: None))
    made.new_batch(0)
    made.on_batch(Batch([1, 2]))
    made.on_batch(Batch([3], [30]))
    made.on_watermark(99)
    ((number, dest, count, _, data),) = made.take_rows()
    assert (number, dest, count) == (0, sink_dest(0), 3)
    assert decode_packet(data).batch == Batch([1, 2, 3], [None, None, 30])
    assert made.take_rows() == []


def test_a_sink_that_discards_gets_only_a_count() -> None:
    made = sink_packer(DiscardingSink())
    made.on_batch(Batch([1, 2]))
    ((_, _, count, _, data),) = made.take_rows()
    assert (count, data) == (2, b"")


def test_all_exits_of_a_stage_are_taken_together() -> None:
    def build(env: Any) -> None:
        stream = env.from_collection([("a", 1)])
        stream.key_by(lambda value: value[0]).sum(1).print()
        stream.print()

    graph = graph_of(build)
    exits = SparkExits(spec_of(graph))
    exchange, sink = exits.exchange(graph.exchanges[0]), exits.sink(graph.sinks[-1])
    exits.new_batch(0, 5)
    exchange.on_batch(keyed("a"))
    sink.on_batch(Batch(["x"]))
    to_stage, to_sink = exits.take_rows()
    assert to_stage[1] == graph.exchanges[0].target_stage
    assert (to_sink[0], to_sink[1]) == (5, sink_dest(len(graph.sinks) - 1))


def routed(partition: Any, **changes: Any) -> ExchangePacker:
    """The exit before a map with three tasks."""
    graph = graph_of(lambda env: partition(env.from_collection([1])).map(str).set_parallelism(3).print())
    return ExchangePacker(spec_of(graph, max_parallelism=GROUPS, **changes), graph.exchanges[0])


def sent(made: ExchangePacker) -> dict[int, list[Any]]:
    """Task -> values."""
    ids, found = group_ids(GROUPS, 1), dict[int, list[Any]]()
    for number, _, packet in packets(made.take_rows()):
        found.setdefault(ids.index(number), []).extend(packet.batch.values)
    return found


def test_partitioners_send_to_numbered_tasks() -> None:
    in_turn = routed(lambda stream: stream.rebalance())
    in_turn.sent_by(1, 2, 4)
    in_turn.on_batch(Batch([0, 1, 2, 3]))
    assert sent(in_turn) == {2: [0, 3], 0: [1], 1: [2]}
    custom = routed(lambda stream: stream.partition_custom(lambda key, tasks: key % tasks, lambda v: v))
    custom.on_batch(Batch([0, 1, 2, 3], keys=[2, 2, 1, 0]))
    assert sent(custom) == {2: [0, 1], 1: [2], 0: [3]}
    assert sent(custom) == {}, "what was taken is gone"


def test_a_broadcast_and_watermarks_reach_the_tasks_there_are() -> None:
    made = routed(lambda stream: stream.broadcast())
    made.on_batch(Batch(["x"]))
    # Timestamps and watermarks may begin later than records.
    made.on_batch(Batch(["y"], [5], [3]))
    made.on_watermark(4)
    rows = packets(made.take_rows())
    assert [number for number, _, _ in rows] == list(group_ids(GROUPS, 1)[:3])
    for _, mark, packet in rows:
        assert (mark, packet.batch.values, packet.batch.timestamps) == (4, ["x", "y"], [None, 5])
        assert packet.batch.watermarks == [MIN_WATERMARK, 3]
    in_turn = routed(lambda stream: stream.rebalance())
    in_turn.on_watermark(7)
    assert len(packets(in_turn.take_rows())) == 3
