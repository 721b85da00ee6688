"""Files as an exactly-once sink.

A writer on a worker stages files; when the engine commits an epoch, the ledger makes all of them visible by renaming,
or none. Requires a file system with atomic renames that all workers and the driver share.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import IO, Any, Generic, TypeVar
from zlib import crc32

from emberflow.connectors.files.commit_ledger import (
    FOLDERS,
    CommitLedger,
    has_ledger,
    safe_name,
    short_id,
)
from emberflow.connectors.files.file_sink_options import (
    BasePathBucketAssigner,
    BucketAssigner,
    BucketContext,
    DateTimeBucketAssigner,
    Encoder,
    OutputFileConfig,
    RollingPolicy,
)
from emberflow.connectors.files.local_paths import PathLike, local_path
from emberflow.connectors.files.staged_files import PreparedFile, StagedFile
from emberflow.connectors.sink import Committed, Sink, SinkWriter, WriterContext
from emberflow.errors import InvalidArgument, SinkFailed, describe_cause, shorten
from emberflow.events.batch import Batch
from emberflow.events.private_files import FOLDER_MODE, open_private
from emberflow.events.stored_files import make_folder, sync_folder
from emberflow.events.types.type_information import TypeInformation

MAX_OPEN_FILES = 64


T = TypeVar("T", contravariant=True)
V = TypeVar("V")


class FileSink(Sink[T]):
    """Writes records to files below a base path; created by `FileSink.for_row_format(...)...build()`.

    Exactly once: a file gets its final name when its epoch is committed, and no epoch is written twice. Names are
    `{prefix}-{job and sink}-{epoch}-{subtask}[-n]{suffix}`. Raises SinkFailed if a record cannot be encoded or the file
    system refuses a write.
    """

    def __init__(
        self,
        base_path: str,
        encoder: Encoder[T],
        bucket_assigner: BucketAssigner,
        rolling_policy: RollingPolicy,
        output_file_config: OutputFileConfig,
        *,
        private: bool = False,
    ) -> None:
        self.base_path = base_path
        self.encoder = encoder
        self.bucket_assigner = bucket_assigner
        self.rolling_policy = rolling_policy
        self.output_file_config = output_file_config
        self._starts: set[tuple[str, str, int]] = set()
        """The starts for which this object has taken over its folder: an engine may repeat a start."""
        self.private = private
        """Whether only this user may read the output. Otherwise the umask applies, as for the output of any program."""

    @staticmethod
    def for_row_format(base_path: PathLike, encoder: Encoder[V]) -> RowFormatBuilder[V]:
        """Starts building a sink that encodes record by record; finish with `build()`."""
        return RowFormatBuilder(base_path, encoder)

    @property
    def folder_mode(self) -> int:
        """The mode of folders created below the base path."""
        return FOLDER_MODE if self.private else 0o777

    def describe(self) -> str:
        return f"Files {self.base_path}"

    def for_type(self, type_info: TypeInformation[Any] | None) -> FileSink[T]:
        encoder = self.encoder.for_type(type_info)
        if encoder is self.encoder:
            return self
        typed = copy(self)
        typed.encoder = encoder
        return typed

    def writer(self, context: WriterContext) -> SinkWriter:
        return _FileWriter(self, context)

    def newest_start(self, job_id: str, sink_id: str) -> int:
        return CommitLedger(self.base_path, job_id, sink_id).newest_fence()

    def take_over(self, job_id: str, sink_id: str, fencing_epoch: int) -> Committed:
        ledger = CommitLedger(self.base_path, job_id, sink_id, fencing_epoch)
        start = job_id, sink_id, fencing_epoch
        try:
            found = ledger.take_over(self.folder_mode, again=start in self._starts)
            self._starts.add(start)
            return Committed(found, ledger.newest())
        except OSError as error:
            raise _disk_refused(f"the ledger in {self.base_path} could not be opened", error) from error

    def commit(self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any]) -> None:
        base = self.base_path
        staged_in = next((item.base_path for item in _files(prepared) if item.base_path), base)
        if not has_ledger(base, job_id, sink_id) and has_ledger(staged_in, job_id, sink_id):
            # From a savepoint whose sink had another folder: output prepared there becomes visible there.
            base = staged_in
        elif not has_ledger(base, job_id, sink_id) and any(prepared):
            raise SinkFailed(
                f"the outputs of epoch {epoch} were staged in {staged_in}, whose ledger is gone; "
                f"the sink now writes to {base}",
                way_out=f"restore {staged_in}; or give the sink another uid(), which drops these outputs",
            )
        self._commit(CommitLedger(base, job_id, sink_id), epoch, prepared)

    def finished(self, job_id: str, sink_id: str) -> None:
        CommitLedger(self.base_path, job_id, sink_id).remove()

    def commit_fenced(
        self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any], fencing_epoch: int
    ) -> None:
        self._commit(CommitLedger(self.base_path, job_id, sink_id, fencing_epoch), epoch, prepared)

    def _commit(self, ledger: CommitLedger, epoch: int, prepared: Sequence[Any]) -> None:
        files = [item.staged for item in _files(prepared)]
        try:
            ledger.commit(epoch, files)
        except OSError as error:
            # Missing files may have been moved by a later start.
            ledger.check_fence()
            raise _disk_refused(f"epoch {epoch} could not be committed to {self.base_path}", error) from error


class RowFormatBuilder(Generic[T]):
    def __init__(self, base_path: PathLike, encoder: Encoder[T]) -> None:
        if not isinstance(encoder, Encoder):
            raise InvalidArgument(
                f"a file sink needs an Encoder, not {shorten(encoder)}",
                way_out="use Encoder.simple_string_encoder() or Encoder.json_lines(), or subclass Encoder",
            )
        self._base_path = local_path(base_path)
        self._encoder = encoder
        self._bucket_assigner: BucketAssigner = BucketAssigner.date_time_bucket_assigner()
        self._rolling_policy = RollingPolicy.default_rolling_policy()
        self._output_file_config = OutputFileConfig()
        self._private = False

    def with_bucket_assigner(
        self, bucket_assigner: BucketAssigner | Callable[[Any], str]
    ) -> RowFormatBuilder[T]:
        """Sets the folder of each record: a `BucketAssigner`, or a function of the record."""
        is_assigner = isinstance(bucket_assigner, BucketAssigner)
        self._bucket_assigner = bucket_assigner if is_assigner else BucketAssigner.of(bucket_assigner)
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> RowFormatBuilder[T]:
        self._rolling_policy = rolling_policy
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> RowFormatBuilder[T]:
        self._output_file_config = output_file_config
        return self

    def with_private_files(self) -> RowFormatBuilder[T]:
        """Creates files with mode 0600 and directories with mode 0700, whatever the umask is."""
        self._private = True
        return self

    def with_bucket_check_interval(self, interval: int) -> RowFormatBuilder[T]:
        """Accepted for compatibility with Flink; files end with their epoch, so there is nothing to check in between."""
        return self

    def build(self) -> FileSink[T]:
        return FileSink(
            self._base_path,
            self._encoder,
            self._bucket_assigner,
            self._rolling_policy,
            self._output_file_config,
            private=self._private,
        )


class _Part:
    """A staged file and its final name."""

    def __init__(self, staged: Path, final: str, *, private: bool) -> None:
        self.staged = staged
        self.final = final
        self._opener = open_private if private else None
        self.size = 0
        self.checksum = 0
        self.file: IO[bytes] | None = None

    def write(self, data: bytes) -> None:
        if self.file is None:
            # "ab": it may have been closed to limit open file handles.
            self.file = open(self.staged, "ab", opener=self._opener)  # noqa: SIM115 (kept open across batches)
        self.file.write(data)
        self.size += len(data)
        self.checksum = crc32(data, self.checksum)

    def close(self) -> None:
        if self.file is not None:
            file, self.file = self.file, None
            with file:
                file.flush()
                os.fsync(file.fileno())


def _files(prepared: Sequence[Any]) -> list[PreparedFile]:
    return [PreparedFile.from_stored(item) for part in prepared if part for item in part]


class _FileWriter:
    def __init__(self, sink: FileSink[Any], context: WriterContext) -> None:
        self._sink = sink
        self._context = context
        ledger = CommitLedger(sink.base_path, context.job_id, context.sink_id, context.fencing_epoch)
        self._staging = ledger.staging
        self._short_id = short_id(context.job_id, context.sink_id)
        self._parts: list[_Part] = []
        self._current: dict[str, _Part] = {}
        self._counts: Counter[str] = Counter()

    def write(self, batch: Batch) -> None:
        try:
            for bucket, values in self._by_bucket(batch).items():
                self._append(bucket, values)
        except OSError as error:
            raise _disk_refused(
                f"records could not be written below {self._sink.base_path}", error
            ) from error

    def prepare(self) -> Any:
        if not self._parts:
            return None
        try:
            for part in self._parts:
                part.close()
            sync_folder(self._staging)
        except OSError as error:
            raise _disk_refused(f"files below {self._sink.base_path} could not be finished", error) from error
        base, fence = os.path.abspath(self._sink.base_path), self._context.fencing_epoch
        staged = [
            StagedFile(part.staged.name, part.final, part.size, part.checksum, fence) for part in self._parts
        ]
        return [PreparedFile(item, base).to_stored() for item in staged]

    def abort(self) -> None:
        for part in self._parts:
            # A full disk may refuse to flush the buffer; remove the file anyway.
            with contextlib.suppress(OSError):
                if part.file is not None:
                    part.file.close()
            part.staged.unlink(missing_ok=True)
        self._parts.clear()
        self._current.clear()

    def _by_bucket(self, batch: Batch) -> dict[str, Sequence[Any]]:
        assigner = self._sink.bucket_assigner
        if not len(batch):
            return {}
        now_ms = time.time_ns() // 1_000_000
        if isinstance(assigner, BasePathBucketAssigner | DateTimeBucketAssigner):
            # The same folder for all of them, whatever they are.
            return {assigner.get_bucket_id(None, BucketContext(None, now_ms)): batch.values}
        buckets: dict[str, list[Any]] = {}
        for index, value in enumerate(batch.values):
            timestamp = None if batch.timestamps is None else batch.timestamps[index]
            bucket = assigner.get_bucket_id(value, BucketContext(timestamp, now_ms))
            buckets.setdefault(bucket, []).append(value)
        return dict(buckets)

    def _append(self, bucket: str, values: Sequence[Any]) -> None:
        limit = self._sink.rolling_policy.part_size
        data = self._encode(values)
        if limit is None or self._size(bucket) + len(data) < limit:
            self._part(bucket).write(data)
            return
        # Near the limit, write record by record, so that the file ends at the first record past it.
        for value in values:
            part = self._part(bucket)
            part.write(self._encode([value]))
            if part.size >= limit:
                part.close()
                del self._current[bucket]

    def _encode(self, values: Sequence[Any]) -> bytes:
        encoder = self._sink.encoder
        try:
            return encoder.encode_all(values)
        except Exception as error:
            if len(values) == 1:
                raise SinkFailed(
                    f"the value {shorten(values[0])} could not be encoded for {self._sink.base_path}",
                    cause=describe_cause(error),
                    way_out="map() it to something the encoder can write before sink_to()",
                ) from error
        # Encode again one by one to find the value.
        return b"".join([self._encode([value]) for value in values])

    def _size(self, bucket: str) -> int:
        part = self._current.get(bucket)
        return 0 if part is None else part.size

    def _part(self, bucket: str) -> _Part:
        part = self._current.pop(bucket, None)
        if part is None:
            part = self._new_part(bucket)
        if part.file is None:
            opened = [other for other in self._current.values() if other.file is not None]
            if len(opened) >= MAX_OPEN_FILES:
                opened[0].close()
        # Moved to the end of the dictionary: the least recently used one is closed first.
        self._current[bucket] = part
        return part

    def _new_part(self, bucket: str) -> _Part:
        _check_bucket(bucket)
        if not self._parts:
            make_folder(self._staging, self._sink.folder_mode)
        context, config = self._context, self._sink.output_file_config
        number = self._counts[bucket]
        self._counts[bucket] += 1
        nth = f"-{number}" if number else ""
        name = f"{config.part_prefix}-{self._short_id}-{context.epoch:08d}-{context.subtask:04d}{nth}"
        # Numbered over all buckets: they share one staging folder.
        staged = f"{context.epoch:08d}-{context.subtask:04d}-{len(self._parts)}.{safe_name(context.attempt)}"
        final = os.path.join(bucket, name + config.part_suffix)
        part = _Part(self._staging / staged, final, private=self._sink.private)
        part.staged.unlink(missing_ok=True)
        self._parts.append(part)
        return part


def _check_bucket(bucket: Any) -> None:
    parts = bucket.split("/") if isinstance(bucket, str) else [".."]
    if bucket and (any(part in ("", ".", "..") for part in parts) or parts[0] in FOLDERS or "\0" in bucket):
        raise SinkFailed(
            f"the bucket assigner returned {shorten(bucket)}, which is not a folder below the base path",
            way_out="return a relative path such as 'day=2026-01-31', or '' for the base path itself",
        )


def _disk_refused(what: str, error: OSError) -> SinkFailed:
    return SinkFailed(
        what,
        cause=describe_cause(error),
        way_out="free space, or give the job's user write permission; then run the program again",
    )
