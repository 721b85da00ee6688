"""From the address of a call store, as the job's options have it, to the store."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from emberflow.durable.decisions import DecisionStore
from emberflow.durable.redaction import shown
from emberflow.durable.stores.contract import CallStore
from emberflow.errors import InvalidArgument, PackageMissing, describe_cause
from emberflow.plan.job_contract import JobConfig

_POSTGRES = ("postgresql", "postgres")
_OBJECTS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
# kind of place -> module and class
_CALLS = {
    "files": ("stores.file_store", "FileCallStore"),
    "postgres": ("stores.postgres_store", "PostgresCallStore"),
    "objects": ("stores.object_store", "ObjectCallStore"),
}
_DECISIONS = {
    "files": ("decisions", "FileDecisions"),
    "postgres": ("stores.postgres_decisions", "PostgresDecisions"),
    "objects": ("stores.object_decisions", "ObjectDecisions"),
}
KNOWN = "a path, file://, postgresql://, s3://, gs://, abfs:// and hdfs://"


def call_store_option(config: JobConfig) -> str:
    """The job's option `call_store`; without it the log is kept in the checkpoint directory."""
    address = config.options.get("call_store", "")
    if not isinstance(address, str):
        raise InvalidArgument(
            f"the option 'call_store' must be a text, not {address!r}", way_out=f"give one of {KNOWN}"
        )
    return address


def job_store(address: str, directory: str, job_id: str) -> CallStore:
    """The store that a job was given, or files in its own directory."""
    if address:
        return open_store(address, job_id)
    return _class("stores.file_store", "FileCallStore", "")(Path(directory))


def job_decisions(address: str, directory: str, job_id: str) -> DecisionStore:
    """Where a job's micro-batches keep their decisions: beside its calls."""
    if not address:
        return _class("decisions", "FileDecisions", "")(Path(directory))
    return _open(address, job_id, _DECISIONS)


def open_store(address: str, job_id: str) -> CallStore:
    """The store of one job. Raises InvalidArgument for an address of no known kind, PackageMissing when the package that
    it needs is not installed; whether the store can be reached shows on first use."""
    return _open(address, job_id, _CALLS)


def _open(address: str, job_id: str, classes: dict[str, tuple[str, str]]) -> Any:
    scheme, found, rest = address.partition("://")
    if not address or (found and not rest):
        raise InvalidArgument(f"call_store={shown(address)!r} names no place", way_out=f"give one of {KNOWN}")
    folder = _folder(job_id)
    match scheme.lower() if found else "file":
        case "file":
            directory = Path(unquote(urlsplit(address).path)) if found else Path(address).expanduser()
            return _class(*classes["files"], "")(directory / folder)
        case kind if kind in _POSTGRES:
            return _class(*classes["postgres"], "postgres")(address, job_id)
        case kind if kind in _OBJECTS:
            place, question, settings = address.partition("?")
            # Once more, since it is taken off again with the rest of the URI: a job a/b is no part of a job a.
            uri = f"{place.rstrip('/')}/{quote(folder)}{question}{settings}"
            return _class(*classes["objects"], "files")(uri)
        case unknown:
            raise InvalidArgument(
                f"there is no call store for {unknown}://", way_out=f"call_store takes {KNOWN}"
            )


def _folder(job_id: str) -> str:
    return "job-" + quote(job_id, safe="")


def _class(module: str, name: str, extra: str) -> Any:
    # Looked up by name: a store drags its client library along, which only its users have.
    try:
        return getattr(importlib.import_module(f"emberflow.durable.{module}"), name)
    except ImportError as error:
        raise PackageMissing(
            f"a call store of this kind needs the extra '{extra}'",
            cause=describe_cause(error),
            way_out=f"pip install 'emberflow[{extra}]' on every machine that runs the job",
        ) from error
