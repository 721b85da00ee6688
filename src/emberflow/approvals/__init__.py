"""Agents' questions to people as files of the checkpoint directory: asking, waiting, answering.

Engines ask, the command line answers; imports neither.
"""
