"""Stateful stream programs in Python, on Spark or in one process. Start with `StreamExecutionEnvironment`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberflow.lazy_names import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from emberflow.errors import EmberflowError
    from emberflow.streams import (
        AsyncDataStream,
        DataStream,
        KeyedProcessFunction,
        ListStateDescriptor,
        MapStateDescriptor,
        OutputTag,
        ProcessFunction,
        RuntimeExecutionMode,
        SlidingEventTimeWindows,
        StreamExecutionEnvironment,
        TumblingEventTimeWindows,
        Types,
        ValueStateDescriptor,
        WatermarkStrategy,
    )

else:
    # Names are imported when they are first used. Stored bytes call `_stored` and `_stored_error` by these names.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "emberflow.errors": "EmberflowError _stored_error",
            "emberflow.events.stored_types": "_stored",
            "emberflow.streams": """
                AsyncDataStream DataStream KeyedProcessFunction ListStateDescriptor MapStateDescriptor OutputTag
                ProcessFunction RuntimeExecutionMode SlidingEventTimeWindows StreamExecutionEnvironment
                TumblingEventTimeWindows Types ValueStateDescriptor WatermarkStrategy
            """,
        },
    )

__all__ = [
    "AsyncDataStream",
    "DataStream",
    "EmberflowError",
    "KeyedProcessFunction",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "OutputTag",
    "ProcessFunction",
    "RuntimeExecutionMode",
    "SlidingEventTimeWindows",
    "StreamExecutionEnvironment",
    "TumblingEventTimeWindows",
    "Types",
    "ValueStateDescriptor",
    "WatermarkStrategy",
]
