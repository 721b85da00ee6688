"""From a source's share to visible output, like Spark's tasks and its driver, without a session: read, write, commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="B1 on Spark: what runs in Spark's workers")

from emberflow.connectors.source import Chunk
from emberflow.engines.spark.driver.batch_commit import ClientFolder, commit_epoch
from emberflow.engines.spark.wire.arrow_rows import record_batches, rows_of
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec
from emberflow.engines.spark.wire.packet_rows import STATS, PacketRow, is_for_sink, sink_dest
from emberflow.engines.spark.wire.source_share import Share
from emberflow.engines.spark.worker.sink_writer import write_task
from emberflow.engines.spark.worker.source_reader import read_share, read_whole
from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.events.packets import Packet, decode_packet, encode_packet
from emberflow.streams import CollectSink, DataGeneratorSource
from emberflow.testing import literal_files, read_committed
from tests.support.spark_specs import graph_of, spec_of


def tenfold(value: int) -> int:
    return value * 10


def numbers(index: int) -> int:
    return index


def spec_to(sink: Any, **changes: Any) -> JobSpec:
    def build(env: Any) -> None:
        source = DataGeneratorSource(numbers, count=6, parallelism=1)
        env.add_source(source).uid("numbers").map(tenfold).uid("tenfold").sink_to(sink).uid("out")

    return spec_of(graph_of(build), start_positions={0: [[[0, 1], False]]}, **changes)


def rows_in(batches: Any) -> list[Any]:
    return [row for batch in batches for row in rows_of(batch)]


def values_in(rows: list[Any]) -> list[Any]:
    return [value for row in rows if is_for_sink(row[1]) for value in decode_packet(row[4]).batch.values]


def counted(rows: list[Any]) -> int:
    return sum(row[2] for row in rows if row[1] == STATS)


def share(start: Any, stop: Any, *, ends: bool = False, **changes: Any) -> Share:
    return Share(channel=0, start=start, stop=stop, ends=ends, limit=stop[0] - start[0], **changes)


def test_a_share_is_read_through_the_chain_and_counted() -> None:
    data = dump_spec(spec_to(literal_files("unused")))
    rows = rows_in(read_share(data, 0, share([1, 1], [4, 1]), 0))
    assert values_in(rows) == [10, 20, 30]
    assert counted(rows) == 3
    again = rows_in(read_share(data, 0, share([1, 1], [4, 1]), 0))
    assert values_in(again) == [10, 20, 30], "a repeated task reads the same records"


def test_records_read_by_the_driver_are_not_read_again() -> None:
    data = dump_spec(spec_to(literal_files("unused")))
    chunks = (Chunk([7, 8], position=[2, 1]),)
    rows = rows_in(read_share(data, 0, share([0, 1], [2, 1], chunks=chunks), 0))
    assert values_in(rows) == [70, 80]


def test_batch_mode_reads_a_channel_to_its_end() -> None:
    data = dump_spec(spec_to(literal_files("unused"), batch=True))
    rows = rows_in(read_whole(data, 0, 0, 0))
    assert values_in(rows) == [0, 10, 20, 30, 40, 50]
    assert counted(rows) == 6


def test_output_of_tasks_is_visible_after_the_commit_and_once(tmp_path: Path) -> None:
    data = dump_spec(spec_to(literal_files(tmp_path / "out"), client_dir=str(tmp_path / "client")))
    rows = rows_in(read_share(data, 0, share([0, 1], [3, 1]), 0))
    message = write_task(data, record_batches(rows))
    assert read_committed(tmp_path / "out") == []
    commit_epoch(data, [message], 0)
    assert read_committed(tmp_path / "out") == [0, 10, 20]
    commit_epoch(data, [message], 0)
    assert read_committed(tmp_path / "out") == [0, 10, 20], "Spark may commit a batch again"


def test_output_of_a_lost_attempt_is_not_visible(tmp_path: Path) -> None:
    data = dump_spec(spec_to(literal_files(tmp_path / "out")))
    rows = rows_in(read_share(data, 0, share([0, 1], [2, 1]), 0))
    write_task(data, record_batches(rows))
    commit_epoch(data, [write_task(data, record_batches(rows))], 0)
    assert read_committed(tmp_path / "out") == [0, 10]


def test_packets_are_written_in_the_order_of_creation(tmp_path: Path) -> None:
    """Whichever way they came."""
    data = dump_spec(spec_to(literal_files(tmp_path / "out")))
    made = {number: encode_packet(Packet(0, 0, number, Batch([number]))) for number in (3, 1, 2)}
    rows = [PacketRow(0, sink_dest(0), 1, MIN_WATERMARK, packet) for packet in made.values()]
    commit_epoch(data, [write_task(data, record_batches(rows))], 0)
    assert read_committed(tmp_path / "out") == [1, 2, 3]


def test_records_for_the_driver_are_delivered_in_order_and_once(tmp_path: Path) -> None:
    home = tmp_path / "client"
    data = dump_spec(spec_to(CollectSink(lambda batch: None), client_dir=str(home)))
    messages = [
        write_task(data, record_batches(rows_in(read_share(data, 0, share([n, 1], [n + 2, 1]), 0))))
        for n in (0, 2, 4)
    ]
    folder = ClientFolder(str(home))
    assert folder.take() == []
    commit_epoch(data, [messages[0]], 0)
    commit_epoch(data, [messages[1]], 1)
    assert [list(batch.values) for _, _, batch in folder.take()] == [[0, 10], [20, 30]]
    commit_epoch(data, [messages[1]], 1)
    commit_epoch(data, [messages[2]], 2)
    assert [list(batch.values) for _, _, batch in folder.take()] == [[40, 50]], (
        "a repeated batch is delivered once"
    )
    assert list(home.iterdir()) == [], "what was delivered is removed"


def test_records_of_an_earlier_run_are_discarded(tmp_path: Path) -> None:
    home = tmp_path / "client"
    data = dump_spec(spec_to(CollectSink(lambda batch: None), client_dir=str(home)))
    message = write_task(data, record_batches(rows_in(read_share(data, 0, share([0, 1], [1, 1]), 0))))
    commit_epoch(data, [message], 0)
    folder = ClientFolder(str(home))
    folder.forget_earlier()
    assert folder.take() == []
