"""Methods have the parameters of PyFlink's, in its order; `record_interface.py` recorded those."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from emberflow.compat.finder import ours
from emberflow.compat.pyflink.package import PYFLINK

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "expected" / "signatures.json").read_text(encoding="utf-8")
)

# What differs, and why. Constructors that only PyFlink calls itself are not listed: see CALLED_BY_USERS.
DIFFERENT: dict[str, str] = {
    "Sink": "in PyFlink it wraps a Java object; here it is a class to derive from",
    "SinkFunction": "in PyFlink it wraps a Java object; here it is a class to derive from",
    "Source": "in PyFlink it wraps a Java object; here it is a class to derive from",
    **dict.fromkeys(
        ("FileSink.for_bulk_format", "StreamingFileSink.for_bulk_format"),
        "bulk writers are Java classes; columnar files are written with to_dataframe()",
    ),
    "FileSource.for_bulk_file_format": "bulk formats are Java classes; columnar files are read with from_dataframe()",
    **dict.fromkeys(
        ("CountWindowSerializer", "GlobalWindowSerializer", "TimeWindowSerializer"), "windows are pickled"
    ),
    **dict.fromkeys(
        (
            "ContinuousEventTimeTrigger.register_next_fire_timestamp",
            "ContinuousProcessingTimeTrigger.register_next_fire_timestamp",
        ),
        "a helper of PyFlink's own",
    ),
    **dict.fromkeys(
        ("FileSourceBuilder.set_file_enumerator", "FileSourceBuilder.set_split_assigner"),
        "providers are Java classes",
    ),
}

CALLED_BY_USERS = {
    "AggregatingStateDescriptor", "Configuration", "EmbeddedRocksDBStateBackend", "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage", "ListStateDescriptor", "MapStateDescriptor", "MemorySize", "NumberSequenceSource",
    "OutputTag", "ReducingStateDescriptor", "Time", "TimeWindow", "ValueStateDescriptor",
}  # fmt: skip


def parameters(function: Any) -> list[str]:
    found = [
        f"*{item.name}" if item.kind is item.VAR_POSITIONAL else item.name
        for item in inspect.signature(function).parameters.values()
    ]
    return found[1:] if found[:1] == ["self"] else found


def difference(owner: str, method: str, expected: list[str]) -> str:
    kind = ours(PYFLINK, owner)
    if owner in DIFFERENT or f"{owner}.{method}" in DIFFERENT:
        return ""
    if "_java_" in method or method in ("get_transformer", "to_j_row_kind"):
        return ""  # There are no Java objects.
    if owner.endswith(("TypeInfo", "TypeInformation")):
        return ""  # Types are made with `Types` and converted by emberflow itself.
    if method == "__init__":
        if owner not in CALLED_BY_USERS:
            return ""
        found = parameters(kind)
    elif getattr(kind, method, None) is None:
        return f"{owner}.{method}({', '.join(expected)}) is missing"
    else:
        found = parameters(getattr(kind, method))
    # `*args` in PyFlink's stubs stands for what is refused whatever is given.
    if found[: len(expected)] == expected or expected == ["*args"]:
        return ""
    return f"{owner}.{method} takes ({', '.join(found)}), PyFlink's ({', '.join(expected)})"


@pytest.mark.parametrize("owner", [name for name in RECORDED if ours(PYFLINK, name) is not None])
def test_parameters_are_pyflinks(owner: str) -> None:
    found = [difference(owner, method, expected) for method, expected in RECORDED[owner].items()]
    assert [text for text in found if text] == []
