"""`emberflow demo`: an agent on a live stream, with a report at the end."""

from emberflow.demo.command import main

__all__ = ["main"]
