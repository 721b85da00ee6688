"""Counts the words of text files: how often each occurs, the most frequent first.

python examples/streams/word_count.py                    # a built-in text
python examples/streams/word_count.py notes.txt folder   # yours
emberflow run examples/streams/word_count.py --engine local -- notes.txt
"""

import re
import sys
import tempfile
from pathlib import Path

from emberflow.streams import FileSource, RuntimeExecutionMode, StreamExecutionEnvironment, StreamFormat

TEXT = """\
the river runs to the sea and the sea gives it back to the sky
the sky gives it to the hills and the hills to the river
"""


def words(line: str) -> list[tuple[str, int]]:
    return [(word, 1) for word in re.findall(r"[^\W\d_]+", line.lower())]


def count_words(paths: list[str]) -> dict[str, int]:
    env = StreamExecutionEnvironment.get_execution_environment()
    # The input is bounded: batch mode emits each word once, with its final count, and starts faster on Spark.
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths).build()
    counts = (
        env.from_source(source, source_name="lines")
        .flat_map(words)
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with counts.execute_and_collect("word count") as results:
        return dict(results)


def main(paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            text = Path(folder, "poem.txt")
            text.write_text(TEXT, encoding="utf-8")
            paths = [str(text)]
        counts = count_words(paths)
    most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
    for word, count in most:
        print(f"{count:>6}  {word}")


if __name__ == "__main__":
    main(sys.argv[1:])
