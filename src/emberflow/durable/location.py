"""Where a job keeps its durable calls, and how to open the store there.

Stores are imported when they are opened: each needs a client library that only its users have installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote, unquote, urlsplit

from emberflow.durable.decisions import DecisionStore, FileDecisions
from emberflow.durable.redaction import shown
from emberflow.durable.stores.contract import CallStore
from emberflow.errors import InvalidArgument, PackageMissing, describe_cause
from emberflow.plan.job_contract import JobConfig

CALLS_FOLDER = "calls"
_POSTGRES = ("postgresql", "postgres")
_OBJECTS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
KNOWN = "a path, file://, postgresql://, s3://, gs://, abfs:// and hdfs://"

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStoreLocation:
    """Where one job keeps its durable calls and, next to them, the decisions of its micro-batches."""

    job_id: str
    directory: str
    """Used if `address` is empty."""
    address: str = ""
    """The job's `call_store` option."""

    @staticmethod
    def in_directory(home: Path, job_id: str, address: str) -> CallStoreLocation:
        """The location for a job with this checkpoint directory."""
        return CallStoreLocation(job_id=job_id, directory=str(home / CALLS_FOLDER), address=address)

    def open_calls(self) -> CallStore:
        """Raises like `open_store`."""
        return open_store(self.address, self.job_id) if self.address else _file_calls(Path(self.directory))

    def open_decisions(self) -> DecisionStore:
        """Raises like `open_store`."""
        return _open(self.address, self.job_id, _DECISIONS) if self.address else self.file_decisions()

    def file_decisions(self) -> FileDecisions:
        """The decisions of a job whose location has no address."""
        return FileDecisions(Path(self.directory))


def call_store_option(config: JobConfig) -> str:
    """The job's `call_store` option; if it is empty, the log is kept in the checkpoint directory."""
    address = config.options.get("call_store", "")
    if not isinstance(address, str):
        raise InvalidArgument(
            f"the option 'call_store' must be a string, not {address!r}", way_out=f"give one of {KNOWN}"
        )
    return address


def open_store(address: str, job_id: str) -> CallStore:
    """Opens the store of one job. Raises InvalidArgument for an unsupported kind of address and PackageMissing if the
    required package is not installed; an unreachable store is detected on first use."""
    return _open(address, job_id, _CALLS)


@dataclass(frozen=True, slots=True)
class _Stores(Generic[S]):
    """How to open a store in each kind of place."""

    files: Callable[[Path], S]
    postgres: Callable[[str, str], S]
    objects: Callable[[str], S]


def _open(address: str, job_id: str, stores: _Stores[S]) -> S:
    scheme, found, rest = address.partition("://")
    if not address or (found and not rest):
        raise InvalidArgument(
            f"call_store={shown(address)!r} does not name a place", way_out=f"give one of {KNOWN}"
        )
    folder = _folder(job_id)
    match scheme.lower() if found else "file":
        case "file":
            directory = Path(unquote(urlsplit(address).path)) if found else Path(address).expanduser()
            return stores.files(directory / folder)
        case kind if kind in _POSTGRES:
            return stores.postgres(address, job_id)
        case kind if kind in _OBJECTS:
            place, question, settings = address.partition("?")
            # Quoted again because parsing the URI unquotes it: the job a/b must not become a folder of the job a.
            return stores.objects(f"{place.rstrip('/')}/{quote(folder)}{question}{settings}")
        case unknown:
            raise InvalidArgument(f"there is no call store for {unknown}://", way_out=f"give one of {KNOWN}")


def _folder(job_id: str) -> str:
    return "job-" + quote(job_id, safe="")


def _file_calls(directory: Path) -> CallStore:
    from emberflow.durable.stores.file_store import FileCallStore

    return FileCallStore(directory)


def _postgres_calls(address: str, job_id: str) -> CallStore:
    with _needs("postgres"):
        from emberflow.durable.stores.postgres_store import PostgresCallStore
    return PostgresCallStore(address, job_id)


def _object_calls(uri: str) -> CallStore:
    with _needs("files"):
        from emberflow.durable.stores.object_store import ObjectCallStore
    return ObjectCallStore(uri)


def _postgres_decisions(address: str, job_id: str) -> DecisionStore:
    with _needs("postgres"):
        from emberflow.durable.stores.postgres_decisions import PostgresDecisions
    return PostgresDecisions(address, job_id)


def _object_decisions(uri: str) -> DecisionStore:
    with _needs("files"):
        from emberflow.durable.stores.object_decisions import ObjectDecisions
    return ObjectDecisions(uri)


@contextlib.contextmanager
def _needs(extra: str) -> Generator[None]:
    try:
        yield
    except ImportError as error:
        raise PackageMissing(
            f"a call store of this kind needs the extra '{extra}'",
            cause=describe_cause(error),
            way_out=f"pip install 'emberflow[{extra}]' on every machine that runs the job",
        ) from error


_CALLS: _Stores[CallStore] = _Stores(_file_calls, _postgres_calls, _object_calls)
_DECISIONS: _Stores[DecisionStore] = _Stores(FileDecisions, _postgres_decisions, _object_decisions)
