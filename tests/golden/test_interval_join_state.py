"""What an interval join has stored: a later version continues with it.

`python -m tests.golden.test_interval_join_state` writes the file of this version, once.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from emberflow.streams import OutputTag
from emberflow.testing import OperatorHarness

STORED = Path(__file__).parent / "v3" / "interval_join.json"
ALONE = OutputTag("alone")


def joined(left: Any, right: Any) -> Any:
    join = left.key_by(lambda value: value[0]).interval_join(right.key_by(lambda value: value[0]))
    outer = join.between(-5, 40).side_output_left_unmatched(ALONE)
    pairs = outer.process(lambda left, right, ctx: [(left[1], right[1])])
    return {"pairs": pairs, "alone": pairs.get_side_output(ALONE)}


def stored() -> bytes:
    harness = OperatorHarness(joined, inputs=2)
    harness.send([("a", "l1"), ("b", "l2"), ("a", "l3")], [100, 101, 130], watermark=120, into=0)
    harness.send([("a", "r1"), (None, "r2")], [99, 140], watermark=115, into=1)
    return harness.snapshot()


def test_a_join_goes_on_with_what_was_stored() -> None:
    state = base64.b64decode(json.loads(STORED.read_text(encoding="utf-8"))["state"])
    harness = OperatorHarness(joined, inputs=2, restore=state)
    harness.send([("a", "r3"), ("a", "r4"), ("b", "late")], [125, 140, 114], watermark=139, into=1)
    harness.send([(None, "l4")], [145], into=0)
    harness.end()
    assert harness.outlet("pairs").values == [
        ("l1", "r3"),
        ("l3", "r3"),
        ("l1", "r4"),
        ("l3", "r4"),
        ("l4", "r2"),
    ]
    # l1 found r1 before the state was stored.
    assert harness.outlet("alone").values == [("b", "l2")]


if __name__ == "__main__":
    STORED.write_text(json.dumps({"state": base64.b64encode(stored()).decode()}) + "\n", encoding="utf-8")
