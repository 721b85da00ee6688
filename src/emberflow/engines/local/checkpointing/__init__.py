"""Checkpoints of the local engine: when one is taken, what is in it, and how it is stored and read."""
