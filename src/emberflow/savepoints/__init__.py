"""Savepoints: a job's state as a directory that another version of the program, another parallelism or the other engine
can start from. `Savepoint` reads and edits one offline."""

from emberflow.savepoints.savepoint import Savepoint, StateStep

__all__ = ["Savepoint", "StateStep"]
