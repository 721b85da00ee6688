"""Stateful stream programs in Python, on Spark or in one process. Start with `StreamExecutionEnvironment`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from emberflow.errors import EmberflowError as EmberflowError
    from emberflow.streams import (
        AsyncDataStream as AsyncDataStream,
    )
    from emberflow.streams import (
        DataStream as DataStream,
    )
    from emberflow.streams import (
        KeyedProcessFunction as KeyedProcessFunction,
    )
    from emberflow.streams import (
        ListStateDescriptor as ListStateDescriptor,
    )
    from emberflow.streams import (
        MapStateDescriptor as MapStateDescriptor,
    )
    from emberflow.streams import (
        OutputTag as OutputTag,
    )
    from emberflow.streams import (
        ProcessFunction as ProcessFunction,
    )
    from emberflow.streams import (
        RuntimeExecutionMode as RuntimeExecutionMode,
    )
    from emberflow.streams import (
        SlidingEventTimeWindows as SlidingEventTimeWindows,
    )
    from emberflow.streams import (
        StreamExecutionEnvironment as StreamExecutionEnvironment,
    )
    from emberflow.streams import (
        TumblingEventTimeWindows as TumblingEventTimeWindows,
    )
    from emberflow.streams import (
        Types as Types,
    )
    from emberflow.streams import (
        ValueStateDescriptor as ValueStateDescriptor,
    )
    from emberflow.streams import (
        WatermarkStrategy as WatermarkStrategy,
    )

_HOMES = {
    "EmberflowError": "emberflow.errors",
    "AsyncDataStream": "emberflow.streams",
    "DataStream": "emberflow.streams",
    "KeyedProcessFunction": "emberflow.streams",
    "ListStateDescriptor": "emberflow.streams",
    "MapStateDescriptor": "emberflow.streams",
    "OutputTag": "emberflow.streams",
    "ProcessFunction": "emberflow.streams",
    "RuntimeExecutionMode": "emberflow.streams",
    "SlidingEventTimeWindows": "emberflow.streams",
    "StreamExecutionEnvironment": "emberflow.streams",
    "TumblingEventTimeWindows": "emberflow.streams",
    "Types": "emberflow.streams",
    "ValueStateDescriptor": "emberflow.streams",
    "WatermarkStrategy": "emberflow.streams",
}

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


_STORED = {"_stored": "emberflow.events.stored_types", "_stored_error": "emberflow.errors"}
"""Stored bytes call these by these names."""


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used, so that `import emberflow` stays quick."""
    home = _STORED.get(name) or _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'emberflow' has no attribute {name!r}")
    # Kept: pickle asks for `_stored` with every object that it writes.
    found = globals()[name] = getattr(importlib.import_module(home), name)
    return found
