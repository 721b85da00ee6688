"""A keyed reduce in batch mode emits one value per key, whatever the split into batches and wherever it is restored."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK
from emberflow.streams import ReduceFunction, RuntimeContext, ValueStateDescriptor
from emberflow.testing import OperatorHarness


class Counted(ReduceFunction):
    """Concatenates, and counts its calls in keyed state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._calls = runtime_context.get_state(ValueStateDescriptor("calls"))

    def reduce(self, value1: Any, value2: Any) -> Any:
        calls = (self._calls.value() or 0) + 1
        self._calls.update(calls)
        return value1[0], value1[1] + value2[1], calls


records = st.lists(
    st.tuples(st.sampled_from(["a", "b", None, 1, True, 1.0]), st.text("xyz", max_size=2)), max_size=20
)
positions = st.sets(st.integers(0, 20), max_size=5)


def make(restore: bytes | None = None) -> OperatorHarness:
    return OperatorHarness(
        lambda stream: stream.key_by(lambda value: value[0]).reduce(Counted()), batch=True, restore=restore
    )


@settings(max_examples=200, deadline=None)
@given(sent=records, cuts=positions, crashes=positions)
def test_one_value_per_key(sent: list[tuple[Any, str]], cuts: set[int], crashes: set[int]) -> None:
    by_key: dict[Any, list[tuple[Any, str]]] = {}
    for record in sent:
        by_key.setdefault(record[0], []).append(record)
    wanted = [
        (found[0][0], "".join(text for _, text in found), len(found) - 1) if len(found) > 1 else found[0]
        for found in by_key.values()
    ]

    harness = make()
    starts = sorted({0, *(cut for cut in cuts if cut < len(sent))})
    for number, start in enumerate(starts):
        if number in crashes:
            assert harness.values == [], "nothing leaves before the end"
            harness = make(harness.snapshot())
        part = sent[start : starts[number + 1] if number + 1 < len(starts) else None]
        harness.send(part, list(range(len(part))))
    harness.end()

    assert harness.values == wanted
    assert {item.timestamp for item in harness.outlet().records} <= {MAX_WATERMARK}
