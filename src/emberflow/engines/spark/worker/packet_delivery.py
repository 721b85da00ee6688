"""Delivers the packets of a key group to the operator: in which order records and watermarks are processed."""

from __future__ import annotations

from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.packets import Packet
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.watermarks.watermark_merge import ChannelId, is_hold

_EMPTY = Batch([])


def deliver(head: KeyedOperator, packets: list[Packet]) -> None:
    """Delivers a group's packets of one batch, in channel order; watermarks of at-end channels take effect when all their
    records were processed. A hold of an upstream group applies from the start of the batch, and is released at its end."""
    inputs, first = head.input_of, head.first_input
    packets.sort(
        key=lambda packet: (inputs[packet.edge] != first, packet.edge, packet.channel, packet.sequence)
    )
    late: dict[ChannelId, int] = {}
    holds = {
        (packet.edge, packet.channel): packet.watermark
        for packet in packets
        if is_hold((packet.edge, packet.channel))
    }
    clock = head.scope.channels
    for hold, watermark in holds.items():
        if watermark is not None and watermark < clock.held(hold):
            clock.hold(hold, watermark)
    for packet in packets:
        channel = (packet.edge, packet.channel)
        if channel in holds:
            continue
        if packet.at_end:
            if packet.watermark is not None:
                late[channel] = max(packet.watermark, late.get(channel, packet.watermark))
            head.receive(inputs[packet.edge], channel, packet.batch, None)
        else:
            head.receive(inputs[packet.edge], channel, packet.batch, packet.watermark)
    for hold, watermark in holds.items():
        if watermark == MAX_WATERMARK:
            clock.release(hold)
        elif watermark is not None:
            clock.hold(hold, watermark)
    for channel, watermark in late.items():
        head.receive(inputs[channel[0]], channel, _EMPTY, watermark)
    if holds:
        head.merge_watermarks()
