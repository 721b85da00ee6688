"""A file sink with staged files of an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import BucketAssigner, Encoder
from emberflow.connectors.sink import WriterContext
from emberflow.events.batch import Batch

JOB, SINK = "job", "sink"


SUBTASKS = 3


def sink_in(folder: Path) -> FileSink:
    return (
        FileSink.for_row_format(folder, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def staged(sink: FileSink, epoch: int, fence: int, text: str) -> list[Any]:
    parts: list[Any] = []
    for subtask in range(SUBTASKS):
        writer = sink.writer(WriterContext(JOB, SINK, subtask, epoch, text, fence))
        writer.write(Batch([f"{text}-{epoch}-{subtask}"]))
        parts.append(writer.prepare())
    return parts


def visible(folder: Path) -> list[str]:
    return sorted(path.read_text().strip() for path in folder.glob("part-*"))


def lines(epoch: int, text: str) -> list[str]:
    return [f"{text}-{epoch}-{subtask}" for subtask in range(SUBTASKS)]
