"""Wrong uses of state that a type checker must find; each comment names the rule it reports in that line."""

from __future__ import annotations

from emberflow.streams import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    RuntimeContext,
    Types,
    ValueStateDescriptor,
)


def use(ctx: RuntimeContext) -> None:
    count = ctx.get_state(ValueStateDescriptor("count", int))
    count.update("one")  # error: reportArgumentType
    count.value() + 1  # error: reportOptionalOperand
    ctx.get_state(ListStateDescriptor("lines", str))  # error: reportArgumentType
    ctx.get_list_state(ListStateDescriptor("lines", Types.STRING())).add(1)  # error: reportArgumentType
    totals = ctx.get_map_state(MapStateDescriptor("totals", str, float))
    totals.put(1, 1.0)  # error: reportArgumentType
    totals.put("ann", "much")  # error: reportArgumentType
    ReducingStateDescriptor[int]("sum", lambda a, b: str(a))  # error: reportArgumentType
    ValueStateDescriptor(int)  # error: reportArgumentType
