"""`emberflow demo`: a small shop, live, with a report at the end."""

from emberflow.demo.command import main

__all__ = ["main"]
