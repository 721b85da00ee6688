"""Sources of random programs; see random_programs.py."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from emberflow.events.batch import MIN_WATERMARK
from emberflow.streams import FileSource, StreamFormat, WatermarkStrategy
from emberflow.testing import TestSource
from tests.support.random_functions import KEYS, LIMIT
from tests.support.random_programs import Flow, Order, Rec, Shape
from tests.support.random_steps import number_of

KINDS = ("collection", "test", "test", "sequence", "files")


class Numbers:
    """Pairs with times that are a little out of order, from a collection, a test source, a sequence or files."""

    def __init__(self, rng: Random, folder: Path) -> None:
        self.kind = rng.choice(KINDS)
        self.count, self.batch = rng.choice([0, 1, 12, 40, 40, 40]), rng.choice([1, 3, 7, 20])
        self.waits = rng.choice([None, 0, 5, 30])
        spread = rng.choice([0, 5, 30])
        self.pairs = [(rng.randrange(KEYS), at * 3 + rng.randint(0, spread)) for at in range(self.count)]
        if self.kind == "sequence":
            self.pairs = [as_pair(number) for number in range(self.count)]
        if self.kind in ("sequence", "files"):
            # Several channels, so there is no order, and nothing may be late.
            self.waits = None if self.waits is None else 30
            self.outs = [Shape(Order.NONE, self.waits is not None)]
        else:
            late = self.waits is not None and self.waits < spread
            self.outs = [Shape(Order.TOTAL, self.waits is not None, late)]
        self.items: list[Any] = list(self.pairs)
        """What a test source reads: crashes and latches may be added."""
        self._files = folder / f"{rng.getrandbits(64)}"

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        if self.kind == "sequence" and self.count:
            stream = env.from_sequence(0, self.count - 1).map(as_pair)
        elif self.kind == "files":
            stream = env.from_source(self._written(), source_name="files").map(parsed)
        elif self.kind == "test":
            stream = env.add_source(TestSource(self.items, self.batch))
        else:
            stream = env.from_collection(self.pairs)
        if self.waits is None:
            return [stream]
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(self.waits)
        return [stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(number_of))]

    def _written(self) -> Any:
        self._files.mkdir(exist_ok=True)
        for number in range(3):
            part = self.pairs[self.count * number // 3 : self.count * (number + 1) // 3]
            lines = [f"{key} {value}\n" for key, value in part]
            (self._files / f"{number}.txt").write_text("".join(lines))
        return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self._files)).build()

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        recs = [Rec(key, number, None if self.waits is None else number) for key, number in self.pairs]
        if self.outs[0].order is not Order.TOTAL:
            return [Flow(recs)]
        marks, mark = list[int](), MIN_WATERMARK
        for rec in recs:
            marks.append(MIN_WATERMARK if batch else mark)
            if self.waits is not None:
                mark = max(mark, rec.number - self.waits - 1)
        return [Flow(recs, marks)]


def as_pair(number: int) -> tuple[int, int]:
    return number % KEYS, number % LIMIT


def parsed(line: str) -> tuple[int, int]:
    key, number = line.split()
    return int(key), int(number)
