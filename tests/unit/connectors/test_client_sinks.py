from __future__ import annotations

import pickle
import queue

import pytest

from emberflow.connectors.client_sinks import CollectSink, PrintSink
from emberflow.errors import SinkFailed
from emberflow.events.batch import Batch

BATCH = Batch(["a", ("b", 1), None])


@pytest.mark.parametrize(
    ("sink", "prefix"),
    [
        (PrintSink(), ""),
        (PrintSink("out"), "out> "),
        (PrintSink(parallelism=2), "2> "),
        (PrintSink("out", parallelism=2), "out:2> "),
    ],
)
def test_print_writes_as_flink_does(sink: PrintSink, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    sink.deliver(BATCH, 1)
    assert capsys.readouterr().out == f"{prefix}a\n{prefix}('b', 1)\n{prefix}None\n"
    assert sink.to_client


def test_print_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    sink = PrintSink("", True)
    sink.deliver(BATCH, 0)
    assert capsys.readouterr() == ("", "a\n('b', 1)\nNone\n")
    assert sink.describe() == "Print to Std. Err"


def test_collect_passes_batches_to_a_function_or_a_queue() -> None:
    found: list[Batch] = []
    CollectSink(found.append).deliver(BATCH, 0)
    waiting: queue.Queue[Batch] = queue.Queue()
    CollectSink(waiting).deliver(BATCH, 0)
    assert found == [BATCH]
    assert waiting.get_nowait() is BATCH


def test_a_shipped_collect_sink_does_not_include_its_queue() -> None:
    copy: CollectSink = pickle.loads(pickle.dumps(CollectSink(queue.Queue())))
    with pytest.raises(SinkFailed, match="a copy of a collect sink"):
        copy.deliver(BATCH, 0)
